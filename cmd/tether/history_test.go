package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An operation is one line of a history: what a process of the robustness job
// (robust_test.go) did to a store, written outside the store. Each operation
// has two lines, invoke and then ok or fail. Of one that has only its invoke,
// since its process was killed, nothing is known: it may have happened or not.
type operation struct {
	At      int64    `json:"at"`      // nanoseconds of the machine's steady clock
	Process string   `json:"process"` // who is started again has a new name
	N       int      `json:"n"`       // of the process
	Kind    string   `json:"kind"`    // append, read, search
	Phase   string   `json:"phase"`   // invoke, ok, fail
	Session string   `json:"session,omitempty"`
	ID      string   `json:"id,omitempty"`  // append: of the event
	IDs     []string `json:"ids,omitempty"` // read: all of the session, in order; search: what was found
}

// An ending is what became of a store, beside its history.
type ending struct {
	Executed map[string]int `json:"executed"` // how often each act was run
	Broken   string         `json:"broken"`   // why the chain of hashes does not close; "" if it does
	Watched  map[string]int `json:"watched"`  // flushes to disk of the processes in which they were counted
}

// violations are the promises that a history and its end break, in words: those
// that Jepsen and the robustness tests of etcd look for, of a log.
func violations(history []operation, end ending) []string {
	c := checker{invoked: map[string]bool{}, failed: map[string]bool{}, acked: map[string][]string{}, read: map[string][]string{}, floors: map[string]floor{}, acks: map[string]int{}}
	slices.SortStableFunc(history, func(a, b operation) int { return int(a.At - b.At) })
	for _, o := range history {
		c.add(o)
	}
	c.last()
	for id, n := range end.Executed {
		if n > 1 {
			c.report("repeated: act %s was run %d times", id, n)
		}
	}
	for process, n := range end.Watched {
		if acks := c.acks[process]; n < acks {
			c.report("unflushed: %s acknowledged %d commits and flushed %d times", process, acks, n)
		}
	}
	if end.Broken != "" {
		c.report("chain: %s", end.Broken)
	}
	slices.Sort(c.found)
	return slices.Compact(c.found)
}

// A checker goes through a history in the order of time.
type checker struct {
	invoked map[string]bool     // events that somebody tried to append
	failed  map[string]bool     // and was told that it did not work
	acked   map[string][]string // by session: that it did
	read    map[string][]string // by session: the longest read that has ended
	floors  map[string]floor    // by operation: what a read that is under way must show
	acks    map[string]int      // by process
	found   []string
}

// A floor is what was known of a session when a read of it began.
type floor struct {
	read  []string
	acked int // so many of the session's acknowledged events
}

func (c *checker) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *checker) add(o operation) {
	key := fmt.Sprint(o.Process, " ", o.N)
	switch o.Kind + " " + o.Phase {
	case "append invoke":
		c.invoked[o.ID] = true
	case "append ok":
		c.acked[o.Session] = append(c.acked[o.Session], o.ID)
		c.acks[o.Process]++
	case "append fail":
		c.failed[o.ID] = true
	case "read invoke":
		c.floors[key] = floor{c.read[o.Session], len(c.acked[o.Session])}
	case "read ok":
		c.look(o, c.floors[key])
	case "search ok":
		for _, id := range o.IDs {
			if !c.invoked[id] {
				c.report("invented: a search found %s, which nobody wrote", id)
			}
		}
	}
}

// look compares a read with what was known when it began: reads never go back,
// and nothing changes its place.
func (c *checker) look(o operation, f floor) {
	there := map[string]int{}
	for _, id := range o.IDs {
		if there[id]++; there[id] == 2 {
			c.report("doubled: %s is there twice", id)
		}
		if c.failed[id] {
			c.report("undead: %s failed and is there", id)
		}
		if !c.invoked[id] {
			c.report("invented: %s is there and nobody wrote it", id)
		}
	}
	for _, id := range c.acked[o.Session][:f.acked] {
		if there[id] == 0 {
			c.report("lost: %s was acknowledged and is not there", id)
		}
	}
	if n := len(f.read); len(o.IDs) < n || !slices.Equal(o.IDs[:n], f.read) {
		c.report("gone back: session %s was read longer, or in another order, before", o.Session)
	}
	if len(o.IDs) > len(c.read[o.Session]) {
		c.read[o.Session] = o.IDs
	}
}

// last looks at the longest read of every session for what failed after it was
// read, and at sessions that nobody read at the end.
func (c *checker) last() {
	for session, ids := range c.read {
		for _, id := range ids {
			if c.failed[id] {
				c.report("undead: %s failed and is there", id)
			}
		}
		delete(c.acked, session)
	}
	for session, ids := range c.acked {
		c.report("unread: session %s was never read, and has %d acknowledged events", session, len(ids))
	}
}

// TestViolations: the checker of the robustness job finds what it is for. A
// history is written a line an operation: TIME PROCESS KIND PHASE SESSION IDS.
func TestViolations(t *testing.T) {
	const sound = `
		1 a append invoke s e1
		2 a append ok s e1
		3 b append invoke s e2
		4 c read invoke s
		5 c read ok s e1
		6 c search invoke
		7 c search ok . e1
		8 z read invoke s
		9 z read ok s e1,e2`
	for _, test := range []struct {
		name, more, want string
		end              ending
	}{
		{name: "sound"},
		{name: "unknown and absent", more: "3 b append invoke s e3"},
		{name: "lost", more: "3 b append invoke s e3\n4 b append ok s e3", want: "lost: e3 was acknowledged and is not there"},
		{name: "acked after the read began", more: "3 b append invoke s e3\n8 b append ok s e3"},
		{name: "failed and there", more: "4 b append fail s e2", want: "undead: e2 failed and is there"},
		{name: "gone back", more: "10 y read invoke s\n11 y read ok s e1", want: "gone back: session s was read longer, or in another order, before"},
		{name: "other order", more: "10 y read invoke s\n11 y read ok s e2,e1", want: "gone back: session s was read longer, or in another order, before"},
		{name: "doubled", more: "10 y read invoke s\n11 y read ok s e1,e2,e2", want: "doubled: e2 is there twice"},
		{name: "invented", more: "10 y search invoke\n11 y search ok . e9", want: "invented: a search found e9, which nobody wrote"},
		{name: "unread", more: "1 b append invoke r e4\n2 b append ok r e4", want: "unread: session r was never read, and has 1 acknowledged events"},
		{name: "repeated", end: ending{Executed: map[string]int{"act-1": 2, "act-2": 1}}, want: "repeated: act act-1 was run 2 times"},
		{name: "chain", end: ending{Broken: "event 3"}, want: "chain: event 3"},
		{name: "unflushed", end: ending{Watched: map[string]int{"a": 0, "b": 0}}, want: "unflushed: a acknowledged 1 commits and flushed 0 times"},
	} {
		history := parseHistory(t, sound+"\n"+test.more)
		if got := strings.Join(violations(history, test.end), "; "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func parseHistory(t *testing.T, text string) (history []operation) {
	t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		o := operation{Process: words[1], Kind: words[2], Phase: words[3]}
		if _, err := fmt.Sscan(words[0], &o.At); err != nil {
			t.Fatal(err)
		}
		if len(words) > 4 {
			o.Session = words[4]
		}
		if len(words) > 5 {
			o.IDs = strings.Split(words[5], ",")
		}
		if o.Kind == "append" {
			o.ID, o.IDs = o.IDs[0], nil
		}
		history = append(history, o)
	}
	return history
}
