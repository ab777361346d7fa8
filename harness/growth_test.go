//go:build linux

package harness_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tether/harness"
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

// TestFormsAreLinear: the work for a report keeps pace with its size.
func TestFormsAreLinear(t *testing.T) {
	for _, c := range []struct {
		schema string
		report func(n int) string // of about n bytes
	}{
		{`true`, func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) }},
		{`{"type":"array","uniqueItems":true}`, func(n int) string { return "[" + strings.Repeat("1,", n/2) + "2]" }},
		{`{"type":"array","items":{"type":"integer"}}`, func(n int) string { return "[" + strings.Repeat("1,", n/2) + "2]" }},
		{`true`, func(n int) string { return "[" + strings.Repeat(`{"a":"a"},`, n/10) + "1]" }},
		{`{"type":"string"}`, func(n int) string { return `"` + strings.Repeat("ü", n/2) + `"` }},
	} {
		form, err := harness.ParseForm([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		if times := growth(func(n int) { form.Check(c.report(n)) }, 4<<10); times >= steep {
			t.Errorf("%s: four times %.20q are %.1f times the work", c.schema, c.report(1<<10), times)
		}
	}
}
