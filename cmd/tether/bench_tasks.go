package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/act"
	"tether/harness"
	"tether/harness/llm"
	"tether/memory"
	"tether/sandbox"
)

// runTasks runs every task of a file with every model, seed and kind of check.
func (f *benchFlags) runTasks(ctx context.Context, p *program, args []string) error {
	tasks, err := f.tasks(args[0])
	if err != nil {
		return err
	}
	configs, err := f.configs(p)
	if err != nil {
		return err
	}
	dir, err := f.folder()
	if err != nil {
		return err
	}
	if f.keep == "" {
		defer os.RemoveAll(dir)
	}
	b := &taskBench{benchFlags: f, p: p, tasks: tasks, dir: dir}
	if err := b.openRows(); err != nil {
		return err
	}
	defer b.file.Close()
	for _, c := range configs {
		// What a check runs is often what the task is to change.
		c.Run.Steps, c.Run.GateChange = f.steps, harness.GateReports
		for _, seed := range seedsOr(f.seeds, c.Model.Seed) {
			c.Model.Seed = seed
			if err := b.with(ctx, c); err != nil {
				return err
			}
		}
	}
	return f.publish(p, b.markdown(filepath.Base(args[0]), configs), b.plot(filepath.Base(args[0])))
}

// tasks are those of the file, if the flags make sense for them.
func (f *benchFlags) tasks(file string) ([]benchTask, error) {
	switch {
	case f.steps < 1:
		return nil, usagef("bench: --max-steps is %d and must be 1 or more", f.steps)
	case !slices.Contains([]string{"on", "off", "both"}, f.gates):
		return nil, usagef("--gates is %q; it can be on, off or both", f.gates)
	}
	tasks, err := readTasks(file)
	if err != nil {
		return nil, err
	}
	return choose(tasks, f.only)
}

// folder is where the workspaces are made.
func (f *benchFlags) folder() (string, error) {
	if f.keep == "" {
		return os.MkdirTemp("", "tether-bench-")
	}
	if err := os.MkdirAll(f.keep, 0o755); err != nil {
		return "", usagef("%s cannot be made (%v); name another folder with --keep", f.keep, reason(err))
	}
	return f.keep, nil
}

// seedsOr are the seeds, or the configured one.
func seedsOr(seeds []int, seed int) []int {
	if len(seeds) == 0 {
		return []int{seed}
	}
	return seeds
}

// modes are the kinds of check that --gates asks for, with gates first.
func (f *benchFlags) modes() []bool {
	return map[string][]bool{"on": {true}, "off": {false}, "both": {true, false}}[f.gates]
}

// A taskBench is a bench of tasks that runs.
type taskBench struct {
	*benchFlags
	p     *program
	tasks []benchTask
	dir   string
	file  *os.File // of rows, or nil
	known []benchRow
	rows  []benchRow // those of this bench, old and new
}

// with runs what is left to run of one model with one seed. A model whose rows
// are all there already is not opened.
func (b *taskBench) with(ctx context.Context, c Config) error {
	cases := b.cases(c)
	if c.Model.Name != "" && !slices.ContainsFunc(cases, func(k benchCase) bool { return b.row(k) == nil }) {
		for _, k := range cases {
			b.rows = append(b.rows, *b.row(k))
		}
		return nil
	}
	names, err := c.commandNames()
	if err != nil {
		return err
	}
	model, err := openModel(ctx, b.p, c, names)
	if err != nil {
		return err
	}
	defer model.Close()
	if c.Model.Name == "" {
		c.Model.Name = model.Info().Name
	}
	for _, k := range b.cases(c) {
		if old := b.row(k); old != nil {
			b.rows = append(b.rows, *old)
			continue
		}
		r, err := b.one(ctx, c, model, k)
		if err != nil {
			return fmt.Errorf("task %s: %w", k.task.ID, err)
		}
		if err := b.add(r); err != nil {
			return err
		}
	}
	return nil
}

// A benchCase is one task with one model, seed, run and kind of check.
type benchCase struct {
	task  benchTask
	model string
	seed  int
	run   int
	gates bool
	steps int // at most
}

// cases are all of one model with one seed, in the order in which they are run.
func (b *taskBench) cases(c Config) []benchCase {
	var all []benchCase
	for run := range b.runs {
		for _, gates := range b.modes() {
			for _, t := range b.tasks {
				all = append(all, benchCase{t, c.Model.Name, c.Model.Seed, run + 1, gates, c.Run.Steps})
			}
		}
	}
	return all
}

// place is the folder of a case, a new one: files that are there already would
// be taken for the setup.
func (b *taskBench) place(k benchCase) (string, error) {
	word := "gates"
	if !k.gates {
		word = "bare"
	}
	dir := filepath.Join(b.dir, fmt.Sprintf("%s-seed%d-run%d-%s", plainName(shortModel(k.model)), k.seed, k.run, word), k.task.ID)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	err := os.Mkdir(dir, 0o755)
	for again := 2; errors.Is(err, os.ErrExist) && b.resume != "" && again < 100; again++ {
		dir = fmt.Sprintf("%s-%d", strings.TrimSuffix(dir, fmt.Sprintf("-%d", again-1)), again)
		err = os.Mkdir(dir, 0o755) // what a killed bench has begun is left as it is
	}
	if errors.Is(err, os.ErrExist) {
		return "", usagef("%s is there already, and its files would be taken for the setup; name another folder with --keep", dir)
	}
	return dir, err
}

// plainName is name with what a file's name should not have replaced.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/:@ \\", r) {
			return '_'
		}
		return r
	}, name)
}

// one runs a task in a folder of its own, and judges what came of it.
func (b *taskBench) one(ctx context.Context, c Config, model *llm.Model, k benchCase) (benchRow, error) {
	dir, err := b.place(k)
	if err != nil {
		return benchRow{}, err
	}
	ws := filepath.Join(dir, "workspace")
	if err := os.Mkdir(ws, 0o755); err != nil {
		return benchRow{}, err
	}
	own := *b.p
	own.Getenv = func(name string) string {
		if name == "TETHER_STATE" {
			return filepath.Join(dir, "state")
		}
		return b.p.Getenv(name)
	}
	w, err := open(ctx, &own, c, ws, k.task.Prompt)
	if err != nil {
		return benchRow{}, err
	}
	defer w.Close()
	if err := k.task.setUp(ctx, w.Box); err != nil {
		return benchRow{}, err
	}
	var gates []harness.Gate
	if k.gates {
		gates = []harness.Gate{{Cmd: k.task.Verify, Hidden: true}}
	}
	a := w.agent(model, gates)
	if b.live {
		a.Notify = newLive(b.p.Err, b.p.Getenv).show
	}
	out, err := a.Do(ctx, k.task.Prompt)
	if err != nil && (out.Stop != harness.NoModel || out.Steps < 2) {
		return benchRow{}, err // no model, or one that comes to no answer
	}
	return judged(ctx, a, k, out)
}

// judged is the row of a run that has ended. The check is run once more where it
// did not have the last word.
func judged(ctx context.Context, a *harness.Agent, k benchCase, out harness.Outcome) (benchRow, error) {
	r := benchRow{V: 1, ID: k.task.ID, Model: k.model, Seed: k.seed, Run: k.run, Gates: k.gates, MaxSteps: k.steps, Tether: version(), Outcome: out}
	r.Right = k.gates && out.Stop == harness.Done
	if !r.Right {
		a.Check.Env.Dir = ""
		res := a.Check.Program(ctx, k.task.Verify)
		if res.Err != nil {
			return r, res.Err
		}
		r.Right = res.Status == act.OK
	}
	r.Solved = r.Right && out.Stop == harness.Done
	return r, r.count(ctx, a.Store, a.Session.ID)
}

// count counts the replies of a session: those in which no call could be read,
// and those that were cut at the limit of tokens.
func (r *benchRow) count(ctx context.Context, store *memory.Store, session string) error {
	events, err := store.Events(ctx, session)
	if err != nil {
		return err
	}
	h := harness.Replay(events)
	for _, got := range h.Received {
		switch {
		case got.Sent == "" || got.Overflow > 0 || got.Error != "":
			continue // no reply
		case got.Cut:
			r.Cut++
		case len(got.Calls) == 0:
			r.Unreadable++
		}
		r.Replies++
	}
	for _, sent := range h.Sent {
		if sent.Fresh {
			r.Resampled++
		}
	}
	return nil
}

// setUp makes the files of a task.
func (t benchTask) setUp(ctx context.Context, box *sandbox.Box) error {
	if t.Setup == "" {
		return nil
	}
	out, err := box.Run(ctx, sandbox.Cmd{Shell: t.Setup})
	if err == nil && out.Status != 0 {
		err = usagef("its setup ended with status %d: %s", out.Status, strings.TrimSpace(out.Output))
	}
	return err
}
