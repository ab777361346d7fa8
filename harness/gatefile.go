package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"tether/act"
)

// What a change of a gate's own script means: the values of Agent.GateChange.
const (
	GateFails   = "fail"   // the gate cannot judge any more; the default
	GateReports = "report" // it is told, and the gate counts: the script is what was to be mended
)

// A Seal is how files of gates were before the first act. It stands in the log,
// so that a session that is taken up again is held to its beginning.
type Seal struct {
	Gate     string            `json:"gate,omitempty"` // its line; empty: every gate
	Strict   bool              `json:"strict"`         // a change is never a pass; else it is told
	Patterns []string          `json:"patterns"`
	Files    map[string]string `json:"files"` // path to SHA-256 in hex
}

// seals looks at the files that the gates are made of.
func (r *run) seals() ([]Seal, error) {
	var all []Seal
	if len(r.Protect) > 0 {
		s, err := r.seal("", true, r.Protect)
		if err != nil {
			return nil, fmt.Errorf("the files of the gates cannot be kept an eye on: %w\nname fewer with --protect", err)
		}
		all = append(all, s)
	}
	for _, g := range r.Gates {
		more, err := r.sealsOf(g)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// sealsOf looks at the script that a gate runs, and at what its runner reads.
func (r *run) sealsOf(g Gate) ([]Seal, error) {
	box := r.Check.Env.Box
	judge := act.Judges(g.Cmd, box.Policy().Root, func(rel string) bool {
		info, err := box.Files().Stat(rel)
		return err == nil && info.Mode().IsRegular()
	})
	var all []Seal
	if len(judge.Scripts) > 0 {
		s, err := r.seal(g.Cmd, r.GateChange != GateReports, judge.Scripts)
		if err != nil {
			return nil, fmt.Errorf("the script of the gate %s cannot be kept an eye on: %w", g.Cmd, err)
		}
		all = append(all, s)
	}
	if len(judge.Sources) > 0 {
		// Only told: more of them than can be hashed, or than a log should name, is
		// no reason not to run.
		if s, err := r.seal(g.Cmd, false, judge.Sources); err == nil && len(s.Files) <= maxSources {
			all = append(all, s)
		}
	}
	return all, nil
}

// maxSources is how many files a runner may read that are told by name when they
// change, 90 bytes of the log each.
const maxSources = 500

func (r *run) seal(gate string, strict bool, patterns []string) (Seal, error) {
	files, err := r.digest(patterns)
	return Seal{gate, strict, patterns, files}, err
}

func (r *run) digest(patterns []string) (map[string]string, error) {
	sums, err := r.Check.Env.Box.Files().Digest(patterns)
	files := make(map[string]string, len(sums))
	for name, sum := range sums {
		files[name] = hex.EncodeToString(sum[:sha256.Size])
	}
	return files, err
}

// tampered lists the files that gate g is made of and that are not what they
// were: if strict those with which it cannot judge, else those to be told.
func (r *run) tampered(g Gate, strict bool) []string {
	var names []string
	for _, s := range r.Setup.Seals {
		if s.Strict == strict && (s.Gate == "" || s.Gate == g.Cmd) {
			names = union(names, r.broken(s))
		}
	}
	return names
}

// broken lists the files of a seal that differ, are gone or are new. A new one
// that a pattern only happens to match, such as one more test, is told only if
// the pattern was to keep them out.
func (r *run) broken(s Seal) []string {
	now, err := r.digest(s.Patterns)
	if err != nil {
		return []string{strings.Join(s.Patterns, ", ") + " (" + err.Error() + ")"}
	}
	var names []string
	for name := range maps.Keys(now) {
		if was, had := s.Files[name]; had && was != now[name] || !had && (s.Strict || slices.Contains(s.Patterns, name)) {
			names = append(names, name)
		}
	}
	for name := range maps.Keys(s.Files) {
		if _, is := now[name]; !is {
			names = append(names, name)
		}
	}
	return names
}

// warnOfScripts tells the user before the first act that a file which the task
// names is one that decides, and so stays as it is.
func (r *run) warnOfScripts() {
	words := named(r.outcome.Task)
	for _, s := range r.Setup.Seals {
		for _, name := range slices.Sorted(maps.Keys(s.Files)) {
			if s.Strict && s.Gate != "" && slices.Contains(words, path.Base(name)) {
				r.tell(Event{Type: EventWarning, Output: name + " is what the gate runs, so nobody may change it; if the task is to change it: --allow-gate-change"})
			}
		}
	}
}

// gateChanged is the result of a done of which gate i cannot judge: names are
// files of it that were changed, and res what done returned. It is no pass,
// whatever the gate would say.
func (r *run) gateChanged(ctx context.Context, i int, names []string, res act.Result) act.Result {
	gate := &r.outcome.Gates[i]
	gate.Status, gate.Tries, gate.Changed = act.Denied, gate.Tries+1, names
	said := "changed since the start: " + few(names)
	r.tell(Event{Type: EventGate, N: r.steps, Cmd: gate.Cmd, Status: gate.Status, Output: said, Changed: names})
	if err := r.log(ctx, kindGate, gate); err != nil {
		return act.Result{Err: err}
	}
	r.tries++
	r.failed, r.shown = true, false
	return act.Result{Status: act.Failed, Output: "Not done: files of the check were " + said + "\nPut back what they held: they are not yours to change.", Changed: res.Changed, Gates: res.Gates, Report: res.Report}
}

// few joins at most six names.
func few(names []string) string {
	const most = 6
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
