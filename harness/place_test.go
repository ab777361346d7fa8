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

// A tape is a model with a fixed list of replies. It stops answering before
// reply number until, as a server that went away.
type tape struct {
	replies []window.Reply
	next    int
	until   int // 0: never
	asked   []window.Request
}

var errAway = errors.New("the server went away")

func (m *tape) Reply(_ context.Context, r window.Request, _ func(string)) (window.Reply, error) {
	if m.until > 0 && m.next >= m.until || m.next == len(m.replies) {
		return window.Reply{}, errAway
	}
	m.asked = append(m.asked, r)
	m.next++
	reply := m.replies[m.next-1]
	reply.Sent = fmt.Sprint("request ", m.next)
	reply.Usage.Prompt = window.Size(r.Messages) * 10 / (25 + m.next%20)
	return reply, nil
}

// recordedTape is a tape of n replies with a bit of everything: what fails, what is
// repeated, writes in vain, changed folders, a done that comes too early.
func recordedTape(seed uint64, n int) *tape {
	s := scribe{rand.New(rand.NewPCG(seed, 2))}
	m := &tape{}
	var last window.Call
	for range n {
		call := s.call()
		switch s.IntN(9) {
		case 0, 1:
			call = last
		case 2:
			call = window.Call{Cmd: "done " + s.words(2)}
		case 3:
			call = window.Call{Cmd: "write same.txt", Stdin: "the same\n"}
		case 4:
			call = window.Call{Cmd: "mkdir -p d && cd d && pwd | wc -l"}
		case 5:
			m.replies = append(m.replies, window.Reply{Text: s.words(9), Nudge: "That was no command."})
			continue
		}
		if call.Cmd == "" {
			call.Cmd = "read ."
		}
		last = call
		m.replies = append(m.replies, window.Reply{Calls: []window.Call{call}})
	}
	return m
}

// A place is a workspace and a store in which a session can be left and taken up
// again, as two processes would.
type place struct {
	t        *testing.T
	ws, path string
	session  memory.Session
	set      func(*harness.Agent)
}

func newPlace(t *testing.T, set func(*harness.Agent)) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t: t, ws: filepath.Join(dir, "ws"), path: filepath.Join(dir, "state", "tether.db"), set: set}
	if err := errors.Join(os.Mkdir(p.ws, 0o755), os.WriteFile(filepath.Join(p.ws, "odd.txt"), []byte(odd), 0o644)); err != nil {
		t.Fatal(err)
	}
	return p
}

// agent is a new agent over the store, and what closes it.
func (p *place) agent(m harness.Model) (*harness.Agent, func()) {
	p.t.Helper()
	a, _ := agent(p.t, p.ws, os.DevNull)
	store, err := memory.Open(p.t.Context(), p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.session.ID == "" {
		if p.session, err = store.NewSession(p.t.Context(), "Write <some> \"files\" about odd.txt.", "tape"); err != nil {
			p.t.Fatal(err)
		}
	}
	env := act.Env{Box: a.Shell.Env.Box, Skills: a.Shell.Env.Skills, Memory: store, Session: p.session.ID}
	a.Session, a.Store, a.Shell, a.Model = p.session, store, act.NewShell(env, act.Builtins()), m
	a.Setup = harness.Setup{Model: "tape", System: "S", Root: p.ws, Commands: a.Shell.Names(), Version: "1"}
	a.Limits.Steps = 30
	if p.set != nil {
		p.set(a)
	}
	return a, func() {
		if err := store.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *place) do(m harness.Model) (harness.Outcome, error) {
	a, end := p.agent(m)
	defer end()
	return a.Do(p.t.Context(), p.session.Task)
}

func (p *place) resume(m harness.Model, set func(*harness.Agent)) (harness.Outcome, error) {
	a, end := p.agent(m)
	defer end()
	if set != nil {
		set(a)
	}
	h := p.history()
	return a.Resume(p.t.Context(), &h)
}

// history replays the session from the file.
func (p *place) history() harness.History { return harness.Replay(p.events()) }

func (p *place) events() []memory.Event {
	p.t.Helper()
	store, err := memory.Open(p.t.Context(), p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer store.Close()
	events, err := store.Events(p.t.Context(), p.session.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return events
}

// become makes the session a new one that has the events for which change
// returns a body.
func (p *place) become(change func(memory.Event) any) {
	p.t.Helper()
	events := p.events()
	store, err := memory.Open(p.t.Context(), p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer store.Close()
	p.session, err = store.NewSession(p.t.Context(), p.session.Task, "tape")
	for _, e := range events[1:] {
		if body := change(e); body != nil && err == nil {
			_, err = store.Append(p.t.Context(), p.session.ID, e.Kind, body)
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func sameRequests(t *testing.T, name string, got, want []window.Request) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if reflect.DeepEqual(got[i], want[i]) {
			continue
		}
		for j := range min(len(got[i].Messages), len(want[i].Messages)) {
			if g, w := got[i].Messages[j], want[i].Messages[j]; !reflect.DeepEqual(g, w) {
				t.Fatalf("%s: message %d of request %d is\n%q\nwant\n%q", name, j, i+1, show(g), show(w))
			}
		}
		t.Fatalf("%s: request %d: %d messages, fresh %v, without %v; want %d, %v, %v", name, i+1,
			len(got[i].Messages), got[i].Fresh, got[i].Without, len(want[i].Messages), want[i].Fresh, want[i].Without)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d requests, want %d", name, len(got), len(want))
	}
}

const marks = "echo ran >> marker; sleep 60"

// interrupted leaves a session in the middle of the command marks, the second
// call of m.
func interrupted(t *testing.T, p *place, m *tape) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(p.ws, "marker")); err == nil {
				cancel(harness.ErrInterrupted)
			}
			time.Sleep(5 * time.Millisecond) // between looks at another process
		}
	}()
	a, end := p.agent(m)
	defer end()
	if out, err := a.Do(ctx, p.session.Task); out.Stop != harness.Interrupted || err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
}

func calls(lines ...string) []window.Reply {
	var all []window.Reply
	for _, line := range lines {
		cmd, stdin, _ := strings.Cut(line, " < ")
		all = append(all, window.Reply{Calls: []window.Call{{Cmd: cmd, Stdin: stdin}}})
	}
	return all
}
