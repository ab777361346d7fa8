package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	window "tether/context"
)

// TestProse: a request for a text offers no tool and binds nothing, whatever the
// form of the calls is, and its reply is the text, no miss.
func TestProse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.jsonl")
	lines := `{"text":"It was read; it holds {\"cmd\": 3."}` + "\n" + `{"text":"<think>So.</think>It was <b>read</b>."}` + "\n" + `{"cmd":"ls"}` + "\n"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), Config{Model: "script:" + file, Commands: []string{"sh", "done"}})
	if err != nil {
		t.Fatal(err)
	}
	req := window.Request{Prose: true, Messages: []window.Message{{Role: window.RoleSystem, Text: "Sum up."}, {Role: window.RoleUser, Text: "It."}}}
	for _, f := range []form{native, constrained, plain} {
		for _, server := range []string{"ollama", "llama-server", "openai"} {
			m.form, m.wire.Server, m.wire.MaxTokens = f, server, 4096
			body, err := m.Body(req)
			if err != nil {
				t.Fatal(err)
			}
			for _, not := range []string{`"tools"`, `"format"`, "response_format", window.Text("reply_form", nil), "4096"} {
				if strings.Contains(string(body), not) {
					t.Errorf("%s, %s: %s has %q", server, f, body, not)
				}
			}
			if !strings.Contains(string(body), "1024") {
				t.Errorf("%s, %s: no bound in %s", server, f, body)
			}
			again, err := Encode(m.Wire(), "prose", req)
			if err != nil || string(again) != string(body) {
				t.Errorf("%s, %s: computed again it is %s, %v", server, f, again, err)
			}
		}
	}
	m.wire.Server, m.wire.Think = "ollama", "on"
	body, err := m.Body(req)
	again, bad := Encode(m.Wire(), "prose quiet", req)
	if err != nil || bad != nil || !strings.Contains(string(body), `"think":false`) || string(again) != string(body) {
		t.Errorf("a model that thinks is asked %s, and computed again %s, %v, %v", body, again, err, bad)
	}
	m.wire.Server, m.wire.Think = "script", ""
	for i, want := range []string{`It was read; it holds {"cmd": 3.`, "It was <b>read</b>."} {
		reply, err := m.Reply(t.Context(), req, nil)
		if err != nil || reply.Text != want || reply.Miss != "" || reply.Nudge != "" || len(reply.Calls) > 0 || reply.Shape != "prose" || m.misses != 0 {
			t.Errorf("reply %d: %+v, %v; %d misses", i+1, reply, err, m.misses)
		}
	}
	if reply, err := m.Reply(t.Context(), req, nil); err != nil || len(reply.Calls) != 1 {
		t.Errorf("a call in its place: %+v, %v", reply, err)
	}
}
