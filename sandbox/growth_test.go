//go:build linux

package sandbox

import (
	"strings"
	"testing"

	"tether/harness/growth"
)

// TestScreenIsLinear: no sequence makes a display slow or large.
func TestScreenIsLinear(t *testing.T) {
	for _, piece := range []string{"\x1b]", "\x1b[9999C.", "\x1b[99A", "\x1b[1K", "ab\r", "a\b", "\n\x1b[9A", "\x1b[2J\x1b[Hx", "\x1b[J\n", "\r1\x1b[K", "\x1bP"} {
		times := growth.Of(func(n int) { clean(strings.Repeat(piece, n/len(piece))) }, keep/2)
		if times >= growth.Steep {
			t.Errorf("four times %q are %.1f times the work", piece, times)
		}
		s := strings.Repeat(piece, 2*keep/len(piece))
		if got := clean(s); len(got) > 2*len(s) {
			t.Errorf("%q: %d bytes of %d", piece, len(got), len(s))
		}
	}
}
