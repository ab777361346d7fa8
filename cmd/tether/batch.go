package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/memory"
)

var batchCommand = &subcommand{
	Name:    "batch",
	Args:    "FILE",
	Summary: "do many tasks, several at a time",
	Detail: `Does the tasks of a JSONL file, or of a folder of NAME.json, NAME.md and
NAME.txt. A line is {"id":…,"prompt":…} and may have dir, setup, verify, model,
tools, skills, protect, max_steps, max_tokens, timeout and kind. Each task works
in a copy of its dir, or of --dir, or else in an empty folder; the flags hold for
all tasks.

Each result is a line of --out as soon as it is there. The same command again
goes on where the last one ended, however it ended. Exit status: the worst of all
tasks, from best to worst 0 6 4 5 3 9 8 7 78 1. More: docs/batch.md`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		f := batchFlags{resume: true}
		f.declareTask(fs)
		fs.IntVarP(&f.jobs, "jobs", "j", 1, "tasks at the same time; more than 1 only where the model server has as many slots")
		fs.StringVar(&f.out, "out", "", "the file of results (default: FILE without its ending, .results.jsonl)")
		fs.BoolVar(&f.resume, "resume", true, "run only what has no result yet; --resume=false begins anew")
		fs.BoolVar(&f.retry, "retry-failed", false, "run what is not done once more")
		fs.StringVar(&f.shard, "shard", "", "only part K of N, the same tasks each time")
		fs.StringVar(&f.keep, "keep", "all", "the workspaces that stay: all, failed or none; the patches always stay")
		fs.StringVar(&f.junit, "junit", "", "short for --report junit=FILE")
		f.reports.declare(fs)
		fs.BoolVar(&f.json, "json", false, "print one JSON object at the end")
		fs.BoolVarP(&f.q, "quiet", "q", false, "only the table at the end")
		f.common.declare(fs)
		dir := fs.Lookup("dir")
		dir.Usage, dir.DefValue = "the folder of which each task gets a copy, unless it names its own", ""
		return f.run
	},
}

type batchFlags struct {
	runFlags
	jobs        int
	out, shard  string
	keep, junit string
	resume      bool
	retry       bool
}

// maxJobs bounds what one process does at the same time: each has a sandbox and a
// store open.
const maxJobs = 256

// check refuses flags that make no sense.
func (f *batchFlags) check() error {
	if f.junit != "" {
		f.reports.forms = append(f.reports.forms, "junit="+f.junit)
	}
	switch {
	case f.jobs < 1, f.jobs > maxJobs:
		return usagef("--jobs is %d; it can be 1 to %d", f.jobs, maxJobs)
	case !slices.Contains([]string{"all", "failed", "none"}, f.keep):
		return usagef("--keep is %q; it can be all, failed or none", f.keep)
	case !f.resume && f.retry:
		return usagef("--resume=false runs everything, so --retry-failed says nothing; give one of them")
	}
	_, _, err := f.part()
	return errors.Join(err, f.reports.check())
}

// part reads --shard.
func (f *batchFlags) part() (k, n uint64, err error) {
	if f.shard == "" {
		return 1, 1, nil
	}
	a, b, ok := strings.Cut(f.shard, "/")
	k, err = strconv.ParseUint(a, 10, 32)
	n, err2 := strconv.ParseUint(b, 10, 32)
	if !ok || err != nil || err2 != nil || k < 1 || k > n {
		return 0, 0, usagef("--shard is %q; give K/N with K from 1 to N, such as 3/8", f.shard)
	}
	return k, n, nil
}

// inPart says whether a task is one of part k of n. It depends on nothing but the
// id, so that machines that know nothing of each other do each task once, and
// a task that is added moves no other.
func inPart(id string, k, n uint64) bool {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])%n == k-1
}

func (f *batchFlags) run(ctx context.Context, p *program, args []string) error {
	if len(args) != 1 {
		return usagef("batch takes one file of tasks: tether batch tasks.jsonl")
	}
	if err := f.check(); err != nil {
		return err
	}
	b, err := f.begin(ctx, p, args[0])
	if err != nil {
		return err
	}
	f.reports.deafen(p)
	return b.report(ctx, errors.Join(b.all(ctx), b.close()))
}

// A batch is what is known of the tasks while they run.
type batch struct {
	*batchFlags
	p       *program
	base    string // from where the tasks name their folders
	work    string // the folder of the workspaces and patches
	tasks   []batchTask
	results *batchResults
	models  modelPool
	store   *memory.Store // of all sessions; each task opens it once more
	bar     *progress
	began   time.Time

	fitMu sync.Mutex
	fit   map[string]error // of each folder that is copied: why it may not be

	mu   sync.Mutex
	stop context.CancelCauseFunc
	dead int // tasks in a row that got no model, or no sandbox
}

// begin reads the tasks and their results. What is wrong with the command line or
// with a file ends the batch here, before any task.
func (f *batchFlags) begin(ctx context.Context, p *program, file string) (*batch, error) {
	tasks, err := readBatch(file)
	if err != nil {
		return nil, err
	}
	k, n, _ := f.part()
	b := &batch{batchFlags: f, p: p, base: filepath.Dir(file), began: time.Now(), fit: map[string]error{}}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		b.base = file
	}
	for _, t := range tasks {
		if inPart(t.ID, k, n) {
			b.tasks = append(b.tasks, t)
		}
	}
	b.place(file)
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// place says where the results go, and beside them the workspaces.
func (b *batch) place(file string) {
	if b.out == "" {
		name, part := filepath.Base(resolved(file)), ""
		if b.shard != "" {
			part = "." + strings.Replace(b.shard, "/", "-of-", 1)
		}
		b.out = strings.TrimSuffix(name, filepath.Ext(name)) + part + resultsEnding
	}
	if b.work = strings.TrimSuffix(b.out, filepath.Ext(b.out)); b.work == b.out {
		b.work += ".d"
	}
}

// open checks the settings, and opens the results and the store of the sessions.
func (b *batch) open(ctx context.Context) error {
	if _, err := b.settingsIn(b.commonDir()); err != nil {
		return err
	}
	var err error
	if b.results, err = openResults(b.out, b.work, !b.resume); err != nil {
		return err
	}
	for _, dir := range []string{"workspace", "patch"} {
		if err := os.MkdirAll(filepath.Join(b.work, dir), 0o755); err != nil {
			return fmt.Errorf("the folder %s cannot be made (%w)", filepath.Join(b.work, dir), reason(err))
		}
	}
	old, _ := filepath.Glob(filepath.Join(b.work, "gone-*")) // what could not be removed at once
	for _, dir := range old {
		openTree(dir)
		_ = os.RemoveAll(dir)
	}
	// Nothing of it belongs to the project that it may lie in.
	if f, err := os.OpenFile(filepath.Join(b.work, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
		_, err = f.WriteString("*\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	_, state, err := places(b.p.Getenv, b.work)
	if err == nil {
		err = makeOwn(filepath.Dir(state), b.work)
	}
	if err == nil {
		b.store, err = openState(ctx, b.p, Default(), state)
	}
	if err == nil {
		err = b.forget()
	}
	b.bar = newProgress(b.p.Err, b.p.Getenv, b.q)
	return err
}

// forget drops the results of the tasks that are run again: those of which the
// model had no try, those that are another task now, and with --retry-failed those
// that are not done.
func (b *batch) forget() error {
	changed := 0
	sums := map[string]string{}
	for _, t := range b.tasks {
		sums[t.ID] = t.sum
	}
	err := b.results.keep(func(r batchResult) bool {
		sum, known := sums[r.ID]
		if known && sum != r.Sum {
			changed++
			return false
		}
		return !known || hadTry(r.Outcome.Stop) && (r.Solved || !b.retry)
	})
	if changed > 0 {
		fmt.Fprintf(b.p.Err, "tether: %d tasks have changed since their result, and are run again\n", changed)
	}
	return err
}

// all runs the tasks that have no result.
func (b *batch) all(ctx context.Context) error {
	ctx, b.stop = context.WithCancelCause(ctx)
	defer b.stop(nil)
	have := map[string]bool{}
	done := 0
	for _, r := range b.mine() {
		if have[r.ID] = true; r.Solved {
			done++
		}
	}
	if n := len(have); n > 0 {
		fmt.Fprintf(b.p.Err, "tether: %d of %d tasks have a result in %s\n", n, len(b.tasks), b.out)
	}
	b.bar.start(len(b.tasks), done, len(have)-done)
	defer b.bar.close()
	work := make(chan batchTask)
	var workers sync.WaitGroup
	for range b.jobs {
		workers.Go(func() {
			for t := range work {
				b.bar.begin()
				b.ended(ctx, t, b.one(ctx, t))
			}
		})
	}
	for _, t := range b.tasks {
		if have[t.ID] || ctx.Err() != nil {
			continue
		}
		select {
		case work <- t:
		case <-ctx.Done():
		}
	}
	close(work)
	workers.Wait()
	return context.Cause(ctx)
}

// mine are the results of the tasks of this batch, in their order.
func (b *batch) mine() []batchResult {
	at := map[string]batchResult{}
	for _, r := range b.results.lines {
		at[r.ID] = r
	}
	var all []batchResult
	for _, t := range b.tasks {
		if r, ok := at[t.ID]; ok {
			all = append(all, r)
		}
	}
	return all
}

// maxDead is how many tasks in a row may get no model or no sandbox before the batch
// ends: the others would get none either, and are run when it is back.
const maxDead = 3

// errServerGone, errNoModel and errNoSandbox are why a batch ends before its tasks.
var (
	errServerGone = errors.New("the model server is gone")
	errNoModel    = errors.New("the model cannot be had")
	errNoSandbox  = errors.New("the sandbox cannot be had")
)

// ended commits the result of a task. One that was interrupted has none, and
// is run again by the next batch.
func (b *batch) ended(ctx context.Context, t batchTask, r batchResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil && !hadTry(r.Outcome.Stop) {
		b.bar.leave()
		return
	}
	if err := b.results.add(r); err != nil {
		b.bar.leave()
		b.stop(err)
		return
	}
	b.bar.end(r.Solved, r.line())
	b.count(t, r.Outcome)
}

// count ends the batch when too many tasks in a row could not begin. A task with a
// model or a folder of its own says nothing about the others.
func (b *batch) count(t batchTask, o harness.Outcome) {
	why := errServerGone
	switch {
	case o.Stop == harness.Sandbox && t.Dir != "", o.Stop != harness.Sandbox && t.Model != "":
		return
	case o.Stop == harness.Unreachable:
	case o.Stop == harness.NoModel && o.Steps == 0:
		why = errNoModel
	case o.Stop == harness.Sandbox && o.Steps == 0:
		why = errNoSandbox
	default:
		b.dead = 0
		return
	}
	if b.dead++; b.dead == maxDead {
		b.stop(fmt.Errorf("%w: %d tasks in a row did without\nmend it, then the same command again", why, maxDead))
	}
}

// close gives back what the batch holds.
func (b *batch) close() error {
	err := b.models.close()
	if b.store != nil {
		err = errors.Join(err, b.store.Close())
	}
	if b.results != nil {
		err = errors.Join(err, b.results.Close())
	}
	return err
}
