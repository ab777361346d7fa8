package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// examined is a llama-server with the habits of one sort.
type examined struct {
	forgets bool // its template renders the past anew
	free    bool // it ignores the schema
	mute    bool // it says nothing of its cache
	slow    bool // it never answers
}

func (e examined) serve(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("/props", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"default_generation_settings":{"n_ctx":4096},"total_slots":1,"model_alias":"m","chat_template_caps":{"supports_tools":true,"supports_tool_calls":true}}`)
	})
	mux.HandleFunc("/apply-template", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages   []json.RawMessage `json:"messages"`
			Generation *bool             `json:"add_generation_prompt"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Generation == nil || *body.Generation {
			t.Errorf("a template is applied with %v, %v", body.Generation, err)
		}
		var b strings.Builder
		for i, m := range body.Messages {
			fmt.Fprintf(&b, "<%s>", m)
			if e.forgets && i == len(body.Messages)-2 {
				b.WriteString("<think></think>")
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"prompt": b.String()}) // the other end has its own error
	})
	asked := 0
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the client is not seen
		if asked++; e.slow {
			<-r.Context().Done()
			return
		}
		said, usage := `{\"cmd\":\"done\",\"args\":\"\",\"stdin\":\"\"}`, `,"prompt_tokens_details":{"cached_tokens":30}`
		if e.free {
			said = "I am done."
		}
		if e.mute || asked == 1 {
			usage = ""
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":9%s}}\n\ndata: [DONE]\n\n", said, usage)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// TestInspect: what a server does with requests is found out, and what cannot be
// found out is not called a fault.
func TestInspect(t *testing.T) {
	for _, c := range []struct {
		name                          string
		server                        examined
		window                        int
		holds, prefix, bound, reuses  bool
		window2, prefix2, bound2, re2 string
	}{
		{"as it should be", examined{}, 4096, true, true, true, true, "4096 tokens, asked for 4096", "the whole of the one before", "one call: done", "30 of 40 tokens"},
		{"less than is asked for", examined{}, 8192, false, true, true, true, "4096 tokens, asked for 8192", "", "", ""},
		{"a template that renders the past anew", examined{forgets: true}, 4096, true, false, true, true, "", "% of the one before it", "", ""},
		{"no schema", examined{free: true}, 4096, true, true, false, true, "", "", "I am done.", ""},
		{"no word of the cache", examined{mute: true}, 4096, true, true, true, false, "", "", "", "does not say"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Open(t.Context(), Config{Model: "llama/m@" + c.server.serve(t), Window: c.window, MaxTokens: 64, Constrain: "on", Commands: []string{"sh", "done"}})
			if err != nil {
				t.Fatal(err)
			}
			got := m.Inspect(t.Context())
			for _, f := range []struct {
				what string
				got  Finding
				ok   bool
				said string
			}{{"window", got.Window, c.holds, c.window2}, {"prefix", got.Prefix, c.prefix, c.prefix2}, {"bound", got.Bound, c.bound, c.bound2}, {"cached", got.Cached, c.reuses, c.re2}} {
				if !f.got.Known || f.got.OK != f.ok || !strings.Contains(f.got.Said, f.said) {
					t.Errorf("%s: got %+v, want %v, %q", f.what, f.got, f.ok, f.said)
				}
			}
		})
	}
}

// TestInspectHasAnEnd: a server that does not answer is no fault that is known.
func TestInspectHasAnEnd(t *testing.T) {
	m, err := Open(t.Context(), Config{Model: "llama/m@" + examined{slow: true}.serve(t), Window: 4096, MaxTokens: 64, Constrain: "on", Commands: []string{"done"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := m.Inspect(ctx); got.Bound.Known || got.Cached.Known || !strings.Contains(got.Bound.Said, "no answer") {
		t.Errorf("got %+v", got)
	}
}
