package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/harness/llm"
	"tether/sandbox"
)

var benchCommand = &subcommand{
	Name:    "bench",
	Args:    "tasks FILE",
	Summary: "measure how many tasks a model solves",
	Detail: `tasks FILE runs the tasks of a JSONL file (id, prompt, setup, verify), each in a
folder of its own, and prints a table in Markdown. verify is the gate; the model
does not see its line, only what it prints.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f benchFlags
		f.declareModel(fs)
		fs.IntVar(&f.steps, "max-steps", 12, "replies of the model a task")
		fs.StringSliceVar(&f.only, "only", nil, "ids of the tasks to run")
		fs.StringVar(&f.keep, "keep", "", "a folder in which the workspaces and logs stay")
		fs.BoolVar(&f.json, "json", false, "print one JSON object a task")
		fs.BoolVar(&f.live, "live", false, "show the steps")
		f.declare(fs)
		return f.run
	},
}

type benchFlags struct {
	common
	steps      int
	only       []string
	keep       string
	json, live bool
}

// A benchTask is one line of the file.
type benchTask struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Prompt string `json:"prompt"`
	Setup  string `json:"setup"`
	Verify string `json:"verify"`
}

// A benchResult is one row of the table.
type benchResult struct {
	V       int             `json:"v"`
	ID      string          `json:"id"`
	Solved  bool            `json:"solved"`
	Outcome harness.Outcome `json:"outcome"`
}

func (f *benchFlags) run(ctx context.Context, p *program, args []string) error {
	tasks, err := f.tasks(args)
	if err != nil {
		return err
	}
	dir := f.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tether-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	c, err := f.config(p)
	if err != nil {
		return err
	}
	c.Run.Steps = f.steps
	granted, err := c.granted()
	if err != nil {
		return usageError{err.Error()}
	}
	var names []string
	for _, g := range granted {
		names = append(names, g.Name)
	}
	model, err := openModel(ctx, p, c, names)
	if err != nil {
		return err
	}
	defer model.Close()
	var results []benchResult
	for _, t := range tasks {
		r, err := f.one(ctx, p, c, model, t, filepath.Join(dir, t.ID))
		if err != nil {
			return fmt.Errorf("task %s: %w", t.ID, err)
		}
		results = append(results, r)
		f.tell(p, r)
	}
	if !f.json {
		fmt.Fprint(p.Out, table(model.Info().Name, results))
	}
	return nil
}

// tasks are those of the command line, if they can be run.
func (f *benchFlags) tasks(args []string) ([]benchTask, error) {
	if len(args) != 2 || args[0] != "tasks" {
		return nil, usagef("usage: tether bench tasks FILE")
	}
	if f.steps < 1 {
		return nil, usagef("bench: --max-steps is %d and must be 1 or more", f.steps)
	}
	tasks, err := readTasks(args[1])
	if err != nil {
		return nil, err
	}
	if tasks, err = choose(tasks, f.only); err != nil || f.keep == "" {
		return tasks, err
	}
	for _, t := range tasks {
		dir := filepath.Join(f.keep, t.ID)
		if _, err := os.Lstat(dir); err == nil {
			return nil, usagef("%s is there already, and its files would be taken for the setup; name another folder with --keep", dir)
		}
	}
	return tasks, nil
}

// one runs a task in a folder of its own.
func (f *benchFlags) one(ctx context.Context, p *program, c Config, model *llm.Model, t benchTask, dir string) (benchResult, error) {
	ws := filepath.Join(dir, "workspace")
	if err := os.MkdirAll(ws, 0o755); err != nil {
		return benchResult{}, err
	}
	own := *p
	own.Getenv = func(name string) string {
		if name == "TETHER_STATE" {
			return filepath.Join(dir, "state")
		}
		return p.Getenv(name)
	}
	w, err := open(ctx, &own, c, ws, t.Prompt)
	if err != nil {
		return benchResult{}, err
	}
	defer w.Close()
	if err := t.setUp(ctx, w.Box); err != nil {
		return benchResult{}, err
	}
	a := w.agent(model, []harness.Gate{{Cmd: t.Verify, Hidden: true}})
	if f.live {
		a.Notify = newLive(p.Err, p.Getenv).show
	}
	out, err := a.Do(ctx, t.Prompt)
	if err != nil && out.Stop != harness.NoModel {
		return benchResult{}, err
	}
	return benchResult{V: 1, ID: t.ID, Solved: out.Stop == harness.Done, Outcome: out}, nil
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

func (f *benchFlags) tell(p *program, r benchResult) {
	if f.json {
		_ = p.json(r)
		return
	}
	o := r.Outcome
	fmt.Fprintf(p.Err, "tether: %-14s %-12s %2d steps %6.1f s %s\n", r.ID, o.Stop, o.Steps, o.Seconds, o.Error)
}

// table is the results in Markdown.
func table(model string, results []benchResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Model %s\n\n| task | solved | stop | steps | prompt tokens | of them cached | output tokens | seconds |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n", model)
	var sum harness.Count
	solved, steps, secs := 0, 0, 0.0
	for _, r := range results {
		o, word := r.Outcome, "no"
		if r.Solved {
			word = "yes"
			solved++
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d | %.1f |\n", r.ID, word, o.Stop, o.Steps, o.Tokens.Prompt, o.Tokens.Cached, o.Tokens.Output, o.Seconds)
		sum.Prompt, sum.Cached, sum.Output = sum.Prompt+o.Tokens.Prompt, sum.Cached+o.Tokens.Cached, sum.Output+o.Tokens.Output
		steps, secs = steps+o.Steps, secs+o.Seconds
	}
	fmt.Fprintf(&b, "| **all** | **%d of %d** | | %d | %d | %d | %d | %.1f |\n", solved, len(results), steps, sum.Prompt, sum.Cached, sum.Output, secs)
	return b.String()
}

// maxTaskLine is the longest line of a file of tasks in bytes. A task brings the
// files that it needs in its setup.
const maxTaskLine = 4 << 20

// readTasks reads a JSONL file of tasks and names the line of a mistake.
func readTasks(file string) ([]benchTask, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("the tasks %s cannot be read (%v); name a JSONL file", file, reason(err))
	}
	var tasks []benchTask
	at := map[string]int{} // the line of each id
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxTaskLine)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		t, err := parseTask(lines.Bytes())
		if first, again := at[t.ID]; err == nil && again {
			err = fmt.Errorf("the id %q is that of line %d already", t.ID, first)
		}
		if err != nil {
			return nil, usagef("%s:%d: %v", file, n, err)
		}
		at[t.ID] = n
		tasks = append(tasks, t)
	}
	switch {
	case lines.Err() != nil:
		return nil, usagef("%s:%d: the line is longer than %d bytes", file, n, maxTaskLine)
	case len(tasks) == 0:
		return nil, usagef("%s has no tasks; a line is %s", file, taskForm)
	}
	return tasks, nil
}

// taskForm shows what a line of a file of tasks is.
const taskForm = `{"id":"a-name","prompt":"…","setup":"a command line","verify":"a command line"}`

// plainID is an id that can be the name of a folder on every system.
var plainID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$`)

// parseTask reads one line of a file of tasks.
func parseTask(line []byte) (benchTask, error) {
	var t benchTask
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return t, fmt.Errorf("not a task (%w); a line is %s", err, taskForm)
	}
	switch {
	case dec.More():
		return t, errors.New("more than one value on the line")
	case t.ID == "" || t.Prompt == "" || t.Verify == "":
		return t, errors.New("a task needs id, prompt and verify")
	case !plainID.MatchString(t.ID):
		return t, fmt.Errorf("the id %q is no plain name: letters, digits, - _ and . only", t.ID)
	}
	return t, nil
}

// choose returns the tasks with the ids in only, or all if there are none.
func choose(tasks []benchTask, only []string) ([]benchTask, error) {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	for _, id := range only {
		if !slices.Contains(ids, id) {
			return nil, usagef("there is no task %q%s", id, didYouMean(id, ids))
		}
	}
	if len(only) == 0 {
		return tasks, nil
	}
	return slices.DeleteFunc(tasks, func(t benchTask) bool { return !slices.Contains(only, t.ID) }), nil
}
