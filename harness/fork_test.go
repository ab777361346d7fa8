package harness_test

import (
	"strings"
	"testing"

	"tether/harness"
	"tether/memory"
)

// TestFork: a session that begins as another one did up to a step goes on from
// there, and the other one stays as it is.
func TestFork(t *testing.T) {
	p := newPlace(t, nil)
	m := &tape{replies: calls("write a.txt < a", "read a.txt", "write b.txt < b", "done First.")}
	if out, err := p.do(m); err != nil || out.Stop != harness.Done {
		t.Fatal(out, err)
	}
	events := p.events()
	for n, want := range map[int]string{-1: "there is no step -1; the session has 4", 5: "there is no step 5", 4: "step 4 is the end of the session"} {
		if _, err := harness.Until(events, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("step %d: %v, want %s", n, err, want)
		}
	}
	if _, err := harness.Until(events[:1], 0); err == nil {
		t.Error("a session that has not begun has a beginning")
	}
	for n, turns := range []int{0, 1, 2, 3} {
		some, err := harness.Until(events, n)
		if err != nil {
			t.Fatal(err)
		}
		fork := *p
		a, end := p.agent(nil)
		fork.session, err = a.Store.Adopt(t.Context(), "", some, "x@1")
		end()
		if err != nil {
			t.Fatal(err)
		}
		h := fork.history()
		if len(h.Turns) != turns || h.Outcome != nil || h.Setup.System != "S" {
			t.Errorf("step %d: %d turns, outcome %v", n, len(h.Turns), h.Outcome)
		}
		next := &tape{replies: calls("read odd.txt 1:2", "done Again.")}
		out, err := fork.resume(next, nil)
		if err != nil || out.Stop != harness.Done || out.Report != "Again." || out.Steps != n+2 {
			t.Errorf("step %d: %+v, %v", n, out, err)
		}
		// Its window begins as that of the other one did.
		sameRequests(t, "fork", next.asked[:1], m.asked[n:n+1])
	}
	if now := p.events(); len(now) != len(events) {
		t.Errorf("the session has %d events and had %d", len(now), len(events))
	}
	if _, err := harness.Until([]memory.Event{event("start", "{}"), event("setup", "{}"), event("turn", "[]")}, 0); err != nil {
		t.Errorf("a turn that cannot be read: %v", err)
	}
}
