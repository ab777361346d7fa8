//go:build linux

package act

import (
	"math"
	"net/url"
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

// TestGrowth: the measure tells work that is squared from work that is not.
func TestGrowth(t *testing.T) {
	sum := 0
	work := func(n int) {
		for i := range n {
			sum += i
		}
	}
	if got := growth(work, 1<<20); got >= steep {
		t.Errorf("as large: %.1f times", got)
	}
	if got := growth(func(n int) { work(n * n) }, 1<<10); got < steep {
		t.Errorf("squared: %.1f times", got)
	}
}

// hostile are pages of some size that are made to be slow or deep.
func hostile(size int) []string {
	var pages []string
	for _, unit := range []string{
		"<div>", "<ul>", "<ul><li>", "<ol><li>a", "<table>", "<table><tr><td>", "<td>", "<a href=x>", "<a href='/", "<b ", "<", "</", "<!--", "<![CDATA[", "&", "&amp", "&#",
		"<pre>\n", "<script>", "<svg>", "<nav>", "<nav></div>", "<title>", "<plaintext>", "<p hidden>", "<h1>", "\x00", "\xff", "<br>", "<a b=c b=c ", "<x y='", "\u202e", "<li><p>a",
	} {
		pages = append(pages, strings.Repeat(unit, size/len(unit)))
	}
	return append(pages, "<p "+strings.Repeat("a=b ", size/4)+">x", "<a href='"+strings.Repeat("y", size)+"'>x</a>")
}

// TestHostilePages: the work that a page makes keeps pace with its size, and what comes
// of it is bounded.
func TestHostilePages(t *testing.T) {
	const size = 64 << 10
	base, _ := url.Parse("https://docs.example/")
	small, large := hostile(size), hostile(4*size)
	for i, page := range small {
		most := 0
		times := growth(func(n int) {
			if n > size {
				most = len(htmlText(large[i], base, webPiped))
			} else {
				htmlText(page, base, webPiped)
			}
		}, size)
		if times >= steep || most > 5<<20 {
			t.Errorf("four times %.12q without an end are %.1f times the work, and %d bytes", page, times, most)
		}
	}
}
