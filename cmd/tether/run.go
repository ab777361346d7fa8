package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"tether/act"
	"tether/harness"
	"tether/sandbox"
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
		fs.StringArrayVar(&f.attach, "attach", nil, "a text file that is shown with the task, as data (repeatable; \"-\" is standard input)")
		return f.run
	},
}

type runFlags struct {
	common
	verify, skills  []string
	protect         []string
	mendGate        bool
	schema          string
	steps, tokens   int
	limit           time.Duration
	json, events, q bool
	reports         reportFlags
	shown           // how it is shown, and where the report goes
}

func (f *runFlags) declare(fs *pflag.FlagSet) {
	f.declareTask(fs)
	fs.BoolVar(&f.json, "json", false, "print one JSON object at the end")
	fs.BoolVar(&f.events, "events", false, "print JSON Lines as it happens")
	fs.BoolVarP(&f.q, "quiet", "q", false, "no steps, only the result")
	f.shown.declare(fs)
	f.reports.declare(fs)
	f.common.declare(fs)
}

// declareTask declares what is said of a task, here and in a batch.
func (f *runFlags) declareTask(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.verify, "verify", nil, "a command that must succeed before the task is done (repeatable)")
	fs.StringArrayVar(&f.protect, "protect", nil, "files that belong to the checks and stay as they are, such as \"tests/**\" (repeatable)")
	fs.StringVar(&f.schema, "schema", "", "a file with a JSON Schema: the report must be JSON that fits it")
	fs.BoolVar(&f.mendGate, "allow-gate-change", false, "the script that a check runs may be changed: that is the task")
	f.declareModel(fs)
	fs.IntVar(&f.steps, "max-steps", 0, "replies of the model")
	fs.DurationVar(&f.limit, "timeout", 0, "time limit of the whole run, such as 10m")
	fs.IntVar(&f.tokens, "max-tokens", 0, "tokens of all requests together")
	fs.StringArrayVar(&f.skills, "skill", nil, "a skill whose checks become gates (repeatable)")
}

func (f *runFlags) run(ctx context.Context, p *program, args []string) error {
	if f.json && f.events {
		return usagef("--json and --events are two ways to print the same; give one")
	}
	if err := f.reports.check(); err != nil {
		return err
	}
	task, err := readTask(ctx, p, args)
	if err == nil {
		task, err = attach(ctx, p, task, f.attach)
	}
	if err != nil {
		return err
	}
	f.reports.deafen(p)
	out, err := f.do(ctx, p, task)
	return f.reports.reportOn(p, out, f.dir, f.report(p, out, err))
}

// do runs task. The outcome is whole also if the run could not begin.
func (f *runFlags) do(ctx context.Context, p *program, task string) (harness.Outcome, error) {
	c, err := f.settings(p)
	if err != nil {
		return f.failed(ctx, p, nil, task, err)
	}
	j := job{Task: task, Dir: f.dir, Config: c, Skills: f.skills, Notify: f.reports.watch(f.notify(p)), Shown: &f.shown, Model: ownModel(p)}
	return j.do(ctx, p)
}

// failed is the end of a run that could not begin.
func (f *runFlags) failed(ctx context.Context, p *program, w *workplace, task string, err error) (harness.Outcome, error) {
	return job{Task: task, Notify: f.notify(p)}.failed(ctx, w, err)
}

// settings is the configuration with the limits that the flags set.
func (f *runFlags) settings(p *program) (Config, error) {
	c, err := f.config(p)
	if err != nil {
		return c, err
	}
	set := f.fs.Changed
	switch {
	case set("max-steps") && f.steps < 1:
		return c, usagef("--max-steps is %d; it must be 1 or more", f.steps)
	case f.limit < 0:
		return c, usagef("--timeout is %s; it must be 0 or more", f.limit)
	case f.tokens < 0:
		return c, usagef("--max-tokens is %d; it must be 0 or more", f.tokens)
	}
	if set("max-steps") {
		c.Run.Steps = f.steps
	}
	if set("timeout") {
		c.Run.Time = duration(f.limit)
	}
	if set("max-tokens") {
		c.Run.Tokens = f.tokens
	}
	c.Run.Verify = append(slices.Clip(c.Run.Verify), f.verify...)
	if err := verifiable(c.Run.Verify); err != nil {
		return c, err
	}
	if err := f.useSchema(&c); err != nil {
		return c, err
	}
	return c, f.sealed(&c)
}

// sealed takes over the flags about the files of the gates. A pattern that
// names nothing protects nothing, and was meant to.
func (f *runFlags) sealed(c *Config) error {
	if f.mendGate {
		c.Run.GateChange = harness.GateReports
	}
	c.Run.Protect = append(slices.Clip(c.Run.Protect), f.protect...)
	if err := checkPatterns(f.protect); err != nil {
		return usageError{strings.Replace(err.Error(), "run.protect has", "--protect is", 1)}
	}
	for _, pattern := range f.protect {
		if found, err := sandbox.Protectable(f.dir, []string{pattern}); err == nil && len(found) == 0 {
			return usagef("--protect %s: there is no such file\nname files of the workspace, such as \"tests/**\"", pattern)
		}
	}
	return nil
}

// verifiable refuses a gate without a command.
func verifiable(lines []string) error {
	if slices.ContainsFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" }) {
		return usagef("--verify is empty; give a command such as --verify \"go test ./...\"")
	}
	return nil
}

// notify is how the run is followed: JSON Lines, nothing, or the live view.
func (f *runFlags) notify(p *program) func(harness.Event) {
	switch {
	case f.events:
		return func(e harness.Event) {
			if e.Type != harness.EventThink {
				_ = p.json(e) // a reader that went away does not end the run
			}
		}
	case f.q || f.json:
		return func(e harness.Event) { // what is to be known before it begins, and nothing of the steps
			if e.Type == harness.EventWarning && e.N == 0 {
				fmt.Fprintln(p.Err, "tether:", printable(e.Output))
			}
		}
	}
	return f.watch(p)
}

// report prints how the run ended: the report on standard output, the rest
// beside it.
func (f *runFlags) report(p *program, out harness.Outcome, err error) error {
	err = errors.Join(err, f.put(&out))
	switch {
	case f.json:
		if lost := p.json(out); lost != nil && out.Exit == 0 {
			return lost
		}
	case !f.events && (out.Steps > 0 || err == nil):
		if (out.Stop == harness.Done || out.Stop == harness.Waiting) && out.Report != "" {
			fmt.Fprintln(p.Out, printable(out.Report))
		}
		fmt.Fprintln(p.Err, f.told(out))
		if line := goOn(out, f.dir); line != "" {
			fmt.Fprintln(p.Err, "tether: go on with:", printable(line))
		}
		if out.Stop == harness.Waiting {
			fmt.Fprintf(p.Err, "tether: answer with: tether send %s TEXT\n", out.Session)
		}
	}
	if err != nil {
		fmt.Fprintln(p.Err, "tether:", printable(err.Error()))
	}
	if out.Exit != 0 {
		return exitError(out.Exit)
	}
	return nil
}

// lastLine sums a run up for a person.
func lastLine(o harness.Outcome) string {
	if o.Model == "" && o.Error == "" {
		return fmt.Sprintf("tether: %s by hand, exit status %d, sandbox %s", counted(o.Steps, "command"), o.Exit, confines(o.Sandbox, o.Network))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tether: %s: %s, %.1f s, %s, sandbox %s", endings[o.Stop], counted(o.Steps, "step"), o.Seconds, tokensLine(o), confines(o.Sandbox, o.Network))
	if len(o.Changed) > 0 {
		fmt.Fprintf(&b, "\ntether: changed: %s", list(o.Changed, 8))
	}
	if len(o.Planted) > 0 {
		fmt.Fprintf(&b, "\ntether: look at what is new: %s", list(o.Planted, 4))
	}
	for _, g := range o.Gates {
		fmt.Fprintf(&b, "\ntether: gate %s: %s", gateWord(g), g.Cmd)
	}
	if o.Unfit != "" {
		fmt.Fprintf(&b, "\ntether: %s", o.Unfit)
	}
	if len(o.Gates) == 0 && o.Stop == harness.Done { // of another end nobody thinks that it proves something
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
	harness.Waiting:     "waiting for an answer",
	harness.Unreachable: "the model server is not to be reached",
	harness.NoModel:     "the model gave no answer",
	harness.Config:      "the configuration is wrong",
	harness.Sandbox:     "the sandbox failed",
	harness.Interrupted: "interrupted",
	harness.Terminated:  "terminated",
	harness.Hangup:      "the terminal was closed",
	harness.Failed:      "an error inside tether",
}

// confines says what the commands of a run were held by.
func confines(profile, network string) string {
	if network == "" {
		return profile
	}
	return profile + ", network " + network
}

func gateWord(g harness.GateResult) string {
	changed := list(g.Changed, 4)
	switch {
	case g.Tries == 0:
		return "not run"
	case changed != "" && g.Status == act.Denied:
		return "no judge, since this was changed: " + changed
	case changed != "" && g.Status == 0:
		return "passed, but look at what it is made of, which was changed: " + changed
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
