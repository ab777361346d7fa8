package llm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	window "tether/context"
)

// scriptOf writes a script and opens it.
func scriptOf(t *testing.T, lines ...string) (*Model, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(t.Context(), Config{Model: "script:" + path, Commands: granted})
}

func TestScript(t *testing.T) {
	m, err := scriptOf(t,
		`{"cmd":"write a.txt","stdin":"one\n"}`,
		``,
		`{"text":"I think it is done."}`,
		`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"act","arguments":{"cmd":"sh ls"}}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"act","arguments":"{\"cmd\":\"read a.txt\"}"}}]}`,
		"{\"role\":\"assistant\",\"content\":\"```json\\n{\\\"name\\\":\\\"act\\\",\\\"arguments\\\":{\\\"cmd\\\":\\\"done\\\"}}\\n```\"}",
		`{"role":"assistant","content":"half of","finish_reason":"length"}`,
		`{"text":""}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []window.Reply{
		{Calls: []window.Call{{Cmd: "write a.txt", Stdin: "one\n"}}},
		{Text: "I think it is done.", Nudge: nudge("no_call", granted)},
		{Calls: []window.Call{{Cmd: "sh ls"}}},
		{Calls: []window.Call{{Cmd: "read a.txt"}}},
		{Calls: []window.Call{{Cmd: "done"}}, Recovered: "fenced JSON"},
		{Text: "half of", Cut: true, Nudge: nudge("cut", granted)},
		{Nudge: nudge("empty", granted)},
	} {
		got, err := m.Reply(t.Context(), ask, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Calls) != len(want.Calls) || len(got.Calls) > 0 && got.Calls[0] != want.Calls[0] ||
			got.Text != want.Text || got.Nudge != want.Nudge || got.Recovered != want.Recovered || got.Cut != want.Cut {
			t.Errorf("reply %d: got %+v, want %+v", i, got, want)
		}
		if got.Usage != (window.Usage{}) {
			t.Errorf("reply %d: a script costs nothing, got %+v", i, got.Usage)
		}
	}
	_, err = m.Reply(t.Context(), ask, nil)
	if !errors.Is(err, ErrScriptEnded) || !strings.Contains(err.Error(), "it holds 7,") {
		t.Errorf("got %v, want that the script held 7 replies", err)
	}
}

func TestBadScript(t *testing.T) {
	for _, bad := range []string{`{"cmd":"ls"`, `{"cmd":"ls","stdni":"x"}`, `{}`, `[]`, `nonsense`, `{"role":"user","content":"x"}`, `{"text":5}`} {
		_, err := scriptOf(t, `{"cmd":"ls"}`, bad)
		var wrong *ConfigError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "s.jsonl:2: ") {
			t.Errorf("%s: got %v, want a ConfigError with the line", bad, err)
		}
	}
	_, err := Open(t.Context(), Config{Model: "script:" + filepath.Join(t.TempDir(), "absent")})
	var wrong *ConfigError
	if !errors.As(err, &wrong) {
		t.Errorf("got %v, want a ConfigError", err)
	}
}
