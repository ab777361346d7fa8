//go:build linux

package sandbox

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// steep is a growth that is no longer that of work that keeps pace with its input: with
// four times the input such work grows four times, and what is squared sixteen times.
const steep = 8

// growth is how many times the work of f grows from an input of size to one four times
// as large. It is counted in processor time of this thread, which other work on the
// machine does not lengthen, and the best of ten tries counts, since caches are shared.
func growth(f func(size int), size int) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f(size) // what is made once
	small, large := math.Inf(1), math.Inf(1)
	for range 10 {
		small, large = min(small, cost(f, size)), min(large, cost(f, 4*size))
		if large < steep*small {
			break
		}
	}
	return large / small
}

// cost is the processor time of f in nanoseconds. Of less than some twenty microseconds
// nothing can be said.
func cost(f func(size int), size int) float64 {
	used := func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // it fails with a wrong number only
		return t.Nano()
	}
	before := used()
	f(size)
	return max(20e3, float64(used()-before))
}

// TestScreenIsLinear: no sequence makes a display slow or large.
func TestScreenIsLinear(t *testing.T) {
	for _, piece := range []string{"\x1b]", "\x1b[9999C.", "\x1b[99A", "\x1b[1K", "ab\r", "a\b", "\n\x1b[9A", "\x1b[2J\x1b[Hx", "\x1b[J\n", "\r1\x1b[K", "\x1bP"} {
		times := growth(func(n int) { clean(strings.Repeat(piece, n/len(piece))) }, keep/2)
		if times >= steep {
			t.Errorf("four times %q are %.1f times the work", piece, times)
		}
		s := strings.Repeat(piece, 2*keep/len(piece))
		if got := clean(s); len(got) > 2*len(s) {
			t.Errorf("%q: %d bytes of %d", piece, len(got), len(s))
		}
	}
}
