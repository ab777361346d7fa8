package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	window "tether/context"
)

// claude is the provider under test in this file.
func claude(t *testing.T) provider {
	t.Helper()
	for _, p := range providers {
		if p.name == "anthropic" {
			return p
		}
	}
	t.Fatal("no provider speaks to Anthropic")
	return provider{}
}

// A thought goes back before its call as it came, signature and all, as long as
// the model is told to think.
func TestThoughtGoesBack(t *testing.T) {
	const blocks = `{"type":"thinking","thinking":"I list the files.","signature":"c2lnbmVk"},{"type":"redacted_thinking","data":"aGlkZGVu"}`
	p := claude(t)
	m, f := p.open(t, func(c *Config) { c.Thinking = "on" }, p.recorded(t, "call"))
	got, err := m.Reply(t.Context(), ask, nil)
	if err != nil || got.Thought != "["+blocks+"]" || len(got.Calls) != 1 {
		t.Fatalf("got %+v, %v, want the thought and the call", got, err)
	}
	if sent := f.chats()[0]; !strings.Contains(sent, `"thinking":{"type":"adaptive"}`) || strings.Contains(sent, "temperature") {
		t.Errorf("want thinking and no temperature in %s", sent)
	}
	next := window.Request{Messages: append(ask.Messages[:2:2],
		window.Message{Role: window.RoleAssistant, Call: &got.Calls[0], ID: "obs_1", Thought: got.Thought},
		window.Message{Role: window.RoleTool, Text: "a.go", ID: "obs_1"})}
	body, err := m.Body(next)
	if want := `"content":[` + blocks + `,{"type":"tool_use","id":"obs_1"`; err != nil || !strings.Contains(string(body), want) {
		t.Errorf("got %s, %v, want %s", body, err, want)
	}
	off, _ := p.open(t, nil)
	if body, err := off.Body(next); err != nil || strings.Contains(string(body), "signature") {
		t.Errorf("told not to think, it is sent a thought: %s, %v", body, err)
	}
}

// The cache is marked in three places of the four that there may be.
func TestCacheMarks(t *testing.T) {
	m, _ := claude(t).open(t, nil)
	body, err := m.Body(session()[5])
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		System   []contentBlock `json:"system"`
		Messages []struct {
			Content []contentBlock `json:"content"`
		} `json:"messages"`
		Whole json.RawMessage `json:"cache_control"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	if sent.System[0].CacheControl == nil || sent.Messages[0].Content[0].CacheControl == nil || sent.Whole == nil || strings.Count(string(body), "cache_control") != 3 {
		t.Errorf("want marks at the system message, the task and the whole in %s", body)
	}
}

// What a server of this protocol accepts: results answer the call before them,
// and no text is empty.
func TestAnthropicHistory(t *testing.T) {
	m, _ := claude(t).open(t, nil)
	r := session()[6]
	r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)],
		window.Message{Role: window.RoleAssistant, Text: " ", ID: "obs_8"}, window.Message{Role: window.RoleTool, Text: "say something", ID: "obs_8"})
	var sent struct {
		Messages []struct {
			Role    string         `json:"role"`
			Content []contentBlock `json:"content"`
		} `json:"messages"`
	}
	body, err := m.Body(r)
	if err := errors.Join(err, json.Unmarshal(body, &sent)); err != nil {
		t.Fatal(err)
	}
	open := ""
	for i, s := range sent.Messages {
		b := s.Content[0]
		switch {
		case b.Type == "tool_result" && (b.Answers != open || s.Role != "user"), b.Type != "tool_result" && open != "":
			t.Errorf("message %d answers %q, and %q waits: %s", i, b.Answers, open, body)
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			t.Errorf("message %d is empty: %s", i, body)
		}
		if open = ""; b.Type == "tool_use" {
			open = b.ID
		}
	}
}

func TestAnthropicEnds(t *testing.T) {
	p := claude(t)
	whole, err := os.ReadFile("testdata/anthropic/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := p.open(t, func(c *Config) { c.Thinking = "on" }, reply{body: string(whole)}, p.recorded(t, "cut"), p.recorded(t, "refusal"))
	got, err := m.Reply(t.Context(), ask, nil)
	if want := (window.Call{Cmd: "sh ls", Stdin: "x\n"}); err != nil || len(got.Calls) != 1 || got.Calls[0] != want || !strings.Contains(got.Thought, "c2lnbmVk") || got.Usage.Prompt != 120 {
		t.Errorf("in one piece: got %+v, %v", got, err)
	}
	if got, err = m.Reply(t.Context(), ask, nil); err != nil || !got.Cut || len(got.Calls) > 0 {
		t.Errorf("max_tokens: got %+v, %v, want a cut turn", got, err)
	}
	if got, err = m.Reply(t.Context(), ask, nil); class(err) != "other" || !strings.Contains(err.Error(), "refuses") || len(got.Calls) > 0 {
		t.Errorf("refusal: got %+v, %v", got, err)
	}
}

func TestAnthropicErrors(t *testing.T) {
	p := claude(t)
	overflow := reply{status: 400, body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`}
	m, _ := p.open(t, nil, overflow)
	_, err := m.Reply(t.Context(), ask, nil)
	var se *ServerError
	if !errors.As(err, &se) || se.Class != Overflow || se.Limit != 200000 {
		t.Errorf("got %+v, want an overflow of 200000 tokens", err)
	}
	for status, class := range map[int]Class{429: Loading, 529: Loading, 500: Other, 403: Refused} {
		se := busy(serverError(status, "Overloaded"), http.Header{"Retry-After": {"7"}})
		if wait := se.Retry == 7*time.Second; se.Class != class || wait != (class == Loading) {
			t.Errorf("%d: class %s, wait %v", status, se.Class, se.Retry)
		}
	}
	if se := busy(serverError(429, "You exceeded your current quota, please check your plan"), nil); se.Class != Refused {
		t.Errorf("an empty account is waited for: %+v", se)
	}
	if se := busy(serverError(429, "slow down"), http.Header{"Retry-After": {"86400"}}); se.Retry != busyLimit {
		t.Errorf("a day is waited for: %v", se.Retry)
	}
}

// The key and the model are looked at before a task begins.
func TestAnthropicOpens(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	var bad *ConfigError
	if _, err := Open(t.Context(), Config{Model: "anthropic/m", AnthropicURL: "https://127.0.0.1:1"}); !errors.As(err, &bad) || bad.Setting != "ANTHROPIC_API_KEY" {
		t.Errorf("no key: got %v", err)
	}
	t.Setenv("OTHER_KEY", "k-1")
	p := claude(t)
	var key, version string
	f := newFake(t, provider{chat: p.chat}) // it has no models
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, version = r.Header.Get("x-api-key"), r.Header.Get("anthropic-version")
		w.WriteHeader(map[string]int{"k-1": 404}[key] | map[bool]int{true: 401}[key == ""])
		w.Write([]byte(`{"type":"error","error":{"type":"not_found_error","message":"model: m"}}`))
	})
	c := p.config(f.URL)
	var missing *MissingModelError
	if c.KeyFrom = "OTHER_KEY"; true {
		if _, err := Open(t.Context(), c); !errors.As(err, &missing) || key != "k-1" || version != anthropicVersion {
			t.Errorf("no model: got %v with key %q and version %q", err, key, version)
		}
	}
	c.KeyFrom = ""
	if _, err := Open(t.Context(), c); !errors.As(err, &bad) {
		t.Errorf("a refused key: got %v", err)
	}
	var dead *UnreachableError
	c.AnthropicURL = "http://127.0.0.1:1"
	if _, err := Open(t.Context(), c); !errors.As(err, &dead) {
		t.Errorf("nobody there: got %v", err)
	}
}
