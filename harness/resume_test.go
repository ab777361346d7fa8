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

// TestResumeGoesOn: a session that is left at any reply and taken up again by
// another process asks for the same bytes, and ends the same way, as one that was
// never left.
func TestResumeGoesOn(t *testing.T) {
	fresh, folded := 0, 0
	for seed := range uint64(4) {
		set := func(a *harness.Agent) {
			a.Budget.Window, a.Budget.Reserve = 1800+300*int(seed%3), 300
			a.Gates = []harness.Gate{{Cmd: "test -f d/a.txt"}}
		}
		whole := recordedTape(seed, 40)
		p := newPlace(t, set)
		want, _ := p.do(whole)
		for _, cut := range []int{1, 2 + int(seed), 6 + int(seed), 11 + int(seed)} {
			if cut >= len(whole.asked) {
				break
			}
			left := recordedTape(seed, 40)
			left.until = cut
			q := newPlace(t, set)
			if out, err := q.do(left); !errors.Is(err, errAway) || out.Stop != harness.Failed {
				t.Fatalf("seed %d left at %d: %s, %v", seed, cut, out.Stop, err)
			}
			left.until = 0
			got, _ := q.resume(left, nil)
			sameRequests(t, fmt.Sprintf("seed %d left at %d", seed, cut), left.asked, whole.asked)
			got.Session, got.Seconds = want.Session, want.Seconds
			if !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d left at %d: the outcome is\n%+v\nwant\n%+v", seed, cut, got, want)
			}
			h := q.history()
			folded += h.Sent[len(h.Sent)-1].Folds.Folded
		}
		for _, r := range whole.asked {
			if r.Fresh {
				fresh++
			}
		}
	}
	if fresh == 0 || folded == 0 {
		t.Errorf("%d requests asked anew, %d turns folded; want some of each", fresh, folded)
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

// TestResumeInterrupted: a command of which nobody knows how it ended is shown
// as that and not run again by itself. The repair is stored: whoever takes the
// session up later, and however often, finds the same.
func TestResumeInterrupted(t *testing.T) {
	p := newPlace(t, nil)
	m := &tape{replies: calls("write a.txt < a", marks, "read marker", "read a.txt", "done Checked.")}
	interrupted(t, p, m)
	before := len(p.events())
	m.until = 3
	if _, err := p.resume(m, nil); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	m.until = 0
	out, err := p.resume(m, nil)
	if err != nil || out.Stop != harness.Done || out.Steps != 5 || !reflect.DeepEqual(out.Changed, []string{"a.txt"}) {
		t.Errorf("%+v, %v", out, err)
	}
	asked := m.asked[2].Messages
	for i, want := range []window.Message{
		{Role: window.RoleAssistant, Call: &window.Call{Cmd: marks}, ID: "obs_2"},
		{Role: window.RoleTool, Text: "Interrupted; outcome unknown. Check before you repeat it.", ID: "obs_2"},
	} {
		if got := asked[len(asked)-2+i]; !reflect.DeepEqual(got, want) {
			t.Errorf("the model reads\n%s\nwant\n%s", show(got), show(want))
		}
	}
	if text, err := os.ReadFile(filepath.Join(p.ws, "marker")); err != nil || string(text) != "ran\n" {
		t.Errorf("the marker holds %q, %v", text, err)
	}
	sameRequests(t, "prefix", []window.Request{{Messages: m.asked[3].Messages[:len(asked)]}}, []window.Request{{Messages: asked}})
	mended := 0
	for _, e := range p.events()[before:] {
		if strings.Contains(string(e.Body), "outcome unknown") {
			mended++
		}
	}
	if mended != 1 {
		t.Errorf("the repair is in the log %d times", mended)
	}
}

// TestMend: what a kill can leave at any event is completed once, also if the
// repair itself is killed half way.
func TestMend(t *testing.T) {
	p := newPlace(t, nil)
	interrupted(t, p, &tape{replies: calls("write a.txt < a", marks)})
	ctx := t.Context()
	_, end := p.agent(nil)
	end()
	store, err := memory.Open(ctx, p.path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	load := func() harness.History {
		events, err := store.Events(ctx, p.session.ID)
		if err != nil {
			t.Fatal(err)
		}
		return harness.Replay(events)
	}
	// Killed between the two events of the repair.
	h := load()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := h.Mend(cancelled, store, p.session.ID); err == nil || len(load().Turns) != 1 {
		t.Fatalf("a repair that cannot be kept: %v", err)
	}
	if err := store.Observe(ctx, p.session.ID, memory.Observation{ID: "obs_2", Cmd: marks, Status: 1, Output: window.Text("interrupted", nil)}); err != nil {
		t.Fatal(err)
	}
	var first harness.History
	for i := range 3 {
		h := load()
		if err := h.Mend(ctx, store, p.session.ID); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = h
		}
		if again := load(); !reflect.DeepEqual(again.Turns, first.Turns) || !reflect.DeepEqual(again.Steps, first.Steps) || len(again.Turns) != 2 {
			t.Errorf("time %d: the turns are\n%+v\nand were\n%+v", i+1, again.Turns, first.Turns)
		}
	}
	// An observation that is known, and a turn that is not.
	if _, err := store.Append(ctx, p.session.ID, "intent", harness.Intended{Obs: "obs_3", Cmd: "read a.txt"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Observe(ctx, p.session.ID, memory.Observation{ID: "obs_3", Cmd: "read a.txt", Output: "a\n"}); err != nil {
		t.Fatal(err)
	}
	h = load()
	if err := h.Mend(ctx, store, p.session.ID); err != nil {
		t.Fatal(err)
	}
	if turn := load().Turns[2]; turn.Output != "a\n" || turn.Next != window.Text("next", nil) || turn.Call.Cmd != "read a.txt" {
		t.Errorf("the turn of a known observation is %+v", turn)
	}
}

// TestResumeAfterTheLastGate: a session that was killed between its last gate and
// its end is done, and the model is not asked again.
func TestResumeAfterTheLastGate(t *testing.T) {
	p := newPlace(t, func(a *harness.Agent) { a.Gates = []harness.Gate{{Cmd: "test -f a.txt"}} })
	m := &tape{replies: calls("write a.txt < a", "done I wrote it.")}
	want, err := p.do(m)
	if err != nil || want.Stop != harness.Done {
		t.Fatal(want, err)
	}
	if _, err := p.resume(m, nil); !strings.Contains(fmt.Sprint(err), "is done\ngive it more to do: tether send") {
		t.Errorf("a session that is done is taken up: %v", err)
	}
	p.become(func(e memory.Event) any {
		if e.Kind == "stop" {
			return nil
		}
		return e.Body
	})
	got, err := p.resume(m, nil)
	if got.Session, got.Seconds = want.Session, want.Seconds; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the outcome is\n%+v, %v\nwant\n%+v", got, err, want)
	}
}

// TestResumeBadRecords: a record that cannot be read is left out, the session
// goes on around it, and the user is told.
func TestResumeBadRecords(t *testing.T) {
	for _, kind := range []string{"setup", "request", "reply", "intent", "turn", "gate", "stop"} {
		t.Run(kind, func(t *testing.T) {
			p := newPlace(t, func(a *harness.Agent) { a.Gates = []harness.Gate{{Cmd: "test -f b.txt"}} })
			m := &tape{replies: calls("write a.txt < a", "done", "read a.txt", "write b.txt < b", "done"), until: 3}
			if _, err := p.do(m); !errors.Is(err, errAway) {
				t.Fatal(err)
			}
			done := false
			p.become(func(e memory.Event) any {
				if e.Kind == kind && !done {
					done = true
					return strings.Repeat("\x00", 300)
				}
				return e.Body
			})
			m.until = 0
			var told []string
			out, err := p.resume(m, func(a *harness.Agent) {
				a.Notify = func(e harness.Event) {
					if e.Type == harness.EventWarning {
						told = append(told, e.Output)
					}
				}
			})
			if err != nil || out.Stop != harness.Done {
				t.Errorf("%+v, %v", out, err)
			}
			if !strings.Contains(strings.Join(told, "\n"), "1 events of the log cannot be read and are left out, the first is event") {
				t.Errorf("the user is told %q", told)
			}
			if h := p.history(); len(h.Bad) != 1 || len(h.Turns) < 5 {
				t.Errorf("%d turns, bad %v", len(h.Turns), h.Bad)
			}
		})
	}
}

// TestReady: what ended for good needs a word from a person, and what is used up
// has to be raised.
func TestReady(t *testing.T) {
	for stop, want := range map[harness.Stop]string{
		harness.Done: "is done", harness.GateFailed: "ended with gate_failed", harness.GateError: "ended with gate_error",
		harness.Stalled: "ended with stalled", harness.Waiting: "waits for an answer",
		harness.Interrupted: "", harness.Terminated: "", harness.Unreachable: "", harness.NoModel: "", harness.Failed: "",
		harness.Config: "", harness.Sandbox: "", harness.Steps: "", harness.Time: "", harness.Tokens: "",
	} {
		h := harness.Replay([]memory.Event{event("setup", `{"system":"S","prompt":"P"}`), event("stop", fmt.Sprintf(`{"stop":%q}`, stop))})
		err := h.Ready("20260101", harness.Limits{})
		if want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), "session 20260101 "+want) {
			t.Errorf("%s: %v", stop, err)
		}
		h = harness.Replay([]memory.Event{event("stop", fmt.Sprintf(`{"stop":%q}`, stop)), event("message", `{"text":"Go on."}`)})
		if err := h.Ready("20260101", harness.Limits{}); err != nil {
			t.Errorf("%s, and the person said something: %v", stop, err)
		}
	}
	used := harness.Replay([]memory.Event{event("request", `{"n":1}`), event("reply", `{"n":1,"prompt":90,"output":10}`), event("turn", `{"obs":"obs_1","how":"missed","step":7}`)})
	for _, c := range []struct {
		limits harness.Limits
		want   string
	}{
		{harness.Limits{Steps: 7}, "has used its 7 steps\nraise them: tether resume s --max-steps 14"},
		{harness.Limits{Tokens: 100}, "has used 100 tokens, and may not use more\nraise them: tether resume s --max-tokens 200"},
		{harness.Limits{Steps: 8, Tokens: 101}, "<nil>"},
	} {
		if err := used.Ready("s", c.limits); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %v, want %s", c.limits, err, c.want)
		}
	}
}

// TestSay: what a person says is the newest message that the model reads, the
// window before it is as it was, and limits and tries begin anew.
func TestSay(t *testing.T) {
	p := newPlace(t, func(a *harness.Agent) {
		a.Gates, a.Limits.Steps = []harness.Gate{{Cmd: "test -f right.txt"}}, 5
	})
	m := &tape{replies: calls("write wrong.txt < x", "done", "write wrong.txt < y", "done", "write wrong.txt < z", "write right.txt < x", "done")}
	if out, _ := p.do(m); out.Stop != harness.Steps {
		t.Fatalf("%+v", out)
	}
	say := func(text string) error {
		a, end := p.agent(nil)
		defer end()
		h := p.history()
		return h.Say(t.Context(), a.Store, p.session.ID, text)
	}
	if err := say(strings.Repeat("long ", 9000)); err == nil || !strings.Contains(err.Error(), "tokens") {
		t.Errorf("a message larger than the window: %v", err)
	}
	if err := say("The file is right.txt.\xff"); err != nil {
		t.Fatal(err)
	}
	out, err := p.resume(m, nil)
	if err != nil || out.Stop != harness.Done || out.Steps != 7 || out.Gates[0].Tries != 3 {
		t.Errorf("%+v, %v", out, err)
	}
	before, after := m.asked[4].Messages, m.asked[5].Messages
	if !reflect.DeepEqual(before, after[:len(before)]) {
		t.Error("the window before the message is another one")
	}
	if got := after[len(after)-1]; got.Role != window.RoleUser || got.Text != "The user says: The file is right.txt.\uFFFD" {
		t.Errorf("the newest message is %s", show(got))
	}
	h := p.history()
	for i, want := range m.asked {
		if got, err := h.Window(i + 1); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("window %d is not what was sent: %v", i+1, err)
		}
	}
}

// TestResumeNames: what is no longer as it was is told, and the session keeps
// what the model was told.
func TestResumeNames(t *testing.T) {
	p := newPlace(t, nil)
	m := &tape{replies: calls("read .", "read odd.txt 1:3", "sh true", "done"), until: 1}
	if _, err := p.do(m); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	m.until = 0
	moved := p.ws + "2"
	if err := os.Rename(p.ws, moved); err != nil {
		t.Fatal(err)
	}
	p.ws = moved
	var told []string
	out, err := p.resume(m, func(a *harness.Agent) {
		cmds, err := act.Grant(act.Builtins(), []string{"read", "done", "web"})
		if err != nil {
			cmds, err = act.Grant(act.Builtins(), []string{"read", "done"})
		}
		if err != nil {
			t.Fatal(err)
		}
		a.Shell = act.NewShell(a.Shell.Env, cmds)
		a.Setup = harness.Setup{Model: "other", System: "another prompt", Root: moved, Commands: []string{"read", "done", "new"}, Version: "2", Sandbox: "read-only"}
		a.Budget.Window = 4096
		a.Notify = func(e harness.Event) {
			if e.Type == harness.EventWarning {
				told = append(told, e.Output)
			}
		}
	})
	if err != nil || out.Stop != harness.Done || out.Model != "other" {
		t.Errorf("%+v, %v", out, err)
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{
		"the model was tape and is other now", "the workspace was " + strings.TrimSuffix(moved, "2") + " and is " + moved + " now",
		"tether was 1 and is 2 now", "the window was 8192 tokens and is 4096 tokens now", "no longer granted: sh", "granted now, and not known to the model: new",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody is told %q in\n%s", want, all)
		}
	}
	if got := m.asked[1].Messages[0].Text; got != "S" {
		t.Errorf("the system prompt is %q", got)
	}
	if h := p.history(); h.Turns[2].Status != act.NotFound {
		t.Errorf("a command that is no longer granted ends with %d", h.Turns[2].Status)
	}
}

// TestResumeAfterAChange: what a person changes between two runs is told, and
// what failed before may be run again at once.
func TestResumeAfterAChange(t *testing.T) {
	for _, changed := range []bool{false, true} {
		p := newPlace(t, nil)
		m := &tape{replies: calls("test -f right.txt", "test -f right.txt", "test -f right.txt", "done"), until: 1}
		if _, err := p.do(m); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		if changed {
			if err := os.WriteFile(filepath.Join(p.ws, "right.txt"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m.until = 0
		var told []string
		_, err := p.resume(m, func(a *harness.Agent) {
			a.Notify = func(e harness.Event) {
				if e.Type == harness.EventWarning {
					told = append(told, e.Output)
				}
			}
		})
		h := p.history()
		if ran := h.Turns[1].Status == act.OK; err != nil || ran != changed {
			t.Errorf("changed %v: the same command again gives %+v, %v", changed, h.Turns[1], err)
		}
		if said := strings.Contains(strings.Join(told, "\n"), "files of the workspace have changed since"); said != changed {
			t.Errorf("changed %v: told %q", changed, told)
		}
	}
}
