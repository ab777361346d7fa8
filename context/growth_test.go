//go:build linux

package window

import (
	"strings"
	"testing"

	"tether/harness/growth"
)

// TestExcerptIsLinear: the work for an output keeps pace with its size, up to what a
// sandbox lets through.
func TestExcerptIsLinear(t *testing.T) {
	const most = 128 << 10
	for _, line := range []string{"ab\n", "\n", "error: x\n", "E   a\n", "\t/a/b.go:1 +0x2\n", "Traceback (most recent call last):\n", "--> \n", "[", "=", "0 a "} {
		times := growth.Of(func(n int) { Excerpt(strings.Repeat(line, n/len(line)), 2400, 900, 900, "obs_1") }, most/4)
		if times >= growth.Steep {
			t.Errorf("four times %q are %.1f times the work", line, times)
		}
	}
}
