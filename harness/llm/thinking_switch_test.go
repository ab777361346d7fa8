package llm

import (
	"strings"
	"testing"
)

// TestThinkingSwitch: how each family is told, by each protocol.
func TestThinkingSwitch(t *testing.T) {
	for _, c := range []struct{ server, model, setting, want string }{
		{"ollama", "qwen3:8b", "auto", `"think":false`},
		{"ollama", "qwen3:8b", "on", `"think":true`},
		{"ollama", "gpt-oss:20b", "off", `"think":"low"`},
		{"ollama", "gpt-oss:20b", "on", `"think":"high"`},
		{"ollama", "gemma4:12b", "auto", ""},
		{"ollama", "gemma4:12b", "off", `"think":false`},
		{"ollama", "llama3.1:8b", "on", ""},
		{"ollama", "unheard-of", "auto", ""},
		{"ollama", "unheard-of", "off", `"think":false`},
		{"llama-server", "qwen3.5-9b", "", `"chat_template_kwargs":{"enable_thinking":false}`},
		{"llama-server", "smollm3-3b", "auto", `"chat_template_kwargs":{"enable_thinking":false}`},
		{"llama-server", "gpt-oss-20b", "auto", `"chat_template_kwargs":{"reasoning_effort":"low"}`},
		{"llama-server", "deepseek-r1-distill-qwen-7b", "auto", ""},
		{"openai", "openai/gpt-5-mini", "auto", `"reasoning_effort":"low"`},
		{"openai", "openai/gpt-5-mini", "on", `"reasoning_effort":"high"`},
		{"anthropic", "claude-sonnet", "auto", ""},
		{"anthropic", "claude-sonnet", "on", `"thinking":{"type":"adaptive"}`},
	} {
		w := wiring{Server: c.server, Commands: granted, Think: familyOf(c.model, nil).thinking(c.setting, c.server)}
		body := compact(w.prompt(ask, native).build())
		for _, field := range []string{`"think"`, `"chat_template_kwargs"`, `"reasoning_effort"`, `"thinking"`} {
			if strings.Contains(body, field) != strings.Contains(c.want, field) {
				t.Errorf("%s on %s, %q: %s in %s", c.model, c.server, c.setting, field, body)
			}
		}
		if !strings.Contains(body, c.want) {
			t.Errorf("%s on %s, %q: no %s in %s", c.model, c.server, c.setting, c.want, body)
		}
	}
}

// thoughtful is a reply of llama-server that thinks for n bytes and goes on
// silently: where its cap is, it must be ended.
func thoughtful(n int, hang bool) reply {
	piece := `data: {"choices":[{"index":0,"delta":{"reasoning_content":"` + strings.Repeat("hm, ", 64) + `"}}]}` + "\n\n"
	r := reply{body: strings.Repeat(piece, n/256+1), hang: hang}
	if !hang {
		r.body += `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	}
	return r
}

// TestRunawayThought: a thought that does not end is ended, and the model asked
// once more with as little thought as it can do. A second one is a cut turn.
func TestRunawayThought(t *testing.T) {
	p := providers[1]
	inline := thoughtful(0, true)
	inline.body = `data: {"choices":[{"index":0,"delta":{"content":"<think>` + strings.Repeat("so, ", 80) + `"}}]}` + "\n\n"
	for name, run := range map[string]reply{"in its channel": thoughtful(4000, true), "in the message": inline} {
		t.Run(name, func(t *testing.T) {
			m, f := p.open(t, func(c *Config) { c.MaxTokens = 100 }, run, p.recorded(t, "call"))
			got, err := m.Reply(t.Context(), ask, nil)
			if err != nil || len(got.Calls) != 1 || !strings.Contains(got.Shape, "quiet") {
				t.Errorf("got %+v, %v, want the call of the second reply", got, err)
			}
			sent := f.chats()
			if len(sent) != 2 || strings.Contains(sent[0], "enable_thinking") || !strings.Contains(sent[1], `"enable_thinking":false`) {
				t.Errorf("want to be asked with thinking off the second time:\n%s", strings.Join(sent, "\n"))
			}
			f.left(t)
		})
	}
	t.Run("twice", func(t *testing.T) {
		m, _ := p.open(t, func(c *Config) { c.MaxTokens = 100 }, thoughtful(4000, true), thoughtful(4000, true))
		got, err := m.Reply(t.Context(), ask, nil)
		if err != nil || !got.Cut || got.Nudge != nudge("cut", granted) || len(got.Calls) > 0 {
			t.Errorf("got %+v, %v, want a cut turn", got, err)
		}
	})
	t.Run("under the cap", func(t *testing.T) {
		r := thoughtful(0, false)
		r.body = strings.Replace(r.body, `"delta":{},`, `"delta":{"content":"All green."},`, 1)
		m, f := p.open(t, func(c *Config) { c.MaxTokens = 100 }, r)
		if got, err := m.Reply(t.Context(), ask, nil); err != nil || got.Text != "All green." || len(f.chats()) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// TestOnlyThought: a turn of nothing but thought is no end and no action (b07);
// after two of them the model is told so from the start (b11).
func TestOnlyThought(t *testing.T) {
	p := providers[1]
	only, call := thoughtful(10, false), p.recorded(t, "call")
	m, f := p.open(t, nil, only, call, only, call, call)
	for range 3 {
		if got, err := m.Reply(t.Context(), ask, nil); err != nil || len(got.Calls) != 1 {
			t.Fatalf("got %+v, %v, want the call", got, err)
		}
	}
	quiet := ""
	for _, body := range f.chats() {
		quiet += map[bool]string{true: "q", false: "."}[strings.Contains(body, `"enable_thinking":false`)]
	}
	if quiet != ".q.qq" {
		t.Errorf("told to be quiet in %s, want .q.qq", quiet)
	}
}
