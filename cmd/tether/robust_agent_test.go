//go:build failpoint

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"tether/harness"
)

// taskActs is how many commands a task of the job needs.
const taskActs = 6

// An agentSession is a task of an agent slot. Its acts append their own name to
// a file, so that it shows how often each was run.
type agentSession struct {
	slot, n int
	id      string // "" until tether has said it
	model   string // "" is the fickle one
}

// agent starts a task, or takes one up again that was interrupted, and follows
// it to its end.
func (j *trial) agent(ctx context.Context, slot int) {
	s := agentSession{slot: slot}
	j.mu.Lock()
	for i, old := range j.sessions {
		if old.slot == slot {
			s = old
			j.sessions = append(j.sessions[:i:i], j.sessions[i+1:]...)
			break
		}
	}
	if s.id == "" {
		j.started++
		s.n = j.started
	}
	j.mu.Unlock()
	done := j.attempt(ctx, &s, []string{"memory/commit=kill", "memory/committed=kill", "memory/commit=error",
		"harness/intent=kill", "harness/acted=kill", "harness/acted=kill"})
	j.mu.Lock()
	defer j.mu.Unlock()
	if done {
		j.done++
	} else if s.id != "" {
		j.sessions = append(j.sessions, s)
	}
}

// attempt runs tether once for a session. It returns whether the task is done.
func (j *trial) attempt(ctx context.Context, s *agentSession, places []string) (done bool) {
	ws := filepath.Join(j.work, fmt.Sprint("agent", s.slot))
	if err := os.MkdirAll(ws, 0o755); err != nil {
		j.t.Error(err)
		return false
	}
	args := []string{"run", "--events", "-C", ws, "--model", cmp.Or(s.model, "openai/fake"), fmt.Sprintf("do ROBUST-%d-%d", s.slot, s.n)}
	if s.id != "" {
		args = []string{"resume", "--events", "-C", ws, s.id}
	}
	cmd := exec.Command("tether", args...)
	cmd.Env = j.environment(places, "OPENAI_BASE_URL="+j.model.url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		j.t.Error(err)
		return false
	}
	h := openHistory(filepath.Join(j.work, "agents.jsonl"), fmt.Sprint("agent", s.slot))
	defer h.file.Close()
	said := j.follow(ctx, s.slot, cmd, func() { s.watch(h, out) })
	if strings.Contains(said, "session "+s.id+" is done") { // it was killed when all was done but its end
		return true
	}
	j.unwanted(cmd, said)
	return cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 0
}

// watch notes what a run says. Every observation that it tells of is in the
// log.
func (s *agentSession) watch(h *historian, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e harness.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // it was killed within a line
		}
		switch {
		case e.Type == harness.EventStart && s.id == "":
			s.id = e.Session
			for n := range 100 { // what it may write
				h.note(operation{Kind: "append", Phase: "invoke", Session: s.id, ID: fmt.Sprintf("%s/obs_%d", s.id, n)})
			}
		case e.Type == harness.EventObservation && s.id != "":
			h.note(operation{Kind: "append", Phase: "ok", Session: s.id, ID: s.id + "/" + e.Obs})
		}
	}
}

// conclude resumes a session, undisturbed, until it is done.
func (j *trial) conclude(s *agentSession) bool {
	for range 5 {
		if j.attempt(context.Background(), s, nil) {
			j.done++
			return true
		}
	}
	return false
}

// A fickleModel answers as an OpenAI-compatible server: with the next act of the
// task that it is asked about, and now and then with half a reply.
type fickleModel struct {
	url string
	cut atomic.Bool
}

func newFickleModel(t *testing.T) *fickleModel {
	m := &fickleModel{}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"fake"}]}`) })
	mux.HandleFunc("/v1/chat/completions", m.reply)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	m.url = s.URL + "/v1"
	return m
}

// reply names the act after the last one that the request shows, whatever became
// of that.
func (m *fickleModel) reply(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	task := regexp.MustCompile(`ROBUST-(\d+-\d+)`).FindSubmatch(body)
	if err != nil || task == nil {
		http.Error(w, "no task", http.StatusBadRequest)
		return
	}
	name := "ACT-" + string(task[1]) + "-"
	next := 1
	for _, found := range regexp.MustCompile(name+`(\d+)`).FindAllSubmatch(body, -1) {
		n, _ := strconv.Atoi(string(found[1])) // digits
		next = max(next, n+1)
	}
	text := completion(reply(string(task[1]), next), len(body))
	if m.cut.Swap(false) {
		io.WriteString(w, text[:len(text)/3])
		panic(http.ErrAbortHandler)
	}
	io.WriteString(w, text)
}

// reply is the call for act n of a task, or the done after the last one.
func reply(task string, n int) string {
	if n > taskActs {
		return `{"cmd":"done all"}`
	}
	return fmt.Sprintf(`{"cmd":"echo ACT-%s-%d >> act-%s.log"}`, task, n, task)
}

// executions counts, from the files in the workspaces, how often each act was
// run.
func executions(t *testing.T, work string) map[string]int {
	files, err := filepath.Glob(filepath.Join(work, "agent*", "*log"))
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(text)) {
			n[name]++
		}
	}
	return n
}
