package growth

import "testing"

// TestOf: the measure tells work that is squared from work that is not.
func TestOf(t *testing.T) {
	sum := 0
	work := func(n int) {
		for i := range n {
			sum += i
		}
	}
	if got := Of(work, 1<<20); got >= Steep {
		t.Errorf("as large: %.1f times", got)
	}
	if got := Of(func(n int) { work(n * n) }, 1<<10); got < Steep {
		t.Errorf("squared: %.1f times", got)
	}
}
