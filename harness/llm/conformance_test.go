package llm

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	window "tether/context"
)

// ask is a request of one turn.
var ask = window.Request{Messages: []window.Message{
	{Role: window.RoleSystem, Text: "You work by commands."},
	{Role: window.RoleUser, Text: "List the files."},
}}

// A provider is a protocol under test.
type provider struct {
	name, ext string
	config    func(url string) Config
	routes    map[string]string // what the server says of itself
	chat      string            // the path of a chat
}

var providers = []provider{
	{
		"ollama", ".ndjson",
		func(url string) Config { return Config{Model: "ollama/m:1b", OllamaURL: url} },
		map[string]string{
			"/api/version": `{"version":"0.33.3"}`,
			"/api/show":    `{"capabilities":["completion","tools"],"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`,
			"/api/tags":    `{"models":[{"name":"m:1b","details":{"parameter_size":"1.2B"}},{"name":"n:7b","details":{"parameter_size":"7.6B"}}]}`,
		}, "/api/chat",
	},
	{
		"llama", ".sse",
		func(url string) Config { return Config{Model: "llama/m@" + url} },
		map[string]string{
			"/props":    `{"default_generation_settings":{"n_ctx":32768},"total_slots":4,"model_alias":"m","build_info":"b11549","chat_template_caps":{"supports_tools":true,"supports_tool_calls":true}}`,
			"/slots":    `[{"id":0,"n_ctx":8000},{"id":1,"n_ctx":8000}]`,
			"/tokenize": `{"tokens":[28120,905]}`,
		}, "/v1/chat/completions",
	},
	{
		"openai", ".sse",
		func(url string) Config { return Config{Model: "openai/m", OpenAIURL: url + "/v1"} },
		map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":7000}]}`}, "/v1/chat/completions",
	},
	{
		"anthropic", ".sse",
		func(url string) Config { return Config{Model: "anthropic/m", AnthropicURL: url} },
		map[string]string{"/v1/models/m": `{"id":"m","type":"model","max_input_tokens":7000}`}, "/v1/messages",
	},
}

func TestConformance(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) { conformance(t, p) })
	}
}

// open opens the provider's model on a fake server that gives the replies.
func (p provider) open(t *testing.T, change func(*Config), replies ...reply) (*Model, *fake) {
	t.Helper()
	f := newFake(t, p, replies...)
	c := p.config(f.URL)
	c.Commands, c.pause = granted, time.Millisecond
	if change != nil {
		change(&c)
	}
	m, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return m, f
}

// recorded is a reply out of testdata.
func (p provider) recorded(t *testing.T, name string) reply {
	t.Helper()
	b, err := os.ReadFile("testdata/" + p.name + "/" + name + p.ext)
	if err != nil {
		t.Fatal(err)
	}
	return reply{body: string(b)}
}

// conformance is what every provider must do alike.
func conformance(t *testing.T, p provider) {
	t.Run("call", func(t *testing.T) { p.testCall(t) })
	t.Run("text", func(t *testing.T) { p.testText(t) })
	t.Run("constrained", func(t *testing.T) { p.testConstrained(t) })
	t.Run("prefix", func(t *testing.T) { p.testPrefix(t) })
	t.Run("cancel", func(t *testing.T) { p.testCancel(t) })
	t.Run("stall", func(t *testing.T) { p.testStall(t) })
	t.Run("bad", func(t *testing.T) { p.testBad(t) })
	t.Run("again", func(t *testing.T) { p.testAgain(t) })
	t.Run("together", func(t *testing.T) { p.testTogether(t) })
}

// testTogether holds that agents may share a model: the race detector looks.
func (p provider) testTogether(t *testing.T) {
	text := p.recorded(t, "text")
	m, _ := p.open(t, nil, text, text, text, text)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := m.Reply(t.Context(), ask, nil); err != nil {
				t.Error(err)
			}
			m.Info()
		})
	}
	group.Wait()
}

func (p provider) testCall(t *testing.T) {
	m, f := p.open(t, nil, p.recorded(t, "call"))
	got, err := m.Reply(t.Context(), ask, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (window.Call{Cmd: "sh ls", Stdin: "x\n"}); len(got.Calls) != 1 || got.Calls[0] != want || got.Recovered != "" {
		t.Errorf("got %+v, want the call %v", got, want)
	}
	u := got.Usage
	if u.Prompt != 120 || u.Cached != 100 || !u.CacheTold || u.Output != 9 || u.FirstToken <= 0 || u.Total < u.FirstToken {
		t.Errorf("usage: got %+v, want 120 prompt, 100 cached, 9 output tokens and times", u)
	}
	body, err := m.Body(ask)
	if err != nil || string(body) != f.chats()[0] {
		t.Errorf("Body differs from what was sent:\n%s\n%s", body, f.chats()[0])
	}
	if !strings.Contains(f.chats()[0], `"act"`) {
		t.Errorf("no tool in %s", f.chats()[0])
	}
}

func (p provider) testText(t *testing.T) {
	m, _ := p.open(t, nil, p.recorded(t, "text"))
	var streamed strings.Builder
	got, err := m.Reply(t.Context(), ask, func(s string) { streamed.WriteString(s) })
	if err != nil || got.Text != "All green." || got.Nudge == "" || len(got.Calls) > 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if streamed.String() != "All green." {
		t.Errorf("streamed %q", streamed.String())
	}
}

func (p provider) testConstrained(t *testing.T) {
	m, f := p.open(t, func(c *Config) { c.Constrain = "on" }, p.recorded(t, "constrained"))
	got, err := m.Reply(t.Context(), ask, nil)
	if err != nil || len(got.Calls) != 1 || got.Calls[0].Cmd != "read a.go" || got.Recovered != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	sent := f.chats()[0]
	if !strings.Contains(sent, `"enum":["sh","read",`) || strings.Contains(sent, `"tools"`) {
		t.Errorf("want the schema and no tools in %s", sent)
	}
	if !m.Info().Constrained {
		t.Error("Info does not say that the model is constrained")
	}
}

// testPrefix holds what keeps the prompt cache: each request begins with the
// messages of the one before it.
func (p provider) testPrefix(t *testing.T) {
	for _, mode := range []string{"on", "off"} {
		m, _ := p.open(t, func(c *Config) { c.Constrain = mode })
		r := window.Request{Messages: ask.Messages}
		before := ""
		for i := range 4 {
			body, err := m.Body(r)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(body), before) {
				t.Fatalf("%s, request %d does not begin with the one before it:\n%s\n%s", mode, i, before, body)
			}
			if before = string(body[:messagesEnd(t, string(body))]); len(before) < 50 {
				t.Fatalf("no messages in %s", body)
			}
			call := &window.Call{Cmd: "write a.txt", Stdin: "<one> & \"two\"\n"}
			r.Messages = append(r.Messages,
				window.Message{Role: window.RoleAssistant, Call: call, ID: "obs_1"},
				window.Message{Role: window.RoleTool, Text: "ok", ID: "obs_1"},
				window.Message{Role: window.RoleTool, Text: "a nudge"})
		}
	}
}

// messagesEnd is where the list of messages ends in body, its bracket excepted.
func messagesEnd(t *testing.T, body string) int {
	t.Helper()
	depth, inside := 0, false
	start := strings.Index(body, `"messages":[`) + len(`"messages":`)
	for i := start; i < len(body); i++ {
		switch c := body[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case !inside && c == '[':
			depth++
		case !inside && c == ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	t.Fatalf("the messages do not end in %s", body)
	return 0
}

func (p provider) testCancel(t *testing.T) {
	hang := p.recorded(t, "noend")
	hang.hang = true
	m, f := p.open(t, nil, hang)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := m.Reply(ctx, ask, func(string) { cancel() }) // without that the server would never end it
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	f.left(t) // the server sees that the client went away
}

func (p provider) testStall(t *testing.T) {
	silent := reply{hang: true}
	m, f := p.open(t, func(c *Config) { c.FirstToken, c.Idle = 20*time.Millisecond, 20*time.Millisecond }, silent, silent)
	_, err := m.Reply(t.Context(), ask, nil)
	var cut *CutError
	if !errors.As(err, &cut) || cut.Cause != errStalled {
		t.Errorf("got %v, want a reply that broke off in silence", err)
	}
	if n := len(f.chats()); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

// testBad is what servers do when they fail: never a call, always a type.
func (p provider) testBad(t *testing.T) {
	html := reply{status: 502, kind: "text/html", body: "<html><body>Bad Gateway</body></html>"}
	cases := []struct {
		name string
		bad  reply
		want string // a class, or "cut"
		asks int
	}{
		{"error in the stream", p.recorded(t, "error"), "other", 1},
		{"half a frame", p.recorded(t, "half"), "cut", 2},
		{"no last frame", p.recorded(t, "noend"), "cut", 2},
		{"dies", reply{body: p.recorded(t, "noend").body, die: true}, "cut", 2},
		{"nothing", reply{}, "cut", 2},
		{"HTML", html, "other", 1},
		{"HTML with status 200", reply{body: html.body, kind: html.kind}, "other", 1},
		{"500", reply{status: 500, body: `{"error":"it broke"}`}, "other", 1},
		{"500 without a body", reply{status: 500}, "other", 1},
		{"no key", reply{status: 403, body: `{"error":"forbidden"}`}, "refused", 1},
		{"overflow", reply{status: 400, body: `{"error":{"code":400,"message":"request (16717 tokens) exceeds the available context size (5000 tokens), try increasing it","type":"exceed_context_size_error"}}`}, "overflow", 1},
		{"overflow as 500", reply{status: 500, body: `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`}, "overflow", 1},
		{"huge line", reply{body: "data: " + strings.Repeat("x", maxLine+1) + "\n"}, "cut", 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, f := p.open(t, nil, c.bad, c.bad, c.bad)
			got, err := m.Reply(t.Context(), ask, nil)
			if class(err) != c.want || len(got.Calls) > 0 {
				t.Errorf("got %+v, %v (%s), want %s", got, err, class(err), c.want)
			}
			if (got.Overflow > 0) != (c.want == "overflow") {
				t.Errorf("an overflow of %d tokens", got.Overflow)
			}
			if n := len(f.chats()); n != c.asks {
				t.Errorf("asked %d times, want %d", n, c.asks)
			}
		})
	}
}

// class names the kind of an error of Reply.
func class(err error) string {
	var cut *CutError
	var se *ServerError
	switch {
	case errors.As(err, &cut):
		return "cut"
	case errors.As(err, &se):
		return string(se.Class)
	case err == nil:
		return "none"
	}
	return err.Error()
}

// testAgain is what is mended by asking once more.
func (p provider) testAgain(t *testing.T) {
	call := p.recorded(t, "call")
	notools := reply{status: 400, body: `{"error":"registry/library/m:1b does not support tools"}`}
	loading := reply{status: 503, body: `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`}
	cases := []struct {
		name    string
		replies []reply
		want    string
	}{
		{"cut", []reply{p.recorded(t, "noend"), call}, "sh ls"},
		{"empty", []reply{p.recorded(t, "empty"), call}, "sh ls"},
		{"format", []reply{p.recorded(t, "format"), call}, "sh ls"},
		{"no tools", []reply{notools, p.recorded(t, "constrained")}, "read a.go"},
		{"loading", []reply{loading, loading, loading, call}, "sh ls"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, f := p.open(t, nil, c.replies...)
			got, err := m.Reply(t.Context(), ask, nil)
			if err != nil || len(got.Calls) != 1 || got.Calls[0].Cmd != c.want {
				t.Errorf("got %+v, %v, want the call %q", got, err, c.want)
			}
			if n := len(f.chats()); n != len(c.replies) {
				t.Errorf("asked %d times, want %d", n, len(c.replies))
			}
		})
	}
	t.Run("format twice is a bad turn", func(t *testing.T) {
		m, _ := p.open(t, nil, p.recorded(t, "format"), p.recorded(t, "format"))
		got, err := m.Reply(t.Context(), ask, nil)
		if err != nil || got.Nudge == "" || got.Miss == "" {
			t.Errorf("got %+v, %v, want a nudge and what was missed", got, err)
		}
	})
	t.Run("empty twice is a nudge", func(t *testing.T) {
		m, _ := p.open(t, nil, p.recorded(t, "empty"), p.recorded(t, "empty"))
		got, err := m.Reply(t.Context(), ask, nil)
		if err != nil || got.Nudge != nudge("empty", granted) {
			t.Errorf("got %+v, %v, want the nudge about an empty reply", got, err)
		}
	})
}
