package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/harness/llm"
	"tether/memory"
)

var resumeCommand = &subcommand{
	Name:    "resume",
	Args:    "[SESSION]",
	Summary: "go on with a session",
	Detail: `Goes on with SESSION, or with the newest one here that has not come to its end:
it was interrupted or killed, its server went away, its steps were used up (raise
--max-steps). The model is shown what it was shown before. A command that was
begun and has no result is not run again; the model is told to look.

Model, limits, checks and commands are those of the session; flags change them. A
sandbox, a network or commands wider than both the session's and today's settings
need their flag again. Output and exit status are those of tether run.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f runFlags
		f.declare(fs)
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) > 1 {
				return usagef("resume takes one session; to tell it something: tether send SESSION TEXT")
			}
			return f.goOn(ctx, p, strings.Join(args, ""), "")
		}
	},
}

// A left session is one that is to be gone on with, taken for this process.
type left struct {
	config  Config
	store   *memory.Store
	lock    *memory.Lock
	session memory.Session
	history harness.History
}

// goOn goes on with the session called id, after a person has said something to
// it if that is not empty.
func (f *runFlags) goOn(ctx context.Context, p *program, id, said string) error {
	if f.json && f.events {
		return usagef("--json and --events are two ways to print the same; give one")
	}
	if err := f.reports.check(); err != nil {
		return err
	}
	l, err := f.take(ctx, p, id)
	if err != nil {
		return f.refuse(ctx, p, l, err)
	}
	if said != "" {
		err = l.history.Say(ctx, l.store, l.session.ID, said)
	}
	if err == nil {
		err = l.history.Ready(l.session.ID, l.limits())
	}
	if err != nil {
		l.close()
		return f.refuse(ctx, p, l, err)
	}
	f.reports.deafen(p)
	out, err := f.carryOn(ctx, p, l)
	if said != "" && out.Steps == 0 {
		fmt.Fprintf(p.Err, "tether: what you said is kept; go on with: tether resume %s\n", l.session.ID)
	}
	return f.reports.reportOn(p, out, f.dir, f.report(p, out, err))
}

// refuse reports a session that cannot be gone on with. Nothing of that is kept:
// it is as it was.
func (f *runFlags) refuse(ctx context.Context, p *program, l *left, err error) error {
	if _, ended := errors.AsType[*harness.EndedError](err); ended {
		err = usageError{err.Error()}
	}
	task := ""
	if l != nil {
		task = l.session.Task
	}
	out, err := f.failed(ctx, p, nil, task, err)
	return f.report(p, out, err)
}

// take finds the session and makes this process the one that works on it.
func (f *runFlags) take(ctx context.Context, p *program, id string) (*left, error) {
	c, err := f.settings(p)
	if err != nil {
		return nil, err
	}
	_, state, err := places(p.Getenv, f.dir)
	if err != nil {
		return nil, err
	}
	l := &left{}
	if l.store, err = openState(ctx, p, c, state); err != nil {
		return nil, err
	}
	if l.session, err = sessionOf(ctx, l.store, id); err == nil {
		l.lock, err = l.store.Lock(l.session.ID)
	}
	var events []memory.Event
	if err == nil {
		events, err = l.store.Events(ctx, l.session.ID)
	}
	if err != nil {
		l.close()
		return l, err
	}
	l.history = harness.Replay(events)
	if l.history.ByHand() {
		l.close()
		return l, usagef("session %s is of commands that were given by hand, and no model works on it", l.session.ID)
	}
	if l.config, err = f.asBefore(c, l); err != nil {
		l.close()
	}
	return l, err
}

func (l *left) close() {
	if l.lock != nil {
		_ = l.lock.Release() // the kernel would do it too
	}
	_ = l.store.Close()
}

func (l *left) limits() harness.Limits {
	r := l.config.Run
	return harness.Limits{Steps: r.Steps, Time: durationOf(r.Time), Tokens: r.Tokens}
}

// sessionOf is the session called id; for "" the newest one that can go on without
// another word and is not being worked on.
func sessionOf(ctx context.Context, store *memory.Store, id string) (memory.Session, error) {
	if id != "" {
		return store.Session(ctx, id)
	}
	all, err := store.Sessions(ctx, 0)
	if err != nil {
		return memory.Session{}, err
	}
	for _, s := range all {
		if !harness.Stop(s.Stop).Resumable() || store.Holder(s.ID) != 0 {
			continue
		}
		events, err := store.Events(ctx, s.ID)
		if err != nil {
			return s, err
		}
		if h := harness.Replay(events); !h.ByHand() {
			return s, nil
		}
	}
	return memory.Session{}, usagef("no session here is unfinished\nlist them with: tether ls")
}

// asBefore is c with what the session was set up with, as far as that is not
// wider than c and no flag says otherwise: the log may have come from elsewhere,
// and what was allowed once need not be allowed now.
func (f *runFlags) asBefore(c Config, l *left) (Config, error) {
	was, set := l.history.Setup, f.fs.Changed
	if !set("model") {
		c.Model.Name = cmp.Or(was.Model, l.session.Model, c.Model.Name)
	}
	if !set("sandbox") && narrower(profiles, was.Sandbox, c.Sandbox.Profile) {
		c.Sandbox.Profile = was.Sandbox
	}
	if !set("network") && !set("allow-net") && narrower(networks, was.Network, c.network()) {
		c.Sandbox.Network = was.Network
	}
	if len(was.Commands) > 0 {
		granted := slices.DeleteFunc(slices.Clone(was.Commands), func(name string) bool { return !slices.Contains(c.Run.Tools, name) })
		if len(granted) == 0 {
			return c, usagef("none of the commands of session %s is granted now\ngrant some: --tools %s", l.session.ID, strings.Join(was.Commands, ","))
		}
		c.Run.Tools = granted
	}
	if !set("max-steps") {
		c.Run.Steps = cmp.Or(was.Limits.Steps, c.Run.Steps)
	}
	if !set("timeout") {
		c.Run.Time = cmp.Or(duration(was.Limits.Time), c.Run.Time)
	}
	if !set("max-tokens") {
		c.Run.Tokens = cmp.Or(was.Limits.Tokens, c.Run.Tokens)
	}
	c.Run.Verify = verifyAgain(l.history.Gates, c.Run.Verify)
	c = f.sealedBefore(c, was)
	if err := c.check(); err != nil {
		return c, usageError{err.Error()}
	}
	return c, nil
}

// sealedBefore keeps the files of the gates under protection as they were.
func (f *runFlags) sealedBefore(c Config, was harness.Setup) Config {
	if !f.fs.Changed("allow-gate-change") {
		c.Run.GateChange = cmp.Or(was.GateChange, c.Run.GateChange)
	}
	for _, s := range was.Seals {
		if s.Gate == "" {
			c.Run.Protect = append(slices.Clip(c.Run.Protect), s.Patterns...)
		}
	}
	return c
}

// verifyAgain puts the session's gates before those of the settings, each once.
func verifyAgain(had []harness.GateResult, lines []string) []string {
	var all []string
	for _, g := range had {
		all = append(all, g.Cmd)
	}
	for _, line := range lines {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all
}

// narrower says whether a comes before b. What is not in the list never does.
func narrower(order []string, a, b string) bool {
	i := slices.Index(order, a)
	return i >= 0 && i < slices.Index(order, b)
}

// carryOn makes the workplace of the session and runs it on, as do does a new
// one.
func (f *runFlags) carryOn(ctx context.Context, p *program, l *left) (harness.Outcome, error) {
	c := l.config
	w, err := openFor(ctx, p, c, f.dir, l.store, func(w *workplace) (memory.Session, error) {
		w.lock = l.lock
		return l.session, nil
	})
	if err != nil {
		l.close()
		return f.failed(ctx, p, nil, l.session.Task, err)
	}
	defer w.Close()
	gates, err := w.gates(f.skills)
	if err != nil {
		return f.failed(ctx, p, w, l.session.Task, err)
	}
	model, err := openModelAs(ctx, p, c, w.Shell.Names(), f.wire(l))
	if err != nil {
		return f.failed(ctx, p, w, l.session.Task, f.another(l, err))
	}
	defer model.Close()
	if was := l.session.Model; l.history.Setup.Model == "" && was != "" && was != c.Model.Name {
		fmt.Fprintf(p.Err, "tether: the model was to be %s and is %s now\n", printable(was), printable(model.Info().Name))
	}
	model.Continue(l.history.Shape(), l.history.Misses(), l.history.Replies(c.Model.Name))
	a := w.agent(model, gates)
	a.Notify = f.reports.watch(f.notify(p))
	if f.fs.Changed("schema") || len(l.history.Setup.Schema) == 0 { // else it is the session's own, whatever the file holds now
		if a.Form, err = w.form(); err != nil {
			return f.failed(ctx, p, w, l.session.Task, err)
		}
	}
	f.remember(w)
	out, err := a.Resume(ctx, &l.history)
	f.compare(w, out)
	return out, err
}

// another is err; where that says that the session's model is gone, with how to go
// on with another one. None is taken that nobody has named: the session's past is
// the work of that model, and it may have been chosen with care.
func (f *runFlags) another(l *left, err error) error {
	if stop := stopOf(err); f.fs.Changed("model") || stop != harness.NoModel && stop != harness.Config || strings.Count(err.Error(), "\n") > 1 {
		return err
	}
	return fmt.Errorf("%w\ngo on with another model: tether resume %s --model NAME", err, l.session.ID)
}

// wire is how the session's model was asked, if it is to be asked so again.
func (f *runFlags) wire(l *left) []byte {
	if f.fs.Changed("model") && f.model != l.history.Setup.Model || f.fs.Changed("window") {
		return nil
	}
	return l.history.Setup.Wire
}

// openModelAs opens a model that is asked as wire says; nil is as c says.
func openModelAs(ctx context.Context, p *program, c Config, commands []string, wire []byte) (*llm.Model, error) {
	mc := modelConfig(p, c, commands)
	if len(wire) > 0 {
		var err error
		if mc, err = mc.As(wire); err != nil {
			fmt.Fprintln(p.Err, "tether:", printable(err.Error()))
		}
	}
	return llm.Open(ctx, mc)
}
