package harness_test

import (
	"fmt"
	"testing"

	window "tether/context"
	"tether/harness"
)

// TestPolling: a line that waits for something goes on as long as what it prints
// changes; any other line, and one that waits in vain, is refused as ever.
func TestPolling(t *testing.T) {
	for _, c := range []struct {
		cmd    string
		output func(i int) string
		runs   int // of ten calls
	}{
		{"sleep 1; cat job.log", func(i int) string { return fmt.Sprintf("%d %% done", 10*i) }, 10},
		{"curl -s http://localhost:8080/status", func(i int) string { return fmt.Sprintf("jobs left: %d", 9-i) }, 10},
		{"gh run view 7", func(i int) string { return []string{"queued", "queued", "running", "done", "done"}[min(i, 4)] }, 2},
		{"gh run view 7", func(i int) string { return []string{"queued", "running", "done"}[min(i, 2)] }, 4},
		{"sleep 5", func(int) string { return "" }, 4},
		{"sleep 30; gh run view 7", func(i int) string { return []string{"queued", "done"}[i/3%2] }, 10},
		{"while ! curl -s localhost; do sleep 1; done", func(int) string { return "refused" }, 4},
		{"date", func(i int) string { return fmt.Sprintf("Mon Nov 30 14:26:%02d UTC 2026", i) }, 2},                          // time alone is no news
		{"sleep 2 && make check", func(i int) string { return fmt.Sprintf("12:0%d:07 FAIL x_test.go:14 (0.%ds)", i, i) }, 4}, // as in d03
		{"make check", func(i int) string { return fmt.Sprintf("%d", i) }, 1},
		{"cat date.txt", func(i int) string { return fmt.Sprintf("%d", i) }, 1},
		{"grep -n sleep wait.sh", func(i int) string { return fmt.Sprintf("%d", i) }, 1},
	} {
		var g harness.Guard
		call, runs := window.Call{Cmd: c.cmd}, 0
		for i := range 10 {
			repeats := g.Repeats(call)
			if g.Refuse(call) != "" {
				break
			}
			if runs++; repeats && runs > 1 {
				t.Errorf("%s: the model is sampled anew before call %d, which runs", c.cmd, i+1)
			}
			g.Ran(call, false)
			g.Printed(call, c.output(i))
		}
		if runs != c.runs {
			t.Errorf("%s: ran %d times, want %d", c.cmd, runs, c.runs)
		}
	}
}

// A change of what is waited for is progress, and no reason to ask for action.
func TestPollingIsNotIdle(t *testing.T) {
	var g harness.Guard
	call := window.Call{Cmd: "sleep 1; cat job.log"}
	for i := range 6 {
		g.Ran(call, false)
		g.Printed(call, fmt.Sprint(i))
	}
	if g.Idle() != 0 {
		t.Errorf("idle for %d calls", g.Idle())
	}
}
