package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tether/harness"
	"tether/harness/llm"
	"tether/sandbox"
)

// one carries a task out in a copy of its folder. Whatever is wrong with it is its
// own result.
func (b *batch) one(ctx context.Context, t batchTask) batchResult {
	r := batchResult{V: 1, ID: t.ID, Kind: t.Kind, Sum: t.sum}
	ws := filepath.Join(b.work, "workspace", t.ID)
	source, err := b.source(ctx, t)
	if err == nil {
		err = b.copy(ctx, source, ws)
	}
	var j job
	if err == nil {
		j, err = b.job(t, source, ws)
	}
	var seen reportFlags
	if err != nil {
		r.Outcome, err = job{Task: t.Prompt}.failed(ctx, nil, err)
	} else {
		j.Notify = seen.watch(nil)
		r.Outcome, err = j.do(ctx, b.program(source))
	}
	if _, usage := errors.AsType[usageError](err); usage { // of the task, not of the command line
		r.Outcome.Stop, r.Outcome.Exit = harness.Config, harness.Config.Exit()
	}
	r.Solved, r.Source = r.Outcome.Stop == harness.Done, source
	r.Failed = seen.failed(r.Outcome, ws)
	if ctx.Err() == nil {
		b.settle(&r, source, ws)
	}
	return r
}

// source is the folder of which the task gets a copy, absolute and without links;
// empty: it has none.
func (b *batch) source(ctx context.Context, t batchTask) (string, error) {
	dir := b.commonDir()
	if t.Dir != "" {
		if dir = t.Dir; !filepath.IsAbs(dir) {
			dir = filepath.Join(b.base, dir)
		}
	}
	if dir == "" {
		return "", nil
	}
	root, _, err := places(b.p.Getenv, dir)
	if err != nil {
		return "", err
	}
	return root, b.mayCopy(ctx, root)
}

// mayCopy refuses a folder that could be no workspace: a copy of the keys of a home
// would be readable in the sandbox, and one of the whole machine has no end.
func (b *batch) mayCopy(ctx context.Context, root string) error {
	b.fitMu.Lock()
	defer b.fitMu.Unlock()
	err, known := b.fit[root]
	if known {
		return err
	}
	box, err := sandbox.New(ctx, sandbox.Policy{Root: root, Profile: sandbox.Off}) // nothing is run in it
	if err == nil {
		err = box.Close()
	}
	if ctx.Err() == nil {
		b.fit[root] = err
	}
	return err
}

// commonDir is the folder of the tasks that name none; empty: an empty one each.
func (b *batch) commonDir() string {
	if b.fs.Changed("dir") {
		return b.dir
	}
	return ""
}

// copy makes the workspace. What an earlier try has left there goes.
func (b *batch) copy(ctx context.Context, source, ws string) error {
	if err := removeTree(ws, b.work); err != nil {
		return fmt.Errorf("the workspace of an earlier try cannot be removed (%w)", err)
	}
	if source == "" {
		return os.Mkdir(ws, 0o755)
	}
	c := cloner{skip: []string{resolved(b.work), resolved(b.out)}}
	if err := c.tree(ctx, source, ws); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &configError{File: source, Msg: "cannot be copied: " + err.Error()}
	}
	return nil
}

// settingsIn are the settings with the flags for a task that has a copy of dir;
// empty: it has none.
func (b *batch) settingsIn(dir string) (Config, error) {
	f := b.runFlags
	if f.dir = dir; dir == "" {
		f.dir, f.protect = b.work, nil // where there is no tether.toml, and no file to protect yet
	}
	c, err := f.settings(b.p)
	if err == nil && dir == "" {
		c.Run.Protect = append(slices.Clip(c.Run.Protect), b.protect...)
		err = checkPatterns(c.Run.Protect)
	}
	if err == nil {
		if _, unknown := c.granted(); unknown != nil {
			err = usageError{unknown.Error()}
		}
	}
	return c, err
}

// job is the task with its settings.
func (b *batch) job(t batchTask, source, ws string) (job, error) {
	c, err := b.settingsIn(source)
	if err != nil {
		return job{}, err
	}
	if t.Model != "" {
		c.Model.Name = t.Model
		if file, ok := strings.CutPrefix(t.Model, "script:"); ok && !filepath.IsAbs(file) {
			c.Model.Name = "script:" + filepath.Join(b.base, file)
		}
	}
	if t.Tools != nil {
		c.Run.Tools = t.Tools
	}
	if t.Steps > 0 {
		c.Run.Steps = t.Steps
	}
	if t.Tokens > 0 {
		c.Run.Tokens = t.Tokens
	}
	if t.Time > 0 {
		c.Run.Time = t.Time
	}
	c.Run.Verify = append(slices.Clip(c.Run.Verify), t.Verify...)
	c.Run.Protect = append(slices.Clip(c.Run.Protect), t.Protect...)
	if err := c.check(); err != nil {
		return job{}, usageError{err.Error()}
	}
	return job{Task: t.Prompt, Dir: ws, Config: c, SetUp: t.SetUp, Skills: append(slices.Clip(b.skills), t.Skills...), Model: b.model}, nil
}

// program is the world of one task: its sessions are kept for the folder of the
// batch, and its commands have the cache that commands in its source have.
func (b *batch) program(source string) *program {
	own := *b.p
	own.Err, own.Home, own.Cache = b.bar, b.work, source
	if source == "" {
		own.Cache = resolved(b.work)
	}
	return &own
}

// settle keeps what the task has changed: as a patch, and the workspace as far as
// --keep says. What a patch cannot tell stays in the workspace in any case.
func (b *batch) settle(r *batchResult, source, ws string) {
	patch, missed := patchOf(source, ws, r.Outcome.Changed)
	file := filepath.Join(b.work, "patch", r.ID+".patch")
	_ = os.Remove(file) // of an earlier try
	if len(patch) > 0 {
		if err := writeReport(file, patch); err != nil {
			missed = r.Outcome.Changed
			fmt.Fprintln(b.bar, "tether:", printable(err.Error()))
		} else {
			r.Patch = b.beside(file)
		}
	}
	r.Unpatched = missed
	if _, err := os.Lstat(ws); err != nil {
		return // it was not made
	}
	r.Workspace = b.beside(ws)
	if len(missed) == 0 && (b.keep == "none" || b.keep == "failed" && r.Solved) {
		if err := removeTree(ws, b.work); err == nil {
			r.Workspace = ""
		}
	}
}

// beside is a path as it is from the folder of the results.
func (b *batch) beside(path string) string {
	rel, err := filepath.Rel(filepath.Dir(b.out), path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// A modelPool has the models that tasks share, so that a model file is loaded once.
type modelPool struct {
	mu  sync.Mutex
	all map[string]*llm.Model
}

// model opens the model of a task. A script is each task's own: its replies are
// those to one task.
func (b *batch) model(ctx context.Context, c Config, commands []string) (*llm.Model, func(), error) {
	own := *b.p
	own.Err = b.bar
	if strings.HasPrefix(c.Model.Name, "script:") {
		return ownModel(&own)(ctx, c, commands)
	}
	b.models.mu.Lock()
	defer b.models.mu.Unlock()
	key := c.Model.Name + "\x00" + strings.Join(commands, " ")
	if m := b.models.all[key]; m != nil {
		return m, func() {}, nil
	}
	m, err := openModel(ctx, &own, c, commands)
	if err != nil {
		return nil, nil, err
	}
	if b.models.all == nil {
		b.models.all = map[string]*llm.Model{}
	}
	b.models.all[key] = m
	return m, func() {}, nil
}

func (m *modelPool) close() error {
	var errs []error
	for _, model := range m.all {
		errs = append(errs, model.Close())
	}
	return errors.Join(errs...)
}
