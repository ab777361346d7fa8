package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	window "tether/context"
	"tether/harness"
	"tether/memory"
)

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

// TestResumeHints: the line that asks for the next step is of the whole session: what
// was changed and printed before it was left counts.
func TestResumeHints(t *testing.T) {
	replies := calls("write a.txt < a", "echo 1", "ls", "cat a.txt", "done Checked.")
	whole, left := &tape{replies: replies}, &tape{replies: replies, until: 2}
	newPlace(t, nil).do(whole)
	q := newPlace(t, nil)
	if _, err := q.do(left); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	left.until = 0
	q.resume(left, nil)
	sameRequests(t, "left at 2", left.asked, whole.asked)
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

// TestResumeWithinDone: a done that was killed at any of its events counts when the
// model says it again, whether a check judged it, it was questioned, or its report
// did not fit.
func TestResumeWithinDone(t *testing.T) {
	form, err := harness.ParseForm([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		lines []string
		set   func(*harness.Agent)
	}{
		{[]string{"write a.txt < a", "done {}"}, nil},
		{[]string{"write a.txt < a", "done {}"}, func(a *harness.Agent) { a.Gates = []harness.Gate{{Cmd: "test -f a.txt"}} }},
		{[]string{"read never.txt", "done {}", "done {}"}, nil},
		{[]string{"write a.txt < a", "done [1]", "done {}"}, func(a *harness.Agent) { a.Form = form }},
	} {
		whole := newPlace(t, test.set)
		if out, err := whole.do(&tape{replies: calls(test.lines...)}); err != nil || out.Stop != harness.Done {
			t.Fatalf("%q: %+v, %v", test.lines, out, err)
		}
		begun := false
		for n, e := range whole.events()[:len(whole.events())-1] {
			if begun = begun || e.Kind == "intent" && strings.Contains(string(e.Body), `"done`); !begun {
				continue
			}
			p := whole.cut(whole.events()[:n+1])
			out, err := p.resume(&tape{replies: calls("done {}", "done {}", "done {}", "done {}", "done {}", "done {}", "done {}", "done {}")}, nil)
			if err != nil || out.Stop != harness.Done || out.Report != "{}" {
				t.Errorf("%q, killed after event %d, %s %s: %+v, %v", test.lines, n, e.Kind, e.Body, out, err)
			}
		}
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

// TestResumeAfterTheLastTry: a session that was killed between its last turn and its
// end has ended, whatever with, and the model is not asked again.
func TestResumeAfterTheLastTry(t *testing.T) {
	form, err := harness.ParseForm([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, lines := range [][]string{
		{"done [1]", "done [2]", "done [3]"},
		{"done {}", "write a.txt < a", "done {}", "write b.txt < b", "done {}"},
		{"read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2", "read odd.txt 1:2"},
	} {
		p := newPlace(t, func(a *harness.Agent) { a.Form, a.Gates = form, []harness.Gate{{Cmd: "test -f never"}} })
		want, err := p.do(&tape{replies: calls(lines...)})
		if err != nil || want.Stop != harness.GateFailed && want.Stop != harness.Stalled {
			t.Fatalf("%q: %+v, %v", lines, want, err)
		}
		events := p.events()
		p = p.cut(events[:len(events)-1])
		got, err := p.resume(&tape{}, nil)
		if got.Session, got.Seconds = want.Session, want.Seconds; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v\n%+v\nwant\n%+v", lines, err, got, want)
		}
	}
}
