package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/memory"
)

var lsCommand = &subcommand{
	Name:    "ls",
	Summary: "list the sessions of this workspace",
	Detail: `Lists the newest sessions first: id, state, age, steps, gate, task. The state is
running, done, waiting (for tether send), interrupted (tether resume goes on) or
failed; behind it stands how it came to that.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		n := fs.IntP("number", "n", 20, "how many; 0 is all")
		asJSON := fs.Bool("json", false, "print one JSON object a session")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) > 0 {
				return usagef("ls takes no word; one session is shown by: tether show %s", args[0])
			}
			if *n < 0 {
				return usagef("--number is %d; it is 0 (all) or more", *n)
			}
			return listSessions(ctx, p, *dir, *n, *asJSON)
		}
	},
}

// A listed session is one as ls shows it. Its JSON is a line of ls --json.
type listed struct {
	V       int                  `json:"v"`
	Session string               `json:"session"`
	State   string               `json:"state"` // running, done, waiting, interrupted, failed
	Task    string               `json:"task"`
	Model   string               `json:"model"`
	From    string               `json:"from,omitempty"` // what it was copied from
	Started time.Time            `json:"started"`
	Age     int64                `json:"age_seconds"`
	Stop    harness.Stop         `json:"stop"` // empty: it has no end
	Exit    int                  `json:"exit"`
	Steps   int                  `json:"steps"`
	Gates   []harness.GateResult `json:"gates"`
	PID     int                  `json:"pid,omitempty"` // of the process that runs it
}

func listSessions(ctx context.Context, p *program, dir string, n int, asJSON bool) error {
	store, err := openStore(ctx, p, dir)
	if err != nil {
		return err
	}
	defer store.Close()
	all, err := store.Sessions(ctx, n)
	if err != nil {
		return err
	}
	for _, s := range all {
		l, err := listing(ctx, store, s)
		if err != nil {
			return err
		}
		if asJSON {
			err = p.json(l)
		} else {
			err = l.print(p.Out)
		}
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(p.Err, "tether: no session here yet")
	}
	return nil
}

// listing is what is known of a session. Of one whose newest run has no end, or
// did not begin, the log is read.
func listing(ctx context.Context, store *memory.Store, s memory.Session) (listed, error) {
	l := listed{
		V: 1, Session: s.ID, Task: s.Task, Model: s.Model, From: s.From, Started: s.Started, Age: int64(time.Since(s.Started).Seconds()),
		Stop: harness.Stop(s.Stop), Exit: s.Exit, PID: store.Holder(s.ID), Gates: []harness.GateResult{},
	}
	if l.PID != 0 {
		l.Stop, l.Exit = "", 0
	}
	l.State = stateOf(l.Stop, l.PID != 0)
	if s.End != "" {
		var o harness.Outcome
		if json.Unmarshal([]byte(s.End), &o) == nil && o.Gates != nil && o.Steps > 0 {
			l.Steps, l.Gates = o.Steps, o.Gates
			return l, nil
		}
	}
	events, err := store.Events(ctx, s.ID)
	h := harness.Replay(events)
	if n := len(h.Steps); n > 0 {
		l.Steps = h.Steps[n-1].Step
	}
	l.Gates = append(l.Gates, h.Gates...)
	return l, err
}

// stateOf is the state in a word.
func stateOf(stop harness.Stop, running bool) string {
	switch stop {
	case harness.Done:
		return "done"
	case harness.Waiting:
		return "waiting"
	case harness.GateFailed, harness.GateError, harness.Stalled, harness.Failed, harness.Config, harness.Sandbox, harness.NoModel:
		return "failed"
	}
	if running {
		return "running"
	}
	return "interrupted"
}

func (l listed) print(w io.Writer) error {
	state := l.State
	switch {
	case l.State == "interrupted" && l.Stop == "":
		state += " (killed)"
	case l.Stop != "" && string(l.Stop) != l.State:
		state += " (" + string(l.Stop) + ")"
	}
	_, err := fmt.Fprintf(w, "%s  %-24s %4s %9s  %-7s  %s\n", l.Session, state, age(time.Duration(l.Age)*time.Second), counted(l.Steps, "step"), gateState(l.Gates), oneLine(l.Task, 60))
	return err
}

// gateState sums up how the gates stand.
func gateState(gates []harness.GateResult) string {
	word := "passed"
	for _, g := range gates {
		switch {
		case g.Tries > 0 && g.Status != 0:
			return "failed"
		case g.Tries == 0:
			word = "not run"
		}
	}
	if len(gates) == 0 {
		return "no gate"
	}
	return word
}

// age writes a time that has passed in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// oneLine is s on one line, at most n characters of it.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
