package harness

import (
	"strings"

	window "tether/context"
)

// MaxWarnings is how many stall warnings end a run. One repetition may be an
// accident; each one more is another reply that is paid for and leads nowhere.
const MaxWarnings = 4

// sameInAll is how often a call may be made while nothing changes, other calls
// between. Reading a file again after a failure is sense; the third time it
// is a cycle.
const sameInAll = 2

// A Guard tells progress from going round in circles. It is pure: it sees
// calls and whether they changed anything, and answers.
type Guard struct {
	Warnings int // stall warnings so far

	prints map[window.Call]uint64 // what a call printed last, in short
	moving map[window.Call]bool   // and whether that was another thing than before
	last   window.Call            // the newest call that was run
	seen   map[window.Call]int    // calls since the last change, and how often
	idle   int                    // calls since then
	recent []step                 // the newest calls, at most maxSteps
}

// Ran tells the guard of a call that was run. changed says whether it changed
// a file; then everything may have another result and all is forgotten.
func (g *Guard) Ran(call window.Call, changed bool) {
	call = same(call)
	if changed || g.seen == nil {
		g.seen, g.prints, g.moving = map[window.Call]int{}, nil, nil
	}
	g.seen[call]++
	g.last = call
	g.idle++
	if changed {
		g.idle = 0
	}
}

// Unsee drops a call that was judged by what it says and not by the workspace: with
// other words it is another one.
func (g *Guard) Unsee(call window.Call) { delete(g.seen, same(call)) }

// Forget drops every call that was seen: anything may have another result now.
// The warnings stay.
func (g *Guard) Forget() { *g = Guard{Warnings: g.Warnings} }

// Idle is how many calls in a row have changed nothing.
func (g *Guard) Idle() int { return g.idle }

// same is what of a call makes it the same: a done with other words is the
// same done.
func same(call window.Call) window.Call {
	if word, _, _ := strings.Cut(strings.TrimPrefix(call.Cmd, "sh "), " "); strings.EqualFold(word, "done") {
		return window.Call{Cmd: "done"}
	}
	return call
}

// Repeats says whether call was made before and nothing has changed since. It
// is worth another sample of the model before it is answered.
func (g *Guard) Repeats(call window.Call) bool {
	return g.seen[same(call)] > 0 && !g.polls(same(call)) || g.cycles(same(call)) > 0
}

// Refuse says why call is not run: the name of a text of package window, or
// empty when it is run. A refusal is a stall warning.
func (g *Guard) Refuse(call window.Call) string {
	call = same(call)
	if period := g.cycles(call); period > 0 {
		g.Warnings++
		g.last = call
		g.went(g.recent[len(g.recent)-period])
		return "cycle"
	}
	n := g.seen[call]
	if n == 0 || g.polls(call) || call != g.last && n < sameInAll && call.Cmd != "done" {
		return "" // a done is judged by gates, and they see what they saw
	}
	g.Warnings++
	g.last = call
	return "repeat"
}

// Warn counts a reply that led to nothing.
func (g *Guard) Warn() { g.Warnings++ }

// Stalled says whether the warnings are used up.
func (g *Guard) Stalled() bool { return g.Warnings >= MaxWarnings }
