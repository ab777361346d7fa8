package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tether/harness"
)

// badness is the order of exit statuses, the best first: a task that needs an
// answer or more room, one that failed, one in which the model had no try, and last
// a fault of tether. One that is not here is the worst.
var badness = []int{0, 6, 4, 5, 3, 9, 8, 7, 78, 1}

// worse is the worse of two exit statuses.
func worse(a, b int) int {
	rank := func(status int) int {
		if i := slices.Index(badness, status); i >= 0 {
			return i
		}
		return len(badness)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// A batchSum is all results together. Its JSON is what batch --json prints.
type batchSum struct {
	V       int                  `json:"v"` // version of the format: 1
	Tasks   int                  `json:"tasks"`
	Done    int                  `json:"done"`
	Left    int                  `json:"left"` // tasks without a result
	Stops   map[harness.Stop]int `json:"stops"`
	Exit    int                  `json:"exit"`
	Steps   int                  `json:"steps"`
	Tokens  harness.Count        `json:"tokens"`
	Seconds float64              `json:"seconds"` // of the tasks, one after the other
	Out     string               `json:"out"`
	Error   string               `json:"error,omitempty"`
}

// sum adds up the results of a batch that err ended; nil: it came to its end.
func (b *batch) sum(ctx context.Context, results []batchResult, err error) batchSum {
	s := batchSum{V: 1, Tasks: len(b.tasks), Left: len(b.tasks) - len(results), Stops: map[harness.Stop]int{}, Out: b.out}
	for _, r := range results {
		o := r.Outcome
		s.Stops[o.Stop]++
		s.Exit = worse(s.Exit, o.Exit)
		s.Steps, s.Seconds = s.Steps+o.Steps, s.Seconds+o.Seconds
		s.Tokens = s.Tokens.Plus(o.Tokens)
	}
	s.Done = s.Stops[harness.Done]
	switch stop := cancelledBy(ctx); {
	case stop != "":
		s.Exit, s.Error = stop.Exit(), string(stop)
	case err != nil:
		s.Exit, s.Error = worse(s.Exit, stopOfBatch(err).Exit()), err.Error()
	}
	return s
}

// stopOfBatch is the reason that err ends a batch with.
func stopOfBatch(err error) harness.Stop {
	switch {
	case errors.Is(err, errServerGone):
		return harness.Unreachable
	case errors.Is(err, errNoModel):
		return harness.NoModel
	case errors.Is(err, errNoSandbox):
		return harness.Sandbox
	}
	return stopOf(err)
}

// report prints how the batch ended, and writes the reports. err is what ended it
// before its tasks did.
func (b *batch) report(ctx context.Context, err error) error {
	results := b.mine()
	s := b.sum(ctx, results, err)
	var lost error
	if b.json {
		lost = b.p.json(s)
	} else {
		fmt.Fprint(b.p.Out, printable(s.table(results, time.Since(b.began))))
	}
	if s.Error != "" {
		fmt.Fprintln(b.p.Err, "tether:", printable(s.Error))
	}
	if s.Left > 0 {
		fmt.Fprintf(b.p.Err, "tether: %d of %d tasks have a result; go on with the same command\n", len(results), s.Tasks)
	}
	var tasks []reported
	for _, r := range results {
		t := reported{Name: r.ID, Outcome: r.Outcome, Failed: r.Failed}
		if r.Source != "" {
			t.Folder = folderFrom(b.p.Getenv, r.Source)
		}
		tasks = append(tasks, t)
	}
	if err := b.reports.write(b.p, tasks); err != nil {
		fmt.Fprintln(b.p.Err, "tether:", printable(err.Error()))
		s.Exit = worse(s.Exit, 1)
	}
	if s.Exit != 0 {
		return exitError(s.Exit)
	}
	return lost
}

// maxListed is how many tasks that are not done the table names.
const maxListed = 20

// table is the sum for a person.
func (s batchSum) table(results []batchResult, took time.Duration) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s "+format+"\n", append([]any{name}, args...)...)
	}
	row("tasks", "%d", s.Tasks)
	row("done", "%d", s.Done)
	for _, stop := range slices.Sorted(maps.Keys(s.Stops)) {
		if stop != harness.Done {
			row(string(stop), "%d", s.Stops[stop])
		}
	}
	if s.Left > 0 {
		row("no result", "%d", s.Left)
	}
	row("steps", "%d", s.Steps)
	if s.Tokens.CacheTold {
		row("tokens", "%d in (%d cached), %d out", s.Tokens.Prompt, s.Tokens.Cached, s.Tokens.Output)
	} else {
		row("tokens", "%d in, %d out", s.Tokens.Prompt, s.Tokens.Output)
	}
	row("time", "%.1f s, of the tasks %.1f s", took.Seconds(), s.Seconds)
	row("results", "%s", s.Out)
	var not []batchResult
	for _, r := range results {
		if !r.Solved {
			not = append(not, r)
		}
	}
	if len(not) > 0 {
		fmt.Fprint(&b, "\nnot done:\n")
	}
	for i, r := range not {
		if i == maxListed {
			fmt.Fprintf(&b, "  and %d more\n", len(not)-maxListed)
			break
		}
		fmt.Fprintf(&b, "  %-20s %s\n", r.ID, reasonOf(reported{Outcome: r.Outcome, Failed: r.Failed}))
	}
	return b.String()
}

// line is a result for whoever follows the batch.
func (r batchResult) line() string {
	o := r.Outcome
	text := fmt.Sprintf("%s: %s, %s, %.1f s", r.ID, o.Stop, counted(o.Steps, "step"), o.Seconds)
	if !r.Solved {
		text += ": " + reasonOf(reported{Outcome: o, Failed: r.Failed})
	}
	return printable(text)
}
