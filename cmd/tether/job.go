package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/harness"
	"tether/harness/llm"
	"tether/sandbox"
)

// A job is one task, and how and where it is carried out. tether run makes one
// of its command line and tether batch one of each line of its file: whatever
// happens to a task happens here.
type job struct {
	Task   string
	Dir    string // the workspace
	Config Config // with the gates in Run.Verify
	Skills []string
	SetUp  string // a command line that makes files before the model is asked; may be empty
	Notify func(harness.Event)
	Shown  *shown // what a person who watches is told of the files; may be nil
	// Model opens the model for a shell with these commands, and says what to do
	// with it in the end.
	Model func(ctx context.Context, c Config, commands []string) (*llm.Model, func(), error)
}

// do carries the job out. The outcome is whole also if it could not begin.
func (j job) do(ctx context.Context, p *program) (harness.Outcome, error) {
	w, err := open(ctx, p, j.Config, j.Dir, j.Task)
	if err != nil {
		return j.failed(ctx, nil, err)
	}
	defer w.Close()
	gates, err := w.gates(j.Skills)
	if err == nil {
		err = setUpFiles(ctx, w.Box, j.SetUp, durationOf(j.Config.Run.Time))
	}
	if err != nil {
		return j.failed(ctx, w, err)
	}
	model, done, err := j.Model(ctx, j.Config, w.Shell.Names())
	if err != nil {
		return j.failed(ctx, w, err)
	}
	defer done()
	a := w.agent(model, gates)
	a.Notify = j.Notify
	if a.Form, err = w.form(); err != nil {
		return j.failed(ctx, w, err)
	}
	j.Shown.remember(w)
	out, err := a.Do(ctx, j.Task)
	j.Shown.compare(w, out)
	return out, err
}

// failed tells the end of a run that could not begin. If there is a session
// it ends with that.
func (j job) failed(ctx context.Context, w *workplace, err error) (harness.Outcome, error) {
	stop := cmp.Or(cancelledBy(ctx), stopOf(err))
	out := harness.Failure(j.Task, stop, err)
	if _, usage := errors.AsType[usageError](err); usage {
		out.Exit = 2
	}
	if w != nil {
		out.Session, out.Sandbox, out.Network = w.Session.ID, string(w.Box.Policy().Profile), string(w.Box.Policy().Network)
		err = errors.Join(err, harness.Abandon(ctx, w.Store, out.Session, out))
	}
	if j.Notify != nil {
		j.Notify(harness.Event{V: 1, Type: harness.EventResult, Result: &out})
	}
	return out, err
}

// gates are the lines of the settings, --verify among them, and of the skills.
func (w *workplace) gates(names []string) ([]harness.Gate, error) {
	lines := slices.Clone(w.Config.Run.Verify)
	for _, name := range names {
		s, ok := w.Skills.Get(name)
		if !ok {
			return nil, usagef("there is no skill %q\nlist them with: tether skill list", name)
		}
		lines = append(lines, s.Verify...)
	}
	var gates []harness.Gate
	for _, line := range lines {
		gates = append(gates, harness.Gate{Cmd: line})
	}
	return gates, nil
}

// setUpFiles runs the line that makes the files of a task. It may take no longer
// than the task may (0: than a command), so that a task with a limit has one.
func setUpFiles(ctx context.Context, box *sandbox.Box, line string, limit time.Duration) error {
	if line == "" {
		return nil
	}
	within, cancel := ctx, func() {}
	if limit > 0 {
		within, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	out, err := box.Run(within, sandbox.Cmd{Shell: line})
	said := cmp.Or(lastLines(strings.TrimSpace(out.Output), 5), "it printed nothing")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return &configError{File: "setup", Msg: fmt.Sprintf("took longer than the whole task may, %s: %s", limit, said)}
	case err == nil && out.Killed != "":
		return &configError{File: "setup", Msg: fmt.Sprintf("was stopped, %s: %s", out.Killed, said)}
	case err == nil && out.Status != 0:
		return &configError{File: "setup", Msg: fmt.Sprintf("ended with status %d: %s", out.Status, said)}
	}
	return err
}

// ownModel opens a model that belongs to one job alone.
func ownModel(p *program) func(context.Context, Config, []string) (*llm.Model, func(), error) {
	return func(ctx context.Context, c Config, commands []string) (*llm.Model, func(), error) {
		m, err := openModel(ctx, p, c, commands)
		if err != nil {
			return nil, nil, err
		}
		return m, func() { _ = m.Close() }, nil
	}
}
