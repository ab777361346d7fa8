package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	window "tether/context"
)

// TestWilson compares with values of the formula that are worked out elsewhere:
// the interval of Wilson's paper for n = 10, and its ends.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {9, 12, 0.4677, 0.9111}, {1, 1, 0.2065, 1}, {0, 0, 0, 1},
	} {
		low, high := wilson(c.k, c.n)
		if math.Abs(low-c.low) > 0.0001 || math.Abs(high-c.high) > 0.0001 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// TestPlot: well-formed, the words are text, and a name cannot leave its place.
func TestPlot(t *testing.T) {
	text := plot{Title: "a <b> & \"c\"", Note: "n", Bars: []plotBar{{Label: "</text><script>", Value: 3, Low: 1, High: 4, Text: "3 of 4"}, {Label: "none"}}}.svg()
	d := xml.NewDecoder(strings.NewReader(text))
	words, rects := "", 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if tok.Name.Local == "script" {
				t.Error("a label became an element")
			}
			if tok.Name.Local == "rect" {
				rects++
			}
		case xml.CharData:
			words += string(tok)
		}
	}
	for _, want := range []string{`a <b> & "c"`, "</text><script>", "3 of 4", "none", "prefers-color-scheme:dark"} {
		if !strings.Contains(words, want) {
			t.Errorf("the plot has no text %q", want)
		}
	}
	if rects != 4 {
		t.Errorf("%d rectangles, want two for each of two bars", rects)
	}
	// The longest bar is as long as its place; what is above it is not drawn beyond.
	if got := (plot{Max: 1, Bars: []plotBar{{Value: 2}}}).svg(); !strings.Contains(got, fmt.Sprintf(`width="%d.0"`, barWidth)) {
		t.Errorf("a value above the largest is not a full bar:\n%s", got)
	}
}

// A counting server is one that counts tokens by words and keeps the newest
// prompt, as llama-server does.
type countingServer struct {
	mu   sync.Mutex
	last []string
	held bool // it keeps prompts
	mute bool // and does not say so
	most int  // words above which there is never an answer; 0: none
}

func (s *countingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/props") {
		fmt.Fprint(w, `{"default_generation_settings":{"n_ctx":8192},"total_slots":1,"model_path":"fake.gguf","chat_template":"tool_calls"}`)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var req struct{ Messages []struct{ Content string } }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var words []string
	for _, m := range req.Messages {
		words = append(words, strings.Fields(m.Content)...)
	}
	if s.most > 0 && len(words) > s.most {
		<-r.Context().Done()
		return
	}
	same := 0
	for s.held && same < len(words)-1 && same < len(s.last) && s.last[same] == words[same] {
		same++
	}
	s.last = words
	details := fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, same)
	if s.mute {
		details = ""
	}
	fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"and so on\"}}]}\n\n")
	fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":48%s}}\n\ndata: [DONE]\n\n", len(words), details)
}

// TestBenchSpeed: a server that keeps what it has read is told from one that
// does not.
func TestBenchSpeed(t *testing.T) {
	for _, held := range []bool{true, false} {
		srv := httptest.NewServer(&countingServer{held: held})
		rows, _ := speedRows(t, srv.URL, "--sizes", "128,512")
		srv.Close()
		if len(rows) != 2 {
			t.Fatalf("%d rows, want 2", len(rows))
		}
		for i, size := range []int{128, 512} {
			r := rows[i]
			if math.Abs(float64(r.Prompt-size)) > 32 || r.Prefill <= 0 || r.Decode <= 0 {
				t.Errorf("size %d: %+v", size, r)
			}
			if want := map[bool]string{true: "works", false: "no"}[held]; r.keeps() != want {
				t.Errorf("held %v: the cache is told as %q, want %q: %+v", held, r.keeps(), want, r)
			}
			if held && (r.Again.Cached != r.Prompt-1 || r.Tail.Cached >= r.Again.Cached) {
				t.Errorf("again %d cached, with another end %d, of %d", r.Again.Cached, r.Tail.Cached, r.Prompt)
			}
		}
	}
}

// TestBenchSpeedHasAnEnd: a size for which the time is too short is left out with a
// word, and the rows of the smaller ones are there.
func TestBenchSpeedHasAnEnd(t *testing.T) {
	srv := httptest.NewServer(&countingServer{held: true, mute: true, most: 200})
	defer srv.Close()
	rows, said := speedRows(t, srv.URL, "--timeout", "500ms", "--sizes", "512,128")
	if len(rows) != 1 || rows[0].Size != 128 || rows[0].told() {
		t.Errorf("got %+v, want the smaller size, and nothing of the cache", rows)
	}
	if want := "no time for 512 tokens and more (500ms"; !strings.Contains(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
	if line := rows[0].line(); strings.Contains(line, "cached") || !strings.HasSuffix(line, "not told |\n") && !strings.HasSuffix(line, "by the time |\n") {
		t.Errorf("the row is %q", line)
	}
	// 4,000 tokens at 100 a second, and 3 times 48 at 16: what is held is read once.
	for _, c := range []struct {
		row  speedRow
		want time.Duration
	}{
		{speedRow{}, 0},
		{speedRow{Prompt: 100, Prefill: 100, Decode: 16, Again: speedCache{Cached: 99}, Tail: speedCache{Cached: 90}}, 57 * time.Second},
		{speedRow{Prompt: 100, Prefill: 100, Decode: 16, CacheTold: true}, 137 * time.Second},
	} {
		if got := c.row.needs(4000, 1); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.row, got, c.want)
		}
	}
}

// speedRows are the rows of bench speed against the server at url, and what it said
// beside them.
func speedRows(t *testing.T, url string, args ...string) ([]speedRow, string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: benchHome(t.TempDir())}
	if status := p.main(context.Background(), append([]string{"bench", "speed", "-m", "llama/@" + url, "--json"}, args...)); status != 0 {
		t.Fatalf("status %d\n%s", status, errs.String())
	}
	var rows []speedRow
	for line := range strings.Lines(out.String()) {
		var r speedRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows, errs.String()
}

// benchHome is an environment in which everything of tether's is in dir.
func benchHome(dir string) func(string) string {
	return func(name string) string {
		switch name {
		case "HOME", "TETHER_STATE":
			return dir
		case "PATH":
			return os.Getenv("PATH")
		}
		return ""
	}
}

// TestTasks: each task of the files can be solved, and its check tells the
// solved workspace from the one that nobody touched.
func TestTasks(t *testing.T) {
	solutions := solutionsOf(t)
	for _, file := range []string{"testdata/tasks.jsonl", "testdata/tasks-languages.jsonl", "testdata/tasks-unseen.jsonl"} {
		tasks, err := readTasks(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(tasks) != 12 {
			t.Errorf("%s has %d tasks, want 12", file, len(tasks))
		}
		for _, task := range tasks {
			calls := solutions[task.ID]
			if len(calls) == 0 {
				t.Errorf("%s has no solution", task.ID)
			}
			if r := benched(t, file, task.ID, calls); !r.Solved {
				t.Errorf("%s: the reference does not solve it: %s %+v", task.ID, r.Outcome.Stop, r.Outcome.Gates)
			}
			if r := benched(t, file, task.ID, nil); r.Right || r.Outcome.Gates[0].Tries == 0 || r.Outcome.Gates[0].Status >= 126 {
				t.Errorf("%s: untouched, its check must fail, and not because it cannot run: %+v", task.ID, r.Outcome.Gates)
			}
		}
	}
}

// solutionsOf are the calls that solve each task.
func solutionsOf(t *testing.T) map[string][]window.Call {
	t.Helper()
	text, err := os.ReadFile("testdata/tasks-solutions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]window.Call{}
	for line := range strings.Lines(string(text)) {
		var s struct {
			ID    string        `json:"id"`
			Calls []window.Call `json:"calls"`
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		all[s.ID] = s.Calls
	}
	return all
}

// benched is the row of a task with a script that makes calls and says done.
func benched(t *testing.T, file, id string, calls []window.Call) benchRow {
	t.Helper()
	dir := t.TempDir()
	var script []byte
	for _, c := range append(slices.Clip(calls), window.Call{Cmd: "done"}) {
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		script = append(append(script, line...), '\n')
	}
	name := filepath.Join(dir, "model.jsonl")
	if err := os.WriteFile(name, script, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	p := &program{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: benchHome(dir)}
	if status := p.main(context.Background(), []string{"bench", "tasks", file, "--only", id, "-m", "script:" + name, "--json", "--max-steps", fmt.Sprint(len(calls) + 1)}); status != 0 {
		t.Fatalf("%s: status %d\n%s", id, status, errs.String())
	}
	var r benchRow
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}
