package llm

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	window "tether/context"
)

// A call that is written into the history must be read back as the same call.
func TestRenderIsRead(t *testing.T) {
	for _, c := range []window.Call{
		{Cmd: "read a.go"},
		{Cmd: "done"},
		{Cmd: "write a.txt", Stdin: "<one> & \"two\"\n\\n é\n"},
		{Cmd: "grep 'a  b' src | head -5"},
		{Cmd: "sh ls"},
	} {
		got := Read(Raw{Content: render(c, granted), Finish: "stop"}, granted)
		if len(got.Calls) != 1 || got.Calls[0] != c {
			t.Errorf("%q is written as %s and read as %+v", c, render(c, granted), got)
		}
	}
	if got, want := render(window.Call{Cmd: "go test ./..."}, granted), `{"cmd":"sh","args":"go test ./..."}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Text is asked of the commands that do nothing without, and of no other: what a
// small model must write it writes, be it needed or not.
func TestSchemaText(t *testing.T) {
	type call struct {
		Properties struct {
			Cmd   struct{ Enum []string }
			Args  struct{ MaxLength int }
			Stdin struct{ MinLength int }
		}
		Required []string
	}
	var both struct{ AnyOf []call }
	if err := json.Unmarshal(schema([]string{"sh", "write", "append", "done"}), &both); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", both.AnyOf)
	if want := "[{Properties:{Cmd:{Enum:[sh done]} Args:{MaxLength:0} Stdin:{MinLength:0}} Required:[cmd args]} " +
		"{Properties:{Cmd:{Enum:[write append]} Args:{MaxLength:200} Stdin:{MinLength:1}} Required:[cmd args stdin]}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, granted := range [][]string{{"write"}, {"sh", "done"}} {
		var one call
		if err := json.Unmarshal(schema(granted), &one); err != nil || !slices.Equal(one.Properties.Cmd.Enum, granted) {
			t.Errorf("%v: %v %+v", granted, err, one)
		}
	}
}

// A command of tether behind sh is that command; a program of that name, and what
// was not granted, stay as they are.
func TestUnshelled(t *testing.T) {
	for line, want := range map[string]string{
		"sh write a.txt": "write a.txt", "sh done": "done", "sh read a.go": "read a.go", "sh find . -delete": "sh find . -delete", "sh grep x": "sh grep x",
		"sh ls": "sh ls", "sh": "sh", "write sh done": "write sh done", "sh edit a.go": "sh edit a.go",
	} {
		if got := unshelled(line, []string{"sh", "write", "done", "read", "find", "grep"}); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// The bytes of the framing are paid on every turn.
func TestFramingBytes(t *testing.T) {
	if n := len(chatTools); n > 200 {
		t.Errorf("the tool takes %d bytes, want at most 200", n)
	}
	s := schema([]string{"sh", "done"})
	var order struct {
		Properties json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(s, &order); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order.Required, " "); got != "cmd args" {
		t.Errorf("required: %s", got)
	}
	if !strings.HasPrefix(string(order.Properties), `{"cmd":{"type":"string","enum":["sh","done"]},"args":`) {
		t.Errorf("the order of the schema is the order of writing: %s", order.Properties)
	}
}

func TestForms(t *testing.T) {
	coder := providers[1].with(map[string]string{"/props": strings.Replace(providers[1].routes["/props"], `"model_alias":"m"`, `"model_alias":"qwen2.5-coder-1.5b"`, 1)})
	coder.config = func(url string) Config { return Config{Model: "llama/@" + url} }
	dumb := providers[0].with(map[string]string{"/api/show": `{"capabilities":["completion"]}`})
	for _, c := range []struct {
		name, constrain string
		p               provider
		want            form
		result          window.Role
	}{
		{"tools", "auto", providers[0], native, window.RoleTool},
		{"tools, on", "on", providers[0], constrained, window.RoleTool},
		{"no tools", "auto", dumb, constrained, window.RoleUser},
		{"no tools, off", "off", dumb, plain, window.RoleUser},
		{"tools, but writes fences", "auto", coder, fenced, window.RoleTool},
		{"tools, but writes fences, on", "on", coder, constrained, window.RoleTool},
		{"tools, but writes fences, off", "off", coder, native, window.RoleTool},
		{"openai", "auto", providers[2], native, window.RoleUser},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := c.p.open(t, func(cfg *Config) { cfg.Constrain = c.constrain })
			if m.form != c.want || m.wire.Result != c.result {
				t.Errorf("got %s and results from %s, want %s and %s", m.form, m.wire.Result, c.want, c.result)
			}
		})
	}
}

// What a user knows of a model stands before the table.
func TestOwnFamily(t *testing.T) {
	for _, c := range []struct {
		own    Family
		want   form
		result window.Role
	}{
		{Family{Match: "M:1B"}, native, window.RoleTool},
		{Family{Match: "m:", Calls: "text", Result: "user"}, constrained, window.RoleUser},
		{Family{Match: "m:", Calls: "fence"}, fenced, window.RoleTool},
		{Family{Match: "other", Calls: "text"}, native, window.RoleTool},
	} {
		m, _ := providers[0].open(t, func(cfg *Config) { cfg.Families = []Family{c.own} })
		if err := c.own.Check(); err != nil || m.form != c.want || m.wire.Result != c.result {
			t.Errorf("%+v: got %s and results from %s (%v), want %s and %s", c.own, m.form, m.wire.Result, err, c.want, c.result)
		}
	}
	for _, f := range families {
		if err := f.Check(); err != nil || familyOf("X-"+f.Match+"-9b", nil).Match != f.Match {
			t.Errorf("%+v: %v, and its own name finds %q", f, err, familyOf("X-"+f.Match+"-9b", nil).Match)
		}
	}
}

// A model that missed twice in a row is constrained; its history is then
// written in that form too.
func TestMissesConstrain(t *testing.T) {
	p := providers[0]
	text := p.recorded(t, "text")
	m, f := p.open(t, nil, text, p.recorded(t, "call"), text, text, p.recorded(t, "constrained"))
	r := ask
	r.Messages = append(r.Messages[:2:2],
		window.Message{Role: window.RoleAssistant, Call: &window.Call{Cmd: "read a.go"}, ID: "obs_1"},
		window.Message{Role: window.RoleTool, Text: "package a", ID: "obs_1"})
	for i := range 5 {
		if got := m.Info().Constrained; got != (i == 4) {
			t.Errorf("request %d: constrained is %v", i, got)
		}
		if _, err := m.Reply(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	}
	last := f.chats()[4]
	if !strings.Contains(last, `{\"cmd\":\"read\",\"args\":\"a.go\"}`) || strings.Contains(last, "tool_calls") {
		t.Errorf("the history is not in the constrained form: %s", last)
	}
}

// What was sent can be made again from the log.
func TestEncode(t *testing.T) {
	for _, p := range providers {
		for _, mode := range []string{"auto", "on"} {
			m, f := p.open(t, func(c *Config) { c.Constrain = mode }, p.recorded(t, "noend"), p.recorded(t, "text"))
			got, err := m.Reply(t.Context(), ask, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := Encode(m.Wire(), got.Shape, ask)
			if sent := f.chats(); err != nil || string(body) != sent[len(sent)-1] {
				t.Errorf("%s, %s, shape %q: got %v\n%s, want\n%s", p.name, mode, got.Shape, err, body, sent[len(sent)-1])
			}
		}
	}
}

// Another sample is asked for at another temperature and seed, and with the
// same messages.
func TestFresh(t *testing.T) {
	m, _ := providers[1].open(t, nil)
	r := ask
	r.Fresh = true
	body, err := m.Body(r)
	var sent chatRequest
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	if err != nil || *sent.Temperature != freshTemperature || *sent.Seed == 0 {
		t.Errorf("got temperature %v and seed %v", *sent.Temperature, *sent.Seed)
	}
}

// The history is always one that a server can render: every tool call's
// arguments are an object, and every result answers a call.
func TestHistoryRenders(t *testing.T) {
	p := wiring{Server: "openai", Commands: granted, Result: window.RoleUser}.prompt(window.Request{Messages: []window.Message{
		{Role: window.RoleAssistant, Text: "I would now read it.", ID: "obs_1"},
		{Role: window.RoleTool, Text: "That was no command.", ID: "obs_1"},
		{Role: window.RoleAssistant, Call: &window.Call{Cmd: `{"`}, ID: "obs_2"},
		{Role: window.RoleTool, Text: "not found", ID: "obs_2"},
	}}, native)
	msgs := p.openai().Messages
	if msgs[1].Role != "user" || msgs[3].Role != "tool" || msgs[3].ToolCallID != msgs[2].ToolCalls[0].ID {
		t.Errorf("got %+v", msgs)
	}
	if !json.Valid([]byte(msgs[2].ToolCalls[0].Function.Arguments)) {
		t.Errorf("arguments %s", msgs[2].ToolCalls[0].Function.Arguments)
	}
}

// TestRecorded reads a reply as a real llama-server streamed it.
func TestRecorded(t *testing.T) {
	b, err := os.ReadFile("testdata/llama/recorded.sse")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := providers[1].open(t, func(c *Config) { c.Constrain = "on" }, reply{body: string(b)})
	got, err := m.Reply(t.Context(), ask, nil)
	if err != nil || len(got.Calls) != 1 || got.Calls[0].Cmd != "sh ls" {
		t.Errorf("got %+v, %v", got, err)
	}
	if u := got.Usage; u.Prompt != 57 || u.Cached != 56 || u.Output != 24 {
		t.Errorf("usage %+v", u)
	}
}

// Pieces of calls are joined by their index, or by their id where a server
// gives all of them the same index.
func TestJoinedCalls(t *testing.T) {
	for _, name := range []string{"two", "shared_index"} {
		m, _ := providers[1].open(t, nil, providers[1].recorded(t, name))
		got, err := m.Reply(t.Context(), ask, nil)
		if err != nil || len(got.Calls) != 2 || got.Calls[0].Cmd != "pwd" || got.Calls[1].Cmd != "id -u" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// A last frame without its flag, and one without the mark of the stream's end,
// end a reply all the same.
func TestReasonOnly(t *testing.T) {
	for _, p := range providers {
		m, _ := p.open(t, nil, p.recorded(t, "reason_only"))
		if got, err := m.Reply(t.Context(), ask, nil); err != nil || got.Text != "ok" {
			t.Errorf("%s: got %+v, %v", p.name, got, err)
		}
	}
}
