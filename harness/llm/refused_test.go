package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// TestDoWithout: a field that an endpoint refuses is left out of that request and
// of those that follow, and the log can make their bytes again.
func TestDoWithout(t *testing.T) {
	for _, c := range []struct {
		provider, refusal   string
		change              func(*Config)
		name, before, after string
		again               string // the recorded reply to the request that goes through
	}{
		{"ollama", `{"error":"\"m:1b\" does not support thinking"}`, func(c *Config) { c.Thinking = "on" }, "think", `"think":true`, "", "call"},
		{"llama", `{"error":{"message":"unknown field chat_template_kwargs"}}`, func(c *Config) { c.Thinking = "off" }, "chat_template_kwargs", `"chat_template_kwargs":{"enable_thinking":false}`, "", "call"},
		{"openai", `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}`, nil, "max_tokens", `"max_tokens":2048`, `"max_completion_tokens":2048`, "call"},
		{"openai", `{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."}}`, nil, "temperature", `"temperature":0`, "", "call"},
		{"openai", `{"error":{"message":"Unknown parameter: 'seed'."}}`, nil, "seed", `"seed":0`, "", "call"},
		{"openai", `{"error":{"message":"stream_options is not allowed"}}`, nil, "stream_options", `"stream_options"`, "", "call"},
		{"openai", `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."}}`, func(c *Config) { c.Constrain = "on" }, "response_format", `"response_format"`, `"tools"`, "call"},
		{"openai", `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}`, func(c *Config) { c.Families = []Family{{Match: "m", Think: "effort", Auto: "off"}} }, "reasoning_effort", `"reasoning_effort":"low"`, "", "call"},
		{"anthropic", `{"type":"error","error":{"message":"thinking: Input tag 'adaptive' found using 'type' is unexpected"}}`, func(c *Config) { c.Thinking = "on" }, "adaptive", `"adaptive"`, `{"type":"enabled","budget_tokens":1024}`, "call"},
		{"anthropic", `{"type":"error","error":{"message":"` + "`temperature`" + ` is deprecated for this model."}}`, nil, "temperature", `"temperature":0`, "", "call"},
		{"anthropic", `{"type":"error","error":{"message":"cache_control: Extra inputs are not permitted"}}`, nil, "cache_control", `"cache_control"`, "", "call"},
		{"anthropic", `{"type":"error","error":{"message":"output_config: Extra inputs are not permitted"}}`, func(c *Config) { c.Constrain = "on" }, "output_config", `"output_config"`, `"tools"`, "call"},
	} {
		t.Run(c.provider+" "+c.name, func(t *testing.T) {
			var p provider
			for _, one := range providers {
				if one.name == c.provider {
					p = one
				}
			}
			m, f := p.open(t, c.change, reply{status: 400, body: c.refusal}, p.recorded(t, c.again), p.recorded(t, c.again))
			wire := m.Wire()
			for range 2 {
				got, err := m.Reply(t.Context(), ask, nil)
				if err != nil || len(got.Calls) != 1 {
					t.Fatalf("got %+v, %v, want the call", got, err)
				}
				body, err := Encode(wire, got.Shape, ask)
				if sum := sha256.Sum256(body); err != nil || hex.EncodeToString(sum[:]) != got.Sent {
					t.Errorf("the log makes %s, %v for %q", body, err, got.Shape)
				}
			}
			sent := f.chats()
			if !strings.Contains(sent[0], c.before) || strings.Contains(sent[1], c.before) || !strings.Contains(sent[1], c.after) || sent[2] != sent[1] {
				t.Errorf("want %s, and then not, but %s, in\n%s", c.before, c.after, strings.Join(sent, "\n"))
			}
		})
	}
}

// What is about a value, a window or a server is no refusal of a field.
func TestNoRefusal(t *testing.T) {
	p := wiring{Server: "openai"}.prompt(ask, constrained)
	for _, se := range []*ServerError{
		serverError(400, "max_tokens is too large: 99999. This model supports at most 16384 completion tokens"),
		serverError(400, "prompt is too long: 9 tokens > 8 maximum, and temperature is not supported"),
		serverError(500, "temperature is not supported"),
		serverError(400, "unknown model m"),
	} {
		if name := p.offending(se); name != "" {
			t.Errorf("%q is taken for a refusal of %s", se.Text, name)
		}
	}
}

// A session that is taken up again leaves out what was refused before.
func TestContinueWithout(t *testing.T) {
	m, f := providers[2].open(t, nil, providers[2].recorded(t, "call"))
	m.Continue("native quiet -max_tokens -seed", 0, 1)
	if _, err := m.Reply(t.Context(), ask, nil); err != nil {
		t.Fatal(err)
	}
	if sent := f.chats()[0]; strings.Contains(sent, `"max_tokens"`) || strings.Contains(sent, `"seed"`) || !strings.Contains(sent, `"enable_thinking":false`) {
		t.Errorf("got %s", sent)
	}
}
