package harness

import (
	"hash/fnv"
	"regexp"

	window "tether/context"
)

// awaits matches a line that looks at what changes without any act of the model:
// the time, other processes, what is elsewhere. It may be the same line again.
var awaits = regexp.MustCompile(`(?:^|[|;&({!]\s*|\b(?:do|then|while|until|sh|timeout \S+)\s+)(?:sleep|wait|date|ps|pgrep|jobs|curl|wget|nc|ss|ping|docker|kubectl|systemctl|gh|glab)(?:[\s;)]|$)`)

// Printed tells the guard what a call has printed. Of a line that waits for
// something, another output than the last time is progress.
func (g *Guard) Printed(call window.Call, output string) {
	call = same(call)
	g.went(fingerprint(call, output))
	if !awaits.MatchString(call.Cmd) {
		return
	}
	if g.prints == nil {
		g.prints, g.moving = map[window.Call]uint64{}, map[window.Call]bool{}
	}
	h := fnv.New64a()
	h.Write([]byte(clocks.ReplaceAllString(output, "")))
	was, had := g.prints[call]
	g.prints[call] = h.Sum64()
	if g.moving[call] = had && was != h.Sum64(); g.moving[call] {
		g.idle, g.seen[call] = 0, 1
	}
}

// clocks matches what is another in each output and no news: times of day, dates
// and how long something took.
var clocks = regexp.MustCompile(`\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?|\d{4}-\d\d-\d\d|\b\d+(?:\.\d+)?(?:ms|s)\b`)

// sleeps matches a line that waits a while before it looks, and maxPolls is how often
// it may see the same: what others do may take longer than one look.
var sleeps = regexp.MustCompile(`(?:^|[|;&({!]\s*|\b(?:do|then|sh)\s+)sleep\s`)

const maxPolls = 4

// polls reports whether a call waits for something and may be made again: it was
// made once, or printed another thing than the time before.
func (g *Guard) polls(call window.Call) bool {
	often := sameInAll
	if sleeps.MatchString(call.Cmd) {
		often = maxPolls
	}
	return awaits.MatchString(call.Cmd) && (g.seen[call] < often || g.moving[call])
}
