package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	window "tether/context"
)

// TestUserInTheMiddle: what a person says in the middle of a task comes as a
// result does, and where that is a user, roles still alternate.
func TestUserInTheMiddle(t *testing.T) {
	msgs := []window.Message{
		{Role: window.RoleSystem, Text: "S"}, {Role: window.RoleUser, Text: "task"},
		{Role: window.RoleAssistant, Call: &window.Call{Cmd: "ls"}, ID: "obs_1"}, {Role: window.RoleTool, Text: "a.txt", ID: "obs_1"},
		{Role: window.RoleUser, Text: "Stop that.", ID: "obs_2"},
	}
	for _, c := range []struct {
		result window.Role
		form   form
		roles  string
		last   string
	}{
		{window.RoleTool, native, "system user assistant tool tool ", "Stop that."},
		{window.RoleUser, native, "system user assistant tool user ", "Stop that."},
		{window.RoleUser, constrained, "system user assistant user ", "a.txt\n\nStop that."},
	} {
		var roles string
		var last spoken
		for _, s := range (wiring{Result: c.result}).prompt(window.Request{Messages: msgs}, c.form).speak() {
			roles, last = roles+string(s.role)+" ", s
		}
		if roles != c.roles || last.content != c.last || last.id != "" {
			t.Errorf("%s, results by %s: %s, the last is %+v", c.form, c.result, roles, last)
		}
	}
}

// TestContinue: a model that is opened again for a session asks for the same
// bytes as the one that was closed.
func TestContinue(t *testing.T) {
	set := func(c *Config) { c.Temperature, c.Seed, c.MaxTokens, c.Window = 0.3, 7, 333, 4096 }
	m, _ := providers[1].open(t, set)
	m.constrain()
	want, err := m.Body(ask)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := providers[1].open(t, func(c *Config) {
		if *c, err = c.As(m.Wire()); err != nil {
			t.Fatal(err)
		}
	})
	again.Continue("constrained fresh", 1, 0)
	got, err := again.Body(ask)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the request is\n%s\nand was\n%s\n%v", got, want, err)
	}
	if again.misses != 1 {
		t.Errorf("%d misses, want 1", again.misses)
	}
	off, _ := providers[1].open(t, func(c *Config) { c.Constrain = "off" })
	if off.Continue("constrained", 1, 0); off.form == constrained {
		t.Error("a setting of now counts less than the form of then")
	}
	if _, err := (Config{}).As([]byte("{")); err == nil {
		t.Error("half a wire is read")
	}
}

// TestCutAnywhere: a stream that is cut at any byte yields no call by itself. The
// second attempt's call comes once, and what had come of the first is kept beside
// it as text.
func TestCutAnywhere(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			whole := p.recorded(t, "call")
			kept := 0
			for n := range len(whole.body) {
				if n%4 != 0 && n < len(whole.body)-40 {
					continue // each is a server of its own; the last frames are looked at byte by byte
				}
				cut := reply{body: whole.body[:n], kind: whole.kind, die: true}
				m, f := p.open(t, nil, cut, whole, whole)
				got, err := m.Reply(t.Context(), ask, nil)
				if err != nil || len(got.Calls) != 1 {
					t.Fatalf("cut after %d bytes: %+v, %v", n, got, err)
				}
				if asked := len(f.chats()); asked != 2 && got.Partial != "" || asked > 2 {
					t.Fatalf("cut after %d bytes: asked %d times, kept %q", n, asked, got.Partial)
				}
				if !utf8.ValidString(got.Partial) {
					t.Fatalf("cut after %d bytes: kept %q", n, got.Partial)
				}
				if got.Partial != "" {
					kept++
				}
			}
			if kept == 0 {
				t.Error("nothing of any attempt is kept")
			}
			cut := reply{body: whole.body[:len(whole.body)/2], kind: whole.kind, die: true}
			m, _ := p.open(t, nil, cut, cut)
			if got, err := m.Reply(t.Context(), ask, nil); class(err) != "cut" || len(got.Calls) > 0 {
				t.Errorf("cut twice: %+v, %v", got, err)
			}
		})
	}
}

// TestLoneSurrogate is case i11: half a character in the arguments of a call
// becomes one that stands for it, once and on the way in, so that every later
// request is valid.
func TestLoneSurrogate(t *testing.T) {
	body := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"act","arguments":"{\"cmd\":\"echo \\ud99c\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
	m, _ := providers[1].open(t, nil, reply{body: body})
	got, err := m.Reply(t.Context(), ask, nil)
	if err != nil || len(got.Calls) != 1 || got.Calls[0].Cmd != "echo \uFFFD" {
		t.Fatalf("%+v, %v", got, err)
	}
	next := ask
	next.Messages = append(slices.Clone(ask.Messages),
		window.Message{Role: window.RoleAssistant, Call: &got.Calls[0], ID: "obs_1"}, window.Message{Role: window.RoleTool, Text: "\uFFFD", ID: "obs_1"})
	sent, err := m.Body(next)
	if err != nil || !json.Valid(sent) || !utf8.Valid(sent) {
		t.Errorf("the next request is %q, %v", sent, err)
	}
}
