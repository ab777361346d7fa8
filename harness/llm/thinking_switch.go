package llm

import "github.com/ollama/ollama/api"

// thinking is how a model of the family is told to think, in the words of
// wiring.Think. Setting is Config.Thinking. A model that is not in the table is
// told only what the user asks for: a server ignores, or refuses (and then is not
// told again), what it does not know.
func (f Family) thinking(setting, server string) string {
	want := setting
	if want == "" || want == "auto" {
		want = f.Auto
	}
	switch {
	case server == "script", want == "":
		return ""
	case f.Think == "effort" && want == "off":
		return "low"
	case f.Think == "effort":
		return "high"
	case f.Match != "" && f.Think == "":
		return "" // it has no switch
	}
	return want
}

// less is the word for as little thought as a model can do that was told think.
func less(think string) string {
	if think == "low" || think == "high" {
		return "low"
	}
	return "off"
}

// quieter is p with as little thought as its model can do.
func (p prompt) quieter() prompt {
	p.quiet, p.Think = true, less(p.Think)
	return p
}

// templateArgs are what llama-server, vLLM and others hand to the chat template.
type templateArgs struct {
	Thinking *bool  `json:"enable_thinking,omitempty"`
	Effort   string `json:"reasoning_effort,omitempty"`
}

// templateArgs are those of p; nil is none.
func (p prompt) templateArgs() *templateArgs {
	on := p.Think == "on"
	switch {
	case p.Think == "" || p.dropped("chat_template_kwargs"):
		return nil
	case on || p.Think == "off":
		return &templateArgs{Thinking: &on}
	case p.Server == "llama-server":
		return &templateArgs{Effort: p.Think}
	}
	return nil
}

// effort is for endpoints that take it as a field of the request.
func (p prompt) effort() string {
	if p.Server != "openai" || p.Think == "on" || p.Think == "off" || p.dropped("reasoning_effort") {
		return ""
	}
	return p.Think
}

// ollamaThink is for Ollama, which takes a truth or a word.
func (p prompt) ollamaThink() *api.ThinkValue {
	switch {
	case p.Think == "" || p.dropped("think"):
		return nil
	case p.Think == "on" || p.Think == "off":
		return &api.ThinkValue{Value: p.Think == "on"}
	}
	return &api.ThinkValue{Value: p.Think}
}

// maxThought bounds a thought in bytes: three quarters of a reply, at four bytes
// a token, so that there is room for a call behind it. A model that has not come
// to one by then mostly does not, on any of the benches that capped it.
func (w wiring) maxThought() int { return 3 * w.MaxTokens }

// cap ends the reply if the model has thought for too long: over is called once.
// Where the thought stands in the message, it is one as long as its mark is open.
func (s *sink) cap() {
	if s.limit == 0 || s.over == nil {
		return
	}
	n := s.thinking.Len()
	if inside := s.content.Len(); n <= s.limit && inside > s.limit && inside < s.limit+maxChannels*1024 && thinking(s.content.String()) {
		n = inside
	}
	if n > s.limit {
		s.over()
		s.over = nil
	}
}

// mused reports whether a reply that was read is nothing but thought.
func (r Raw) mused() bool {
	return len(r.ToolCalls) == 0 && visible(r.Content) == "" && (r.Thinking != "" || trim(r.Content) != "")
}

// hush decides what to do about a reply in which the model did nothing but think:
// it is asked once more with as little thought as it can do. After the second
// time in a session it is told so from the start (failures b07, b11).
func (t *turn) hush() bool {
	if !t.mused || t.hushed || t.info.Server == "script" {
		return false
	}
	t.hushed = true
	t.mu.Lock()
	defer t.mu.Unlock()
	can := !t.quiet && less(t.wire.Think) != t.wire.Think
	if t.musings++; t.musings >= missLimit {
		t.quiet = true
	}
	return can
}
