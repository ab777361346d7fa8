package growth

import (
	"math"
	"runtime"

	"golang.org/x/sys/unix"
)

// Steep is a growth that is no longer that of work that keeps pace with its input: with
// four times the input such work grows four times, and what is squared sixteen times.
const Steep = 8

// Of is how many times the work of f grows from an input of size to one four times
// as large. It is counted in processor time of this thread, which other work on the
// machine does not lengthen, and the best of ten tries counts, since caches are shared.
func Of(f func(size int), size int) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f(size) // what is made once
	small, large := math.Inf(1), math.Inf(1)
	for range 10 {
		small, large = min(small, cost(f, size)), min(large, cost(f, 4*size))
		if large < Steep*small {
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
