package harness

import (
	"hash/fnv"
	"io"
	"slices"

	window "tether/context"
)

// A step is a call and what it printed, in short.
type step struct {
	call    window.Call
	printed uint64
}

// maxPeriod is how many calls a cycle may have, and maxSteps how many are kept to see
// one. A model that writes a file in two ways by turns changes something each time,
// and still gets nowhere.
const (
	maxPeriod = 4
	maxSteps  = 2 * maxPeriod
)

func fingerprint(call window.Call, output string) step {
	h := fnv.New64a()
	io.WriteString(h, output)
	return step{call, h.Sum64()}
}

// went keeps a step.
func (g *Guard) went(s step) {
	g.recent = append(g.recent, s)
	g.recent = slices.Clone(g.recent[max(0, len(g.recent)-maxSteps):])
}

// cycles is the period of the cycle that call would go on with, and 0 if there is
// none: the same calls in the same order have printed the same twice. What waits for
// something may do that; one call alone is the business of Refuse.
func (g *Guard) cycles(call window.Call) int {
	n := len(g.recent)
	for period := 2; period <= maxPeriod && 2*period <= n; period++ {
		newest, before := g.recent[n-period:], g.recent[n-2*period:n-period]
		if newest[0].call == call && slices.Equal(newest, before) && !awaits.MatchString(call.Cmd) {
			return period
		}
	}
	return 0
}
