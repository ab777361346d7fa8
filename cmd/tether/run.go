package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"tether/harness"
)

var runCommand = &subcommand{
	Name:    "run",
	Args:    "TASK…",
	Summary: "do one task",
	Detail: `Lets the model work in the sandbox until it says done and every --verify line
succeeds. TASK "-" is read from standard input. Exit statuses: tether help exit-codes.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f runFlags
		f.declare(fs)
		return f.run
	},
}

type runFlags struct {
	common
	verify, skills  []string
	steps, tokens   int
	limit           time.Duration
	json, events, q bool
}

func (f *runFlags) declare(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.verify, "verify", nil, "a command that must succeed before the task is done (repeatable)")
	f.declareModel(fs)
	fs.IntVar(&f.steps, "max-steps", 0, "replies of the model")
	fs.DurationVar(&f.limit, "timeout", 0, "time limit of the whole run, such as 10m")
	fs.IntVar(&f.tokens, "max-tokens", 0, "tokens of all requests together")
	fs.StringArrayVar(&f.skills, "skill", nil, "a skill whose checks become gates (repeatable)")
	fs.BoolVar(&f.json, "json", false, "print one JSON object at the end")
	fs.BoolVar(&f.events, "events", false, "print JSON Lines as it happens")
	fs.BoolVarP(&f.q, "quiet", "q", false, "no steps, only the result")
	f.common.declare(fs)
}

func (f *runFlags) run(ctx context.Context, p *program, args []string) error {
	task, err := readTask(p, args)
	if err != nil {
		return err
	}
	out, err := f.do(ctx, p, task)
	if err != nil && out.Stop == "" {
		return err
	}
	return f.report(p, out, err)
}

// do runs task. The outcome is empty if the run could not begin.
func (f *runFlags) do(ctx context.Context, p *program, task string) (harness.Outcome, error) {
	c, err := f.config(p)
	if err != nil {
		return harness.Outcome{}, err
	}
	f.limits(&c)
	w, err := open(ctx, p, c, f.dir, task)
	if err != nil {
		return harness.Outcome{}, err
	}
	defer w.Close()
	gates, err := f.gates(w)
	if err != nil {
		return harness.Outcome{}, err
	}
	model, err := openModel(ctx, p, c, w.Shell.Names())
	if err != nil {
		return harness.Outcome{}, err
	}
	defer model.Close()
	a := w.agent(model, gates)
	a.Notify = f.notify(p)
	return a.Do(ctx, task)
}

// limits puts the flags over the configuration.
func (f *runFlags) limits(c *Config) {
	if f.steps > 0 {
		c.Run.Steps = f.steps
	}
	if f.limit > 0 {
		c.Run.Time = duration(f.limit)
	}
	if f.tokens > 0 {
		c.Run.Tokens = f.tokens
	}
}

// gates are the lines of the configuration, of --verify and of the skills.
func (f *runFlags) gates(w *workplace) ([]harness.Gate, error) {
	lines := append(append([]string{}, w.Config.Run.Verify...), f.verify...)
	for _, name := range f.skills {
		s, ok := w.Skills.Get(name)
		if !ok {
			return nil, usagef("there is no skill %q\nlist them with: tether skill list", name)
		}
		lines = append(lines, s.Verify...)
	}
	var gates []harness.Gate
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			return nil, usagef("--verify is empty; give a command such as --verify \"go test ./...\"")
		}
		gates = append(gates, harness.Gate{Cmd: line})
	}
	return gates, nil
}

// notify is how the run is followed: JSON Lines, nothing, or the live view.
func (f *runFlags) notify(p *program) func(harness.Event) {
	switch {
	case f.events:
		enc := json.NewEncoder(p.Out)
		return func(e harness.Event) {
			if e.Type != harness.EventThink {
				_ = enc.Encode(e) // a reader that went away does not end the run
			}
		}
	case f.q || f.json:
		return nil
	}
	return newLive(p.Err, p.Getenv).show
}

// report prints how the run ended: the report on standard output, the rest
// beside it.
func (f *runFlags) report(p *program, out harness.Outcome, err error) error {
	switch {
	case f.json:
		enc := json.NewEncoder(p.Out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(out); err != nil {
			return err
		}
	case !f.events:
		if out.Stop == harness.Done && out.Report != "" {
			fmt.Fprintln(p.Out, out.Report)
		}
		fmt.Fprintln(p.Err, lastLine(out))
	}
	if err != nil {
		fmt.Fprintln(p.Err, "tether:", err)
	}
	if out.Exit != 0 {
		return exitError(out.Exit)
	}
	return nil
}

// lastLine sums a run up for a person.
func lastLine(o harness.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tether: %s: %d steps, %.1f s, %d tokens in (%d cached), %d out, sandbox %s",
		endings[o.Stop], o.Steps, o.Seconds, o.Tokens.Prompt, o.Tokens.Cached, o.Tokens.Output, o.Sandbox)
	if len(o.Changed) > 0 {
		fmt.Fprintf(&b, "\ntether: changed: %s", list(o.Changed, 8))
	}
	for _, g := range o.Gates {
		fmt.Fprintf(&b, "\ntether: gate %s: %s", gateWord(g), g.Cmd)
	}
	if len(o.Gates) == 0 {
		b.WriteString("\ntether: nothing was verified: give a check with --verify")
	}
	return b.String()
}

var endings = map[harness.Stop]string{
	harness.Done:        "done",
	harness.GateFailed:  "a gate failed, and the tries are spent",
	harness.GateError:   "a gate could not run, and the tries are spent",
	harness.Steps:       "out of steps; raise them with --max-steps",
	harness.Time:        "out of time; raise it with --timeout",
	harness.Tokens:      "out of tokens; raise them with --max-tokens",
	harness.Stalled:     "stalled: the model repeated itself",
	harness.Waiting:     "waiting",
	harness.Unreachable: "the model server is not to be reached",
	harness.NoModel:     "the model server refused",
	harness.Config:      "the configuration is wrong",
	harness.Sandbox:     "the sandbox failed",
	harness.Interrupted: "interrupted",
	harness.Terminated:  "terminated",
	harness.Failed:      "an error inside tether",
}

func gateWord(g harness.GateResult) string {
	switch {
	case g.Tries == 0:
		return "not run"
	case g.Status == 0:
		return "passed"
	}
	return fmt.Sprintf("failed with status %d", g.Status)
}

// list writes at most n of items, comma separated.
func list(items []string, n int) string {
	if len(items) <= n {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:n], ", "), len(items)-n)
}

// isText says whether s is UTF-8 without NUL.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func durationOf(d duration) time.Duration { return time.Duration(d) }
