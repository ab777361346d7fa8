package harness_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/harness"
	"tether/harness/llm"
)

// A served case is a line of testdata/window_cases.jsonl, which was handed over: what
// a server says of itself, refuses and answers, and what is right.
type served struct {
	ID    string
	Input struct {
		Type, API string
		Chunks    []string
		Responses []struct {
			Status int
			Body   json.RawMessage
		}
		Response json.RawMessage
		Steps    []struct {
			Get  string
			Body json.RawMessage
		}
	}
	Expect struct {
		Effective int                                        `json:"effective_limit"`
		Below     int                                        `json:"next_request_tokens_below"`
		Contains  string                                     `json:"request_must_contain"`
		Identical int                                        `json:"max_identical_requests"`
		Visible   string                                     `json:"visible"`
		Calls     []struct{ Arguments struct{ Cmd string } } `json:"calls"`
	}
}

// TestServedCases plays every handed case about windows and servers, with the whole of
// tether against a server that answers as the case says. A case without an entry here
// has a test elsewhere, which is named.
func TestServedCases(t *testing.T) {
	play := map[string]func(*testing.T, served){
		"c01": cutSilently, "c03": taskStays, "c05": refusedOnce, "c07": refusedOnce, "c25": neverTheSame, "c09": slotCounts,
		"c11": prefixStays, "c13": sessionsBeginAlike, "c17": prefixStays,
		"g01": withoutTools, "g19": withoutTools, "g07": askedAgain, "g11": askedAgain, "g15": askedAgain, "g13": endsWithoutDone,
	}
	elsewhere := map[string]string{
		"c15": "context", "c19": "context", "c21": "context", "c23": "context", // compact_test.go
		"g03": "llm", "g05": "llm", "g09": "llm", "g17": "llm", // fault_cases_test.go
	}
	f, err := os.Open("testdata/window_cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, n := bufio.NewScanner(f), 0
	for ; lines.Scan(); n++ {
		var c served
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if test, ok := play[c.ID]; ok {
			t.Run(c.ID, func(t *testing.T) { test(t, c) })
		} else if elsewhere[c.ID] == "" {
			t.Errorf("nothing plays %s", c.ID)
		}
	}
	if n != len(play)+len(elsewhere) || n != 23 {
		t.Errorf("%d cases, %d played here and %d elsewhere", n, len(play), len(elsewhere))
	}
}

// A stand is a server of a model that reads ever more of a file. It refuses requests of
// more than holds tokens with the words of a case, in the form of llama-server, or of
// Ollama where ollama is set.
type stand struct {
	*httptest.Server
	ollama bool
	says   int // tokens that it says it holds
	holds  int // and those that it does
	refuse []string
	status int
	first  []string // replies before those of the script, as they stand on the wire
	limit  int      // replies; then done

	mu     sync.Mutex
	bodies []string
	calls  int
}

func newStand(t *testing.T, s *stand) *stand {
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// tokens is how a stand counts: denser than is estimated at first.
func tokens(body string) int { return len(body) * 10 / 28 }

func (s *stand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	about := map[string]string{
		"/api/version": `{"version":"0.33.3"}`,
		"/api/show":    fmt.Sprintf(`{"capabilities":["completion","tools"],"model_info":{"qwen3.context_length":%d}}`, s.says),
		"/api/ps":      `{"models":[]}`,
		"/props":       fmt.Sprintf(`{"default_generation_settings":{"n_ctx":%d},"total_slots":1,"model_alias":"m","chat_template_caps":{"supports_tools":true,"supports_tool_calls":true}}`, s.says),
		"/slots":       fmt.Sprintf(`[{"id":0,"n_ctx":%d}]`, s.says),
		"/v1/models":   `{"data":[{"id":"m"}]}`,
	}
	if text, ok := about[r.URL.Path]; ok {
		io.WriteString(w, text)
		return
	}
	body, _ := io.ReadAll(r.Body) // a broken request shows as one that is wrong
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, string(body))
	n := tokens(string(body))
	switch {
	case len(s.first) > 0:
		io.WriteString(w, s.first[0])
		s.first = s.first[1:]
	case s.holds > 0 && n > s.holds:
		w.WriteHeader(s.status)
		io.WriteString(w, s.refuse[0])
		if len(s.refuse) > 1 {
			s.refuse = s.refuse[1:]
		}
	default:
		s.calls++
		cmd := fmt.Sprintf("read big.txt %d:%d", s.calls*10, s.calls*10+60)
		if s.limit > 0 && s.calls >= s.limit {
			cmd = "done"
		}
		io.WriteString(w, s.call(cmd, n))
	}
}

// call is a reply on the wire that makes a call.
func (s *stand) call(cmd string, prompt int) string {
	if s.ollama {
		return fmt.Sprintf(`{"model":"m","message":{"role":"assistant","tool_calls":[{"function":{"name":"act","arguments":{"cmd":%q}}}]},"done":true,"done_reason":"stop","prompt_eval_count":%d,"eval_count":9}`, cmd, prompt)
	}
	return fmt.Sprintf(`{"model":"m","choices":[{"message":{"reasoning_content":"long thought","tool_calls":[{"id":"1","function":{"name":"act","arguments":"{\"cmd\":\"%s\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":%d,"completion_tokens":9}}`, cmd, prompt)
}

// run carries a task out with a model of the server, as tether run does.
func (s *stand) run(t *testing.T, task string, steps int, set func(*harness.Agent)) (harness.Outcome, harness.History, error) {
	t.Helper()
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "big.txt"), []byte(strings.Repeat("a line of the file\n", 900)), 0o644); err != nil {
		t.Fatal(err)
	}
	a, _ := agent(t, ws, "/dev/null")
	c := llm.Config{Model: "llama/m@" + s.URL, Window: 32768, Commands: a.Shell.Names()}
	if s.ollama {
		c.Model, c.OllamaURL = "ollama/m", s.URL
	}
	m, err := llm.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	a.Model, a.Budget.Window, a.Limits.Steps = m, m.Info().Window, steps
	a.Setup.System, a.Setup.Wire = "You work by commands.", m.Wire()
	if set != nil {
		set(a)
	}
	out, err := a.Do(t.Context(), task)
	h := history(t, a)
	for i, body := range s.bodies { // what was sent can be shown again
		if len(s.bodies) != len(h.Sent) {
			break // a request was asked twice within one Reply
		}
		req, err := h.Window(i + 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := llm.Encode(h.Sent[i].Wire, h.Received[i].Shape, req); h.Received[i].Shape != "" && (err != nil || string(got) != body) {
			t.Fatalf("request %d was\n%.2000s\nand is shown as\n%.2000s\n%v", i+1, body, got, err)
		}
	}
	return out, h, err
}

// cutSilently, c01: num_ctx is sent, and an answer to a part of the prompt is an error.
func cutSilently(t *testing.T, c served) {
	response := string(c.Input.Response)
	s := newStand(t, &stand{ollama: true, says: 16384, first: []string{response, response}})
	out, h, err := s.run(t, "Look around.", 4, func(a *harness.Agent) {
		a.Setup.System = strings.Repeat("You work by commands, and this is one of many rules. ", 600)
	})
	var cut *harness.TruncatedError
	if !errors.As(err, &cut) || cut.Read != 4096 || len(h.Turns) != 0 || !strings.Contains(s.bodies[0], `"num_ctx":16384`) {
		t.Errorf("%d requests, %+v, %v", len(s.bodies), out, err)
	}
}

// taskStays, c03: at 4,096 tokens, over 20 turns of 900 each, the server is never given
// a chance to cut.
func taskStays(t *testing.T, c served) {
	s := newStand(t, &stand{ollama: true, says: 4096, holds: 4096, status: 500, refuse: []string{`{"error":"too long"}`}})
	out, h, err := s.run(t, c.Expect.Contains+" in pkg/x", 20, nil)
	if err != nil || out.Steps != 20 || len(h.Turns) < 20 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, body := range s.bodies {
		if !strings.Contains(body, c.Expect.Contains) || !strings.Contains(body, `"truncate":false`) || !strings.Contains(body, `"num_ctx":4096`) || tokens(body) > 4096 {
			t.Errorf("request %d, %d tokens: %.300s", i+1, tokens(body), body)
		}
	}
}

// refusedOnce, c05 and c07: the window is what the server says, the past is folded and
// it is asked once more.
func refusedOnce(t *testing.T, c served) {
	holds := max(c.Expect.Below, 9000)
	s := newStand(t, &stand{says: 32768, holds: holds, status: c.Input.Responses[0].Status, refuse: []string{string(c.Input.Responses[0].Body)}})
	out, h, err := s.run(t, "Look around.", 60, func(a *harness.Agent) { a.Budget.Reserve = 1000 })
	if err != nil || out.Stop != harness.Steps {
		t.Fatalf("%+v, %v", out, err)
	}
	refused := 0
	for i, r := range h.Received {
		if r.Overflow == 0 {
			continue
		}
		refused++
		if before, after := tokens(s.bodies[i]), tokens(s.bodies[i+1]); after >= before || after > holds {
			t.Errorf("after a request of %d tokens, which was refused, one of %d was sent", before, after)
		}
		if c.Expect.Below > 0 && h.Sent[i+1].Window != c.Expect.Below {
			t.Errorf("the window is %d, want %d", h.Sent[i+1].Window, c.Expect.Below)
		}
	}
	if refused == 0 {
		t.Errorf("%d requests, and none was too long", len(s.bodies))
	}
}

// neverTheSame, c25: a server that always refuses is not asked the same twice.
func neverTheSame(t *testing.T, c served) {
	s := newStand(t, &stand{says: 40000, holds: 7000, status: c.Input.Responses[0].Status, refuse: []string{string(c.Input.Responses[0].Body)}})
	out, _, err := s.run(t, "Look around.", 60, func(a *harness.Agent) {
		a.Budget.Window = 40000
		a.Notify = func(e harness.Event) {
			if e.Type == harness.EventWarning {
				s.mu.Lock()
				s.holds = 1
				s.mu.Unlock()
			}
		}
	})
	if err == nil || out.Stop != harness.Failed || !strings.Contains(out.Error, "larger window") {
		t.Errorf("%+v, %v", out, err)
	}
	slices.Sort(s.bodies)
	if once := slices.Compact(slices.Clone(s.bodies)); len(s.bodies)-len(once) >= c.Expect.Identical {
		t.Errorf("%d requests, %d different ones", len(s.bodies), len(once))
	}
}

// slotCounts, c09: the window is that of a slot.
func slotCounts(t *testing.T, c served) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, step := range c.Input.Steps {
			if step.Get == r.URL.Path {
				w.Write(step.Body)
			}
		}
	}))
	defer srv.Close()
	m, err := llm.Open(t.Context(), llm.Config{Model: "llama/@" + srv.URL, Window: 32768})
	if err != nil || m.Info().Window != c.Expect.Effective {
		t.Errorf("%v, want a window of %d", err, c.Expect.Effective)
	}
}

// prefixStays, c11 and c17: each request begins with all of the one before, whatever
// the time is and whatever the model thought.
func prefixStays(t *testing.T, _ served) {
	for _, ollama := range []bool{true, false} {
		s := newStand(t, &stand{ollama: ollama, says: 32768, limit: 6})
		if out, _, err := s.run(t, "Look around.", 9, nil); err != nil || out.Stop != harness.Done {
			t.Fatalf("%+v, %v", out, err)
		}
		for i := 1; i < len(s.bodies); i++ {
			if before := said(t, s.bodies[i-1]); !strings.HasPrefix(said(t, s.bodies[i]), before) || len(before) < 100 {
				t.Errorf("request %d does not begin with\n%s", i+1, before)
			}
		}
	}
}

// said are the messages of a body, without what closes their list.
func said(t *testing.T, body string) string {
	t.Helper()
	var b struct{ Messages json.RawMessage }
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(b.Messages), "]")
}

// sessionsBeginAlike, c13: the first request of two sessions is the same, and no id of
// a session stands in it.
func sessionsBeginAlike(t *testing.T, _ served) {
	var first []string
	for range 2 {
		s := newStand(t, &stand{says: 8192, limit: 1})
		id := ""
		if _, _, err := s.run(t, "Look around.", 1, func(a *harness.Agent) { id = a.Session.ID }); err != nil {
			t.Fatal(err)
		}
		if first = append(first, s.bodies[0]); strings.Contains(s.bodies[0], id) {
			t.Errorf("the session's id %s is in %s", id, s.bodies[0])
		}
	}
	if first[0] != first[1] {
		t.Errorf("two sessions begin with\n%s\nand\n%s", first[0], first[1])
	}
}

// withoutTools, g01 and g19: a model that takes no tools is asked once more without
// them, and its call is read from text.
func withoutTools(t *testing.T, c served) {
	r := c.Input.Responses
	s := newStand(t, &stand{ollama: strings.Contains(string(r[1].Body), `"done_reason"`), says: 8192, holds: 1, status: r[0].Status, refuse: []string{string(r[0].Body)}})
	s.holds = -1 // the first request is refused whatever its size
	s.first = []string{string(r[1].Body)}
	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "chat") || strings.HasSuffix(req.URL.Path, "completions") {
			s.mu.Lock()
			first := s.status > 0
			if first {
				body, _ := io.ReadAll(req.Body)
				s.bodies = append(s.bodies, string(body))
				w.WriteHeader(s.status)
				w.Write(r[0].Body)
				s.status = 0
			}
			s.mu.Unlock()
			if first {
				return
			}
		}
		s.ServeHTTP(w, req)
	}))
	defer refused.Close()
	s.Server = refused
	_, h, err := s.run(t, "Look around.", 1, nil)
	if err != nil || len(s.bodies) != 2 || !strings.Contains(s.bodies[0], `"tools"`) || strings.Contains(s.bodies[1], `"tools"`) {
		t.Fatalf("%v, %d requests: %.500q", err, len(s.bodies), s.bodies)
	}
	if len(h.Turns) != 1 || !strings.HasSuffix(h.Turns[0].Call.Cmd, c.Expect.Calls[0].Arguments.Cmd) {
		t.Errorf("turns %+v", h.Turns)
	}
}

// askedAgain, g07, g11 and g15: a reply that is an error, breaks off in a thought, or
// is empty, is asked for once more.
func askedAgain(t *testing.T, c served) {
	s := newStand(t, &stand{says: 8192, first: []string{strings.Join(c.Input.Chunks, "")}})
	out, h, err := s.run(t, "Look around.", 1, nil)
	if err != nil || len(s.bodies) != 2 || len(h.Turns) != 1 || h.Turns[0].Call.Cmd != "read big.txt 10:70" {
		t.Errorf("%+v, %v, %d requests, turns %+v", out, err, len(s.bodies), h.Turns)
	}
}

// endsWithoutDone, g13: done_reason ends a turn as well as done does.
func endsWithoutDone(t *testing.T, c served) {
	s := newStand(t, &stand{ollama: true, says: 8192, first: []string{strings.Join(c.Input.Chunks, "")}})
	_, h, err := s.run(t, "Look around.", 1, nil)
	if err != nil || h.Received[0].Text != c.Expect.Visible {
		t.Errorf("%v, %+v", err, h.Received)
	}
}
