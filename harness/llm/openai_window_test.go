package llm

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestTrainedWindow: of llama-server too nothing is asked that its model was not
// made for, and a guess at the size of a slot is told.
func TestTrainedWindow(t *testing.T) {
	for _, c := range []struct {
		routes map[string]string
		want   int
		words  string // for the user
	}{
		{map[string]string{"/slots": `{"error":{"code":501}}`}, 8192, "each of its 4 slots"},
		{map[string]string{"/v1/models": `{"data":[{"id":"m","meta":{"n_ctx_train":2048}}]}`}, 2048, ""},
		{map[string]string{"/v1/models": `{"data":[{"id":"m","meta":{"n_ctx_train":131072}}]}`}, 8000, ""},
		{map[string]string{"/v1/models": `{"data":[{"id":"m","meta":null}]}`}, 8000, ""},
	} {
		words := ""
		m, _ := providers[1].with(c.routes).open(t, func(cfg *Config) { cfg.Window, cfg.Log = 16000, func(s string) { words += s } })
		if got := m.Info().Window; got != c.want || !strings.Contains(words, c.words) || c.words == "" && words != "" {
			t.Errorf("%v: %d tokens, want %d; the user reads %q", c.routes, got, c.want, words)
		}
	}
}

// TestNumCtx: Ollama is told the window, the same in every request, and told
// neither to cut nor to shift.
func TestNumCtx(t *testing.T) {
	p := providers[0]
	text := p.recorded(t, "text")
	m, f := p.open(t, func(c *Config) { c.Window = 12345 }, text, text)
	for range 2 {
		if _, err := m.Reply(t.Context(), ask, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, body := range f.chats() {
		var req struct {
			Options   map[string]any `json:"options"`
			Truncate  *bool          `json:"truncate"`
			Shift     *bool          `json:"shift"`
			KeepAlive string         `json:"keep_alive"`
		}
		if err := json.Unmarshal([]byte(body), &req); err != nil {
			t.Fatal(err)
		}
		if req.Options["num_ctx"] != 12345.0 || req.Truncate == nil || *req.Truncate || req.Shift == nil || *req.Shift || req.KeepAlive != "30m0s" {
			t.Errorf("request %d: %s", i+1, body)
		}
	}
}

// TestLoadedWindow: what Ollama has loaded the model with is looked at after the
// first reply, and counts where it is less than was asked for.
func TestLoadedWindow(t *testing.T) {
	for body, want := range map[string]int{
		`{"models":[{"name":"other","context_length":100},{"name":"m:1b","model":"m:1b","context_length":4096}]}`: 4096,
		`{"models":[{"name":"m:1b","context_length":8192}]}`:                                                      0,
		`{"models":[{"name":"m:1b"}]}`:                                                                            0, // an older server
		`{"models":[]}`:                                                                                           0,
		`<html>`:                                                                                                  0,
		`{"models":[{"name":"x:1b","context_length":4096}]}`:                                                      0,
	} {
		p := providers[0].with(map[string]string{"/api/ps": body})
		text := p.recorded(t, "text")
		m, _ := p.open(t, nil, text, text)
		rep, err := m.Reply(t.Context(), ask, nil)
		if err != nil || rep.Window != want {
			t.Errorf("%s: the reply says %d, %v; want %d", body, rep.Window, err, want)
		}
		if got := m.Info().Window; want > 0 && got != want {
			t.Errorf("%s: the model says %d", body, got)
		}
		if rep, err = m.Reply(t.Context(), ask, nil); err != nil || rep.Window != 0 {
			t.Errorf("%s: it is told again: %d, %v", body, rep.Window, err)
		}
	}
}
