package llm

import (
	"regexp"
	"slices"
	"strings"
)

// A droppable field of a request is one without which the request means the same
// or nearly so: endpoints differ in which they know, and say so with a 400.
type droppable struct {
	name  string
	words *regexp.Regexp // in which a refusal speaks of it
}

// droppables are these fields; the first match counts.
var droppables = []droppable{
	{"chat_template_kwargs", regexp.MustCompile(`chat_template_kwargs|enable_thinking`)},
	{"reasoning_effort", regexp.MustCompile(`reasoning_effort|reasoning\.effort`)},
	{"adaptive", regexp.MustCompile(`(?i)adaptive`)},
	{"thinking", regexp.MustCompile("(?i)thinking")},
	{"think", regexp.MustCompile(`(?i)thinking|\bthink\b`)},
	{"temperature", regexp.MustCompile(`temperature`)},
	{"seed", regexp.MustCompile(`\bseed\b`)},
	{"response_format", regexp.MustCompile(`response_format|json_schema|guided_json`)},
	{"output_config", regexp.MustCompile(`output_config|output_format`)},
	{"stream_options", regexp.MustCompile(`stream_options`)},
	{"max_tokens", regexp.MustCompile(`max_tokens`)},
	{"cache_control", regexp.MustCompile(`cache_control`)},
}

// unknownField are the words of a refusal that is about a field and not about its
// value.
var unknownField = regexp.MustCompile(`(?i)unsupported|not supported|does not support|doesn't support|unrecognized|unknown|unexpected|extra inputs|not permitted|not allowed|deprecated|may only be set`)

// fields are the droppable ones that the request has; they depend on its protocol.
func (p prompt) fields() []string {
	sent := map[string]bool{
		"temperature": p.Server != "ollama", "seed": p.Server != "ollama" && p.Server != "anthropic", "max_tokens": p.Server == "openai", "stream_options": p.Server != "ollama" && p.stream,
		"response_format": p.form == constrained && p.Server != "ollama" && p.Server != "anthropic", "cache_control": p.Server == "anthropic",
		"chat_template_kwargs": p.Server != "ollama" && p.templateArgs() != nil, "reasoning_effort": p.effort() != "",
		"think": p.Server == "ollama" && p.ollamaThink() != nil, "adaptive": p.adaptive(), "thinking": p.thinksAloud(), "output_config": p.form == constrained && p.Server == "anthropic",
	}
	var all []string
	for _, d := range droppables {
		if sent[d.name] && !p.dropped(d.name) {
			all = append(all, d.name)
		}
	}
	return all
}

// adaptive reports whether a thinking model of Anthropic is left to decide itself
// how much it thinks; older ones want a budget.
func (p prompt) adaptive() bool {
	return p.thinksAloud() && !p.dropped("adaptive")
}

// dropped reports whether the server has refused the field called name.
func (p prompt) dropped(name string) bool { return slices.Contains(p.drop, name) }

// offending is the field of p that the error is about, or "".
func (p prompt) offending(se *ServerError) string {
	if se.Class == Overflow || se.Class == Loading || se.Status != 400 && se.Status != 422 || !unknownField.MatchString(se.Text) {
		return ""
	}
	have := p.fields()
	for _, d := range droppables {
		if slices.Contains(have, d.name) && d.words.MatchString(se.Text) {
			return d.name
		}
	}
	return ""
}

// doWithout leaves a refused field out from here on, and reports whether there
// is one. Each is left out once, so that this ends.
func (t *turn) doWithout(se *ServerError) bool {
	p := t.prompt(t.request)
	name := p.offending(se)
	if name == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop = append(slices.Clip(t.drop), name)
	if name == "response_format" || name == "output_config" {
		t.bare()
	}
	t.cfg.Log("going on without " + name + ": " + clip(se.Text, 120))
	return true
}

// bare goes back from the schema, which the server does not take, to what the
// model can do without.
func (m *Model) bare() {
	if m.unconstrain(); m.info.Native {
		m.form = native
	}
}

// restore takes up the words of a shape that stay from one request to the next.
func (m *Model) restore(shape string) {
	for _, word := range strings.Fields(shape) {
		name, ok := strings.CutPrefix(word, "-")
		switch {
		case word == "quiet":
			m.quiet = true
		case ok && !slices.Contains(m.drop, name):
			m.drop = append(m.drop, name)
		}
	}
}
