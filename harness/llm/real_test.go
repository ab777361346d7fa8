package llm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	window "tether/context"
)

// TestRealServer runs the protocol against a real llama-server with a real
// model, which tether starts and stops. The model is the one that
// TETHER_TEST_GGUF names, or the smallest one of the catalogue.
func TestRealServer(t *testing.T) {
	path := os.Getenv("TETHER_TEST_GGUF")
	if path == "" {
		path = smallModel(t)
	}
	m, err := Open(t.Context(), Config{
		Model: "gguf:" + path, Window: 2048, MaxTokens: 32, Temperature: 1, Seed: 7, Constrain: "on", Commands: granted,
		CacheDir: cacheDir(), Log: func(s string) { t.Log(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	t.Run("info", func(t *testing.T) {
		if i := m.Info(); i.Window != 2048 || i.Server != "llama-server" || !i.Constrained {
			t.Errorf("got %+v, want the window that was asked for", i)
		}
	})
	t.Run("tokenize", func(t *testing.T) {
		if n, err := m.Tokens(t.Context(), "hello world"); err != nil || n < 2 || n > 4 {
			t.Errorf("got %d, %v, want 2 to 4 tokens", n, err)
		}
	})
	t.Run("replies", func(t *testing.T) { realReplies(t, m) })
	t.Run("fenced", func(t *testing.T) { realFenced(t, m) })
	t.Run("cache", func(t *testing.T) { realCache(t, m) })
	t.Run("cancel", func(t *testing.T) { realCancel(t, m) })
	t.Run("overflow", func(t *testing.T) {
		long := window.Request{Messages: []window.Message{{Role: window.RoleUser, Text: fmt.Sprintf("%03000d", 7)}}}
		_, err := m.Reply(t.Context(), long, nil)
		var se *ServerError
		if !errors.As(err, &se) || se.Class != Overflow || se.Limit != 2048 {
			t.Errorf("got %v, want an overflow of 2048 tokens", err)
		}
	})
}

// realReplies holds that a model which cannot call at all, sampled at random,
// still sends nothing but calls and cut replies.
func realReplies(t *testing.T, m *Model) {
	calls, cut := 0, 0
	for i := range 20 {
		r := window.Request{Messages: []window.Message{
			{Role: window.RoleSystem, Text: "You work in a folder by running commands."},
			{Role: window.RoleUser, Text: "List the \"files\" and count them."},
			{Role: window.RoleAssistant, Call: &window.Call{Cmd: "sh ls"}, ID: "obs_1"},
			{Role: window.RoleTool, Text: fmt.Sprintf("a.go\nb%d.go\nNext command?", i), ID: "obs_1"},
		}}
		got, err := m.Reply(t.Context(), r, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case got.Cut && len(got.Calls) == 0:
			cut++
		case len(got.Calls) == 1 && got.Recovered == "" && has(granted, firstWord(got.Calls[0].Cmd)):
			calls++
		default:
			t.Errorf("reply %d: %+v", i, got)
		}
		if u := got.Usage; u.Prompt == 0 || u.Output == 0 || u.FirstToken <= 0 {
			t.Errorf("reply %d: usage %+v", i, u)
		}
	}
	t.Logf("%d calls, %d cut at %d tokens", calls, cut, m.cfg.MaxTokens)
	if calls == 0 {
		t.Error("no reply held a call")
	}
}

// realFenced holds the same of the fenced form, and that no reply begins with what is
// left out.
func realFenced(t *testing.T, m *Model) {
	f := &Model{cfg: m.cfg, send: m.send, info: m.info, wire: m.wire, form: fenced}
	calls := 0
	for i := range 20 {
		r := window.Request{Without: []string{"ls", "cat >", "The"}, Messages: []window.Message{
			{Role: window.RoleSystem, Text: "Reply with one bash command in a code block."},
			{Role: window.RoleUser, Text: fmt.Sprintf("List the \"files\", ls, of folder %d.", i)},
		}}
		got, err := f.Reply(t.Context(), r, nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case len(got.Calls) == 0 && !got.Cut:
			t.Errorf("reply %d: %+v", i, got)
		case len(got.Calls) > 0:
			calls++
			for _, word := range r.Without {
				if strings.HasPrefix(got.Calls[0].Cmd, word) {
					t.Errorf("reply %d is %q, and %q was left out", i, got.Calls[0].Cmd, word)
				}
			}
		}
	}
	t.Logf("%d of 20 replies are calls", calls)
	if calls == 0 {
		t.Error("no reply held a call")
	}
}

// realCache holds that a second request, which goes on from the first, is
// read from where the first one ended.
func realCache(t *testing.T, m *Model) {
	r := window.Request{Messages: []window.Message{
		{Role: window.RoleSystem, Text: "You work in a folder by running commands. Look at the files, change them, check the result."},
		{Role: window.RoleUser, Text: "Count the lines of the file a.txt and write the number to the file n.txt."},
	}}
	first, err := m.Reply(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Messages = append(r.Messages,
		window.Message{Role: window.RoleAssistant, Call: &window.Call{Cmd: "sh wc -l a.txt"}, ID: "obs_1"},
		window.Message{Role: window.RoleTool, Text: "12 a.txt", ID: "obs_1"})
	second, err := m.Reply(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("prompt %d, then %d of which %d cached", first.Usage.Prompt, second.Usage.Prompt, second.Usage.Cached)
	if got, want := second.Usage.Cached, first.Usage.Prompt-1; got < want {
		t.Errorf("%d tokens cached, want the %d of the first prompt", got, want)
	}
}

// realCancel holds that a reply can be ended at once, and that the server is
// ready again.
func realCancel(t *testing.T, m *Model) {
	ctx, cancel := context.WithCancel(t.Context())
	var cancelled time.Time
	_, err := m.Reply(ctx, ask, func(string) {
		if cancelled.IsZero() {
			cancelled = time.Now()
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || time.Since(cancelled) > time.Second {
		t.Errorf("got %v after %v, want the context's error within 1 s", err, time.Since(cancelled))
	}
	if _, err := m.Reply(t.Context(), ask, nil); err != nil {
		t.Errorf("after a cancelled reply: %v", err)
	}
}
