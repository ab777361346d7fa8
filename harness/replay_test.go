package harness_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/memory"
)

// A recorded model keeps every request whole, and counts tokens so that the
// estimate of the harness moves from request to request.
type recorded struct {
	harness.Model
	requests []window.Request
	tokens   func(n int) int // of a request of n bytes
}

func (m *recorded) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	kept := r
	kept.Messages = nil
	for _, msg := range r.Messages {
		if msg.Call != nil {
			call := *msg.Call
			msg.Call = &call
		}
		kept.Messages = append(kept.Messages, msg)
	}
	m.requests = append(m.requests, kept)
	reply, err := m.Model.Reply(ctx, r, stream)
	if m.tokens != nil {
		reply.Usage.Prompt = m.tokens(window.Size(r.Messages))
	}
	return reply, err
}

// A scribe is a model that draws its replies from a source of chance.
type scribe struct{ *rand.Rand }

func (s scribe) Reply(context.Context, window.Request, func(string)) (window.Reply, error) {
	switch s.IntN(10) {
	case 0:
		return window.Reply{Text: s.words(300), Nudge: "That was no command."}, nil
	case 1:
		return window.Reply{Miss: "{\"cmd\": " + s.words(50), Nudge: "That could not be read."}, nil
	case 2:
		return window.Reply{Calls: []window.Call{s.call(), s.call(), s.call()}, Recovered: "fenced JSON"}, nil
	case 3, 4:
		return window.Reply{Calls: []window.Call{s.call()}, Thought: s.words(60)}, nil
	case 5:
		return window.Reply{Text: s.words(30), Nudge: "That was no command.", Thought: "[]"}, nil
	}
	return window.Reply{Calls: []window.Call{s.call()}}, nil
}

// call is a call that mostly runs in this process: starting a sandbox takes
// longer than all the rest.
func (s scribe) call() window.Call {
	file := string(rune('a'+s.IntN(3))) + ".txt"
	switch s.IntN(40) {
	case 39:
		return window.Call{Cmd: "done " + s.words(3)}
	case 38:
		return window.Call{Cmd: "no-such-program"}
	}
	switch s.IntN(8) {
	case 0, 1, 2:
		return window.Call{Cmd: "append " + file, Stdin: s.words(800)}
	case 3, 4:
		return window.Call{Cmd: "read " + file}
	case 5:
		return window.Call{Cmd: fmt.Sprintf("mem recall obs_%d", 1+s.IntN(9))}
	case 6:
		return window.Call{Cmd: "grep " + s.words(1)}
	}
	return window.Call{Cmd: "read odd.txt 890:920"}
}

// words are n or fewer words with everything in them that an encoding could
// change.
func (s scribe) words(n int) string {
	all := []string{"plain", "<b>&amp;", "\"quoted\"", "back\\slash", "ümläut", "日本", "line\nbreak", "tab\t", "\u2028", "\x00", "\x7f", "\ufeff", "{{.}}", "%d"}
	var b strings.Builder
	for range s.IntN(n) + 1 {
		b.WriteString(all[s.IntN(len(all))] + " ")
	}
	return strings.TrimSpace(b.String())
}

// odd is text at its beginning and has bytes in it that are none: what a
// command prints need not be UTF-8.
var odd = strings.Repeat("some text\n", 900) + "\xff\xfe\xff in a row\xc3\n" + strings.Repeat("more\n", 20)

// TestReplay: from the log alone every window comes out as it was sent,
// whatever was folded meanwhile, and again from a store that was closed.
func TestReplay(t *testing.T) {
	folded, dropped, fresh := 0, 0, 0
	for seed := range uint64(12) {
		mode := []window.Mode{window.Batch, window.EveryTurn, window.Off}[seed%3]
		m := &recorded{Model: scribe{rand.New(rand.NewPCG(seed, 1))}}
		m.tokens = func(n int) int { return n * 10 / (25 + len(m.requests)%20) }
		h := replayed(t, m, func(a *harness.Agent) {
			a.Budget.Mode, a.Budget.Window, a.Budget.Reserve = mode, 1500+300*int(seed%7), 300
			a.Limits.Steps = 25
			a.Gates = []harness.Gate{{Cmd: "test -f nothing"}}
			name := filepath.Join(a.Shell.Env.Box.Policy().Root, "\xff\xfe.txt") // a file name need not be text
			if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		last := h.Sent[len(h.Sent)-1]
		folded, dropped = folded+last.Folds.Folded, dropped+last.Folds.Dropped
		for _, s := range h.Sent {
			if s.Fresh {
				fresh++
			}
		}
		same(t, fmt.Sprintf("seed %d, %s", seed, mode), h, m.requests)
	}
	if folded == 0 || dropped == 0 || fresh == 0 {
		t.Errorf("%d turns folded, %d dropped, %d requests asked anew; want some of each", folded, dropped, fresh)
	}
}

// agentIn is an agent whose store is the file at path.
func agentIn(t *testing.T, ws, path string) (*harness.Agent, *memory.Store) {
	t.Helper()
	a, _ := agent(t, ws, os.DevNull)
	store, err := memory.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if a.Session, err = store.NewSession(t.Context(), "task", "script"); err != nil {
		t.Fatal(err)
	}
	env := act.Env{Box: a.Shell.Env.Box, Skills: a.Shell.Env.Skills, Memory: store, Session: a.Session.ID}
	a.Store, a.Shell = store, act.NewShell(env, act.Builtins())
	return a, store
}

// replayed runs a task in a store on the disk and replays it from there.
func replayed(t *testing.T, m harness.Model, set func(*harness.Agent)) harness.History {
	t.Helper()
	dir := t.TempDir()
	ws, path := filepath.Join(dir, "ws"), filepath.Join(dir, "state", "tether.db")
	if err := errors.Join(os.Mkdir(ws, 0o755), os.WriteFile(filepath.Join(ws, "odd.txt"), []byte(odd), 0o644)); err != nil {
		t.Fatal(err)
	}
	a, store := agentIn(t, ws, path)
	a.Model = m
	set(a)
	out, err := a.Do(t.Context(), "Write <some> \"files\".")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, err = memory.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a.Store = store
	h := history(t, a)
	if h.Outcome == nil || !reflect.DeepEqual(*h.Outcome, out) {
		t.Errorf("the outcome is\n%+v\nand was\n%+v", h.Outcome, out)
	}
	if h.Unknown != nil || len(h.Steps) != len(h.Turns) || len(h.Received) != len(h.Sent) {
		t.Errorf("unknown %v, %d steps of %d turns, %d replies to %d requests", h.Unknown, len(h.Steps), len(h.Turns), len(h.Received), len(h.Sent))
	}
	return h
}

// same compares the windows of h with what was sent.
func same(t *testing.T, name string, h harness.History, sent []window.Request) {
	t.Helper()
	if len(h.Sent) != len(sent) {
		t.Fatalf("%s: the log has %d requests, %d were sent", name, len(h.Sent), len(sent))
	}
	for i, want := range sent {
		got, err := h.Window(i + 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if reflect.DeepEqual(got, want) {
			continue
		}
		for j := range min(len(got.Messages), len(want.Messages)) {
			if g, w := got.Messages[j], want.Messages[j]; !reflect.DeepEqual(g, w) {
				t.Fatalf("%s: message %d of window %d is\n%q\nand this was sent:\n%q", name, j, i+1, show(g), show(w))
			}
		}
		t.Fatalf("%s: window %d has %d messages, fresh %v; %d were sent, fresh %v", name, i+1, len(got.Messages), got.Fresh, len(want.Messages), want.Fresh)
	}
}

func show(m window.Message) string {
	s := fmt.Sprintf("%s %s %s", m.Role, m.ID, m.Text)
	if m.Call != nil {
		s += fmt.Sprintf(" $ %s < %s", m.Call.Cmd, m.Call.Stdin)
	}
	return s
}

// history replays the session of a.
func history(t *testing.T, a *harness.Agent) harness.History {
	t.Helper()
	events, err := a.Store.Events(context.Background(), a.Session.ID)
	if err != nil {
		t.Fatal(err)
	}
	h := harness.Replay(events)
	if len(h.Bad) > 0 {
		t.Fatalf("events that cannot be read: %v", h.Bad)
	}
	return h
}

// tell notes the ids of turns in told, and returns err.
func tell(told *[]string, err error) func(window.Turn, time.Duration) error {
	return func(turn window.Turn, _ time.Duration) error {
		*told = append(*told, turn.ID)
		return err
	}
}

// event is one of a log made by hand.
func event(kind, body string) memory.Event { return memory.Event{Kind: kind, Body: []byte(body)} }

// TestReplayBroken: what a log can look like after a crash, or after somebody
// wrote in it.
func TestReplayBroken(t *testing.T) {
	setup := event("setup", `{"system":"S","prompt":"P","budget":{"Window":8192}}`)
	sent := event("request", `{"n":1,"turns":0}`)
	intent := event("intent", `{"obs":"obs_1","cmd":"ls"}`)
	observation := event("observation", `{"id":"obs_1","cmd":"ls","output":"a\n"}`)
	turn := event("turn", `{"obs":"obs_1","next":"Next?","step":1}`)

	h := harness.Replay([]memory.Event{setup, sent, intent})
	if h.Unknown == nil || h.Unknown.Cmd != "ls" || h.Outcome != nil || len(h.Received) != 0 {
		t.Errorf("killed in a command: %+v", h)
	}
	if _, err := h.Window(1); err != nil {
		t.Errorf("the window of the request that was out: %v", err)
	}
	h = harness.Replay([]memory.Event{setup, sent, intent, observation})
	if h.Unknown != nil || len(h.Turns) != 0 {
		t.Errorf("killed before the turn was written: %+v", h)
	}
	h = harness.Replay([]memory.Event{setup, sent, intent, observation, turn, event("note", "whatever"), event("later", "{}")})
	if len(h.Turns) != 1 || h.Turns[0].Output != "a\n" || h.Turns[0].Next != "Next?" || len(h.Bad) != 0 {
		t.Errorf("events of other kinds: %+v", h)
	}
	for _, n := range []int{-1, 0, 2} {
		if _, err := h.Window(n); err == nil || !strings.Contains(err.Error(), "the session has 1") {
			t.Errorf("window %d: %v", n, err)
		}
	}
	h = harness.Replay([]memory.Event{setup, event("request", `{"n":1,"turns":5}`)})
	if _, err := h.Window(1); err == nil {
		t.Error("a request with turns that are not there has a window")
	}
	if h := harness.Replay(nil); len(h.Sent) != 0 {
		t.Errorf("no events: %+v", h)
	}
	for _, kind := range []string{"setup", "request", "reply", "intent", "observation", "turn", "gate", "message", "stop", "vain", "resume"} {
		h := harness.Replay([]memory.Event{setup, sent, intent, {Seq: 7, Kind: kind, Body: []byte("\x00\x00\x00")}, observation, turn})
		if len(h.Bad) != 1 || h.Bad[0].Seq != 7 || h.Bad[0].Kind != kind || h.Bad[0].Err == nil {
			t.Errorf("zeroes in place of a %s: %+v", kind, h.Bad)
		}
		if h.Setup.System != "S" || len(h.Turns) == 0 || h.Turns[len(h.Turns)-1].Output != "a\n" {
			t.Errorf("after zeroes in place of a %s the rest is not there: %+v", kind, h.Turns)
		}
	}
}

// TestHand: acts by hand are in the log like a model's, also those that were
// not reached.
func TestHand(t *testing.T) {
	a, _ := agent(t, t.TempDir(), os.DevNull)
	var told []string
	calls := []window.Call{{Cmd: "write a.txt", Stdin: "a\n"}, {Cmd: "read b.txt"}, {Cmd: "read a.txt"}}
	status, err := a.Hand(t.Context(), "by hand", calls[:2], tell(&told, nil))
	if status != 1 || err != nil || len(told) != 2 {
		t.Errorf("status %d, %v, told %q", status, err, told)
	}
	h := history(t, a)
	if len(h.Turns) != 2 || h.Turns[1].ID != "obs_2" || h.Turns[1].Status != 1 || h.Unknown != nil {
		t.Errorf("turns %+v", h.Turns)
	}
	if o := h.Outcome; o == nil || o.Stop != harness.Done || o.Exit != 1 || o.Steps != 2 || !reflect.DeepEqual(o.Changed, []string{"a.txt"}) {
		t.Errorf("outcome %+v", o)
	}

	broken := errors.New("nobody listens")
	a, _ = agent(t, t.TempDir(), os.DevNull)
	if _, err := a.Hand(t.Context(), "by hand", calls, tell(&told, broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if h := history(t, a); len(h.Turns) != 1 || h.Outcome == nil || h.Outcome.Stop != harness.Failed {
		t.Errorf("after an error: %+v", h)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	a, _ = agent(t, t.TempDir(), os.DevNull)
	_, err = a.Hand(ctx, "by hand", []window.Call{{Cmd: "read ."}, {Cmd: "sleep 60"}}, func(window.Turn, time.Duration) error {
		cancel(harness.ErrInterrupted)
		return nil
	})
	if !errors.Is(err, harness.ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	if h := history(t, a); h.Outcome == nil || h.Outcome.Stop != harness.Interrupted || h.Outcome.Exit != 130 {
		t.Errorf("interrupted: %+v", h.Outcome)
	}
}
