package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A keepingServer counts four bytes as a token and keeps the newest prompt whole.
type keepingServer struct {
	mu   sync.Mutex
	last string
}

func (s *keepingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/props") {
		fmt.Fprint(w, `{"default_generation_settings":{"n_ctx":8192},"total_slots":1,"model_path":"fake.gguf","chat_template":"tool_calls"}`)
		return
	}
	var req struct{ Messages json.RawMessage }
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") || json.NewDecoder(r.Body).Decode(&req) != nil {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := string(req.Messages)
	kept := shared(s.last, now)
	s.last = now
	fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"and\"}}]}\n\n")
	fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\ndata: [DONE]\n\n", len(now)/4, kept/4)
}

// shared is the length of the beginning that a and b share, in bytes.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// TestBenchWindow: the same steps in each way of folding. What is cached is told apart
// from what is read anew, and folding every turn reads more anew than folding in
// batches, which reads more than never folding.
func TestBenchWindow(t *testing.T) {
	srv := httptest.NewServer(new(keepingServer))
	defer srv.Close()
	tree := t.TempDir()
	for i := range 20 {
		text := strings.Repeat(fmt.Sprintf("file %d has lines that return something\n", i), 60)
		if err := os.WriteFile(filepath.Join(tree, fmt.Sprintf("f%02d.txt", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bench := func(args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		p := &program{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: benchHome(t.TempDir())}
		status := p.main(t.Context(), append([]string{"bench", "window", "-m", "llama/@" + srv.URL, "-C", tree}, args...))
		return out.String(), errs.String(), status
	}
	out, errs, status := bench("--window", "4096", "--json")
	if status != 0 {
		t.Fatalf("status %d\n%s", status, errs)
	}
	var rows []windowRow
	for line := range strings.Lines(out) {
		var r windowRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) != 3 {
		t.Fatalf("%d rows, want 3:\n%s", len(rows), out)
	}
	for i, mode := range []string{"batch", "every-turn", "off"} {
		r := rows[i]
		if r.Mode != mode || r.Window != 4096 || len(r.Requests) != windowTurns+1 || r.Folds == 0 || r.Cached >= r.Prompt {
			t.Errorf("%s: %d requests, %d folds, %d of %d tokens cached", r.Mode, len(r.Requests), r.Folds, r.Cached, r.Prompt)
		}
		if fresh := r.Prompt - r.Cached; fresh < r.Append*9/10 {
			t.Errorf("%s: %d tokens read anew, and %d without a fold", r.Mode, fresh, r.Append)
		}
	}
	if batch, every := rows[0].Prompt-rows[0].Cached, rows[1].Prompt-rows[1].Cached; batch >= every {
		t.Errorf("%d tokens are read anew in batches, %d with every turn", batch, every)
	}
	out, errs, status = bench("--window", "4096", "--only", "batch")
	if status != 0 || strings.Count(out, "\n") != 3 || !strings.Contains(out, "| 4096 | batch, down to 45 % |") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if _, errs, status = bench("--only", "never"); status != 2 || !strings.Contains(errs, "fold_mode") {
		t.Errorf("status %d\n%s", status, errs)
	}
}
