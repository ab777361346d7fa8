//go:build ollama

package llm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	window "tether/context"
)

// TestRealOllama runs the protocol against a real Ollama at OLLAMA_HOST, which has
// the models that .ci/ollama makes.
func TestRealOllama(t *testing.T) {
	m, err := Open(t.Context(), Config{
		Model: "ollama/small", Window: 2048, MaxTokens: 32, Temperature: 1, Seed: 7, Constrain: "on", Commands: granted,
		CacheDir: cacheDir(), Log: func(s string) { t.Log(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	t.Run("replies", func(t *testing.T) { realReplies(t, m) })
	t.Run("cancel", func(t *testing.T) { realCancel(t, m) })
	t.Run("info", func(t *testing.T) {
		if i := m.Info(); i.Window != 2048 || i.Server != "ollama" || !i.Constrained || i.Native {
			t.Errorf("got %+v, want the window that was asked for", i)
		}
	})
	t.Run("overflow", func(t *testing.T) {
		long := window.Request{Messages: []window.Message{{Role: window.RoleUser, Text: strings.Repeat("seven 7 ", 3000)}}}
		_, err := m.Reply(t.Context(), long, nil)
		var se *ServerError
		if !errors.As(err, &se) || se.Class != Overflow {
			t.Errorf("got %v, want an overflow", err)
		}
	})
	t.Run("prompt", func(t *testing.T) { realPrompt(t, m) })
	t.Run("no template", func(t *testing.T) {
		_, err := Open(t.Context(), Config{Model: "ollama/bare", Window: 2048, Commands: granted})
		var ce *ConfigError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), "template") {
			t.Errorf("got %v, want that the model has no chat template", err)
		}
	})
}

// realPrompt holds that the server reads the whole request: its count grows with
// every message.
func realPrompt(t *testing.T, m *Model) {
	r := window.Request{Messages: []window.Message{
		{Role: window.RoleSystem, Text: "You work in a folder by running commands. Look at the files, change them, check the result."},
		{Role: window.RoleUser, Text: "Count the lines of the file a.txt."},
	}}
	last := 0
	for i := range 4 {
		got, err := m.Reply(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Usage.Prompt < last+20 {
			t.Errorf("request %d: %d tokens after %d, want what was added to be read", i, got.Usage.Prompt, last)
		}
		last = got.Usage.Prompt
		id := fmt.Sprintf("obs_%d", i)
		r.Messages = append(r.Messages,
			window.Message{Role: window.RoleAssistant, Call: &window.Call{Cmd: "sh wc -l a.txt"}, ID: id},
			window.Message{Role: window.RoleTool, Text: "12 a.txt and more words, so that it counts", ID: id})
	}
}
