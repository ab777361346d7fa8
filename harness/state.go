package harness

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"tether/act"
	window "tether/context"
)

// A state is what the harness knows of a session beside what its window shows.
// A run keeps it as it goes, and Replay makes it again from the log: after every
// turn the two are the same, so that a session goes on as if it had never
// stopped.
type state struct {
	guard    Guard
	results  map[window.Call]act.Result // the newest result of each call that was run
	shell    act.State                  // what the shell remembered after the newest turn
	files    []string                   // that differ from the start, as the newest change left them
	steps    int                        // replies
	requests int
	again    bool   // the newest call was in vain: the next reply is sampled anew
	broke    bool   // a command has failed and nothing has changed since
	touched  bool   // something was changed
	made     string // the newest line that has printed something and changed nothing
	slipped  int    // the status of the newest command that was no done
	doubted  bool   // a done was questioned
	shown    bool   // the newest failure of a gate showed a file
	failed   bool   // a gate has failed and nothing has changed since
	tries    int    // of the gates
	done     bool   // every gate passed
	report   string
	amiss    string // why the newest report does not fit
	tried    int    // turns before this place are summarised, or were tried to be
	band     int    // of the newest reminder that the window is nearly full
	model    string // who answered last, in the words of its server
	form     string // in which it was asked for calls, in the words of package llm
	// pending is a reply that came and of which nothing was run yet. A kill there
	// loses no reply.
	pending *answer

	// thought is what the newest reply thought, until a turn has it.
	thought string

	// What was used when the person spoke last: the limits count from there.
	base  int // replies
	basis int // tokens
}

// An answer is a reply, and whether it was asked for anew.
type answer struct {
	window.Reply
	fresh bool
}

// ran books a call that was run: whether it changed a file, and its result as
// it was before any gate.
func (s *state) ran(call window.Call, changed bool, res act.Result) {
	s.guard.Ran(call, changed)
	s.guard.Printed(call, strings.ToValidUTF8(res.Output, "\uFFFD"))
	if same(call).Cmd != "done" {
		s.slipped = res.Status
	}
	s.touched, s.made = s.touched || changed, cmp.Or(product(call, changed, res), s.made)
	switch {
	case changed:
		s.failed, s.broke = false, false
	case res.Status != act.OK:
		s.broke = true
	}
	if s.results == nil {
		s.results = map[window.Call]act.Result{}
	}
	s.results[same(call)] = act.Result{Status: res.Status, Output: strings.ToValidUTF8(res.Output, "\uFFFD")}
}

// told books that a person said something when so many tokens were used:
// whatever was tried in vain may be right now, and the limits count anew.
func (s *state) told(used Count) {
	s.guard, s.tries = Guard{}, 0
	s.again, s.broke, s.failed, s.done = false, false, false, false
	s.slipped, s.doubted = act.OK, false
	s.base, s.basis = s.steps, used.Prompt+used.Output
}

// lost books a command of which nobody knows how it ended: everything may have
// changed, and it may be run again.
func (s *state) lost() {
	s.guard.Forget()
	s.again, s.broke, s.failed, s.slipped = false, false, false, act.OK
}

// replayed books a turn of the log. gate says that a gate failed in it: then
// its observation is the gate's, and the command itself had succeeded.
func (s *state) replayed(t window.Turn, d Turned, gate bool) {
	s.steps, s.band = max(s.steps, d.Step), max(s.band, d.Band)
	s.remember(d)
	switch d.How {
	case howMissed:
		s.guard.Warn()
	case howRepeated:
		s.guard.Refuse(t.Call)
	case howInterrupted:
		s.lost()
	case howDoubted:
		s.ran(t.Call, d.Changed, act.Result{})
		s.again, s.report, s.amiss = false, d.Report, ""
		s.doubt(t.Call)
	case howUnfit:
		s.ran(t.Call, d.Changed, act.Result{})
		s.again, s.report = false, d.Report
		s.unfit(t.Call, t.Output)
	default:
		res := act.Result{Status: t.Status, Output: t.Output}
		if gate || d.Done {
			res = act.Result{}
		}
		s.ran(t.Call, d.Changed, res)
		s.again, s.done = false, d.Done
		if gate || d.Done {
			s.report, s.amiss = d.Report, ""
		}
		if gate {
			s.failed, s.shown = true, d.Shown
		}
	}
}

// remember takes what a turn says of the shell and of the files.
func (s *state) remember(d Turned) {
	if s.shell.Dir = d.Dir; s.shell.Seen == nil {
		s.shell.Seen = map[string]string{}
	}
	maps.Copy(s.shell.Seen, d.Seen)
	if d.Changed {
		s.files = d.Files
	}
}

// news are the files that now has seen otherwise than before.
func news(before, now act.State) map[string]string {
	seen := map[string]string{}
	for name, sum := range now.Seen {
		if before.Seen[name] != sum {
			seen[name] = sum
		}
	}
	return seen
}

// maxNamed is how many changed files a turn of the log names: what a build
// leaves behind is of no interest by name.
const maxNamed = 200

// union joins names, sorted and each once. A folder is named only while it is empty:
// one in which there is something since is told by that.
func union(a, b []string) []string {
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
	var names []string
	for i, name := range all {
		if !strings.HasSuffix(name, "/") || i+1 == len(all) || !strings.HasPrefix(all[i+1], name) {
			names = append(names, name)
		}
	}
	return names
}
