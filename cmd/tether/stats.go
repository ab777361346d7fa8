package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/memory"
)

var statsCommand = &subcommand{
	Name:    "stats",
	Args:    "[SESSION]",
	Summary: "what sessions cost: tokens, time, folds, tools",
	Detail: `Sums up the sessions of this workspace, or SESSION: requests, tokens and how many
of them the server still held, seconds, the wait for the first token, folds, and for
each command how often it was offered and used. All of it is taken from the log.
Sessions by hand (tether act) asked no model and count only when named.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		n := fs.IntP("number", "n", 20, "how many sessions get a line of their own; 0 is all")
		asJSON := fs.Bool("json", false, "print one JSON object, with every session")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) > 1 {
				return usagef("stats takes one session")
			}
			all, err := summed(ctx, p, *dir, args)
			if err != nil {
				return err
			}
			if *asJSON {
				return p.json(all)
			}
			if len(all.Sessions) == 0 {
				fmt.Fprintln(p.Err, "tether: no session of a model here yet")
				return nil
			}
			var b strings.Builder
			all.print(&b, *n)
			_, err = fmt.Fprint(p.Out, printable(b.String()))
			return err
		}
	},
}

// A summary is what stats prints. Its JSON is the object of stats --json.
type summary struct {
	V        int                  `json:"v"`
	Sessions []sessionCost        `json:"sessions"` // newest first
	Stops    map[harness.Stop]int `json:"stops"`    // how the sessions ended; "" is one without an end
	Total    harness.Cost         `json:"total"`
}

// A sessionCost is what one session cost.
type sessionCost struct {
	Session string       `json:"session"`
	Task    string       `json:"task"`
	Model   string       `json:"model"`
	Started time.Time    `json:"started"`
	Stop    harness.Stop `json:"stop"`
	Exit    int          `json:"exit"`
	harness.Cost
}

// summed reads the sessions that args name, all for none.
func summed(ctx context.Context, p *program, dir string, args []string) (summary, error) {
	all := summary{V: 1, Sessions: []sessionCost{}, Stops: map[harness.Stop]int{}, Total: harness.Cost{Tools: []harness.Tool{}}}
	store, err := openStore(ctx, p, dir)
	if err != nil {
		return all, err
	}
	defer store.Close()
	var sessions []memory.Session
	if len(args) == 0 {
		sessions, err = store.Sessions(ctx, 0)
	} else {
		var one memory.Session
		one, err = store.Session(ctx, args[0])
		sessions = append(sessions, one)
	}
	if err != nil {
		return all, err
	}
	for _, s := range sessions {
		events, err := store.Events(ctx, s.ID)
		if err != nil {
			return all, err
		}
		h := harness.Replay(events)
		for _, bad := range h.Bad {
			fmt.Fprintf(p.Err, "tether: event %d (%s) cannot be read and is not counted: %v\n", bad.Seq, bad.Kind, bad.Err)
		}
		if len(h.Sent) > 0 || len(args) > 0 {
			all.add(s, &h)
		}
	}
	return all, nil
}

// add takes a session.
func (all *summary) add(s memory.Session, h *harness.History) {
	one := sessionCost{Session: s.ID, Task: s.Task, Model: s.Model, Started: s.Started, Cost: h.Cost()}
	if h.Setup.Model != "" {
		one.Model = h.Setup.Model
	}
	if h.Outcome != nil {
		one.Stop, one.Exit = h.Outcome.Stop, h.Outcome.Exit
	}
	all.Sessions = append(all.Sessions, one)
	all.Stops[one.Stop]++
	all.Total = all.Total.Plus(one.Cost)
}

// print writes the summary for a person: a line for each of the newest n sessions
// (0: all), and what all together cost.
func (all summary) print(w io.Writer, n int) {
	if len(all.Sessions) > 1 {
		fmt.Fprintf(w, "%-26s %-12s %5s %8s %7s %4s %7s %8s %6s\n", "session", "end", "steps", "in", "out", "hit", "s", "first ms", "folds")
		for i, s := range all.Sessions {
			if n > 0 && i == n {
				fmt.Fprintf(w, "and %d older ones\n", len(all.Sessions)-n)
				break
			}
			hit := "–" // the server does not tell
			if s.CacheTold {
				hit = ratio(s.Hit)
			}
			fmt.Fprintf(w, "%-26s %-12s %5d %8d %7d %4s %7.1f %8d %6d\n", s.Session, endWord(s.Stop), s.Steps, s.Prompt, s.Output, hit, s.Seconds, s.FirstToken.Median, s.Folds+s.Summaries)
		}
		fmt.Fprintln(w)
	}
	if len(all.Sessions) == 1 {
		s := all.Sessions[0]
		fmt.Fprintf(w, "session      %s\ntask         %s\nmodel        %s\n", s.Session, oneLine(s.Task, 100), s.Model)
	}
	all.totals(w)
}

// endWord is a stop in a word, also where there is none.
func endWord(s harness.Stop) string {
	if s == "" {
		return "no end"
	}
	return string(s)
}

func ratio(part float64) string { return fmt.Sprintf("%.0f%%", part*100) }

func (all summary) totals(w io.Writer) {
	c := all.Total
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	var ends []string
	for _, stop := range slices.Sorted(maps.Keys(all.Stops)) {
		ends = append(ends, fmt.Sprintf("%s %d", endWord(stop), all.Stops[stop]))
	}
	row("sessions", "%d: %s", len(all.Sessions), strings.Join(ends, ", "))
	row("requests", "%d for %d steps, %d replies without a call", c.Requests, c.Steps, c.Unread)
	switch {
	case c.CacheTold:
		row("tokens", "%d in: %d cached (%s), %d new; %d out", c.Prompt, c.Cached, ratio(c.Hit), c.New, c.Output)
	case c.Prompt > 0:
		row("tokens", "%d in, %d out; the server does not tell what was cached", c.Prompt, c.Output)
	default: // a script
		row("tokens", "%d in, %d out", c.Prompt, c.Output)
	}
	row("seconds", "%.1f: %.1f of the model, %.1f of commands", c.Seconds, float64(c.ModelMS)/1000, float64(c.CommandMS)/1000)
	row("first token", "%d ms in the middle, 95 of 100 within %d ms", c.FirstToken.Median, c.FirstToken.P95)
	row("folds", "%d, and %d summaries", c.Folds, c.Summaries)
	if c.Facts > 0 {
		row("AGENTS.md", "%d tokens", c.Facts)
	}
	fmt.Fprintf(w, "\n%-12s %7s %7s %7s %7s\n", "command", "offered", "used", "calls", "failed")
	for _, t := range c.Tools {
		fmt.Fprintf(w, "%-12s %7d %7d %7d %7d\n", oneLine(t.Name, 12), t.Offered, t.Used, t.Calls, t.Failed)
	}
}

// tokensLine says in a few words what a run cost its model.
func tokensLine(o harness.Outcome) string {
	t := o.Tokens
	line := fmt.Sprintf("%d tokens in", t.Prompt)
	if t.CacheTold {
		line += fmt.Sprintf(" (%d cached, %s)", t.Cached, ratio(float64(t.Cached)/float64(max(t.Prompt, 1))))
	}
	line += fmt.Sprintf(", %d out", t.Output)
	switch {
	case o.Folds == 1:
		line += ", 1 fold"
	case o.Folds > 1:
		line += fmt.Sprintf(", %d folds", o.Folds)
	}
	return line
}
