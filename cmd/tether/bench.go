package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tether/act"
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
	if len(args) != 2 || args[0] != "tasks" {
		return usagef("usage: tether bench tasks FILE")
	}
	tasks, err := readTasks(args[1])
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
	granted, err := act.Grant(act.Builtins(), c.Run.Tools)
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
		if len(f.only) > 0 && !slices.Contains(f.only, t.ID) {
			continue
		}
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
	if out, err := w.Box.Run(ctx, sandbox.Cmd{Shell: t.Setup}); err != nil || out.Status != 0 {
		return benchResult{}, fmt.Errorf("setup ended with status %d: %s%v", out.Status, out.Output, err)
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

func (f *benchFlags) tell(p *program, r benchResult) {
	if f.json {
		_ = json.NewEncoder(p.Out).Encode(r)
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

// readTasks reads a JSONL file of tasks and names the line of a mistake.
func readTasks(file string) ([]benchTask, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{err.Error()}
	}
	var tasks []benchTask
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var t benchTask
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&t); err != nil {
			return nil, usagef("%s:%d: %v", file, n, err)
		}
		if t.ID == "" || t.ID != filepath.Base(t.ID) || t.Prompt == "" || t.Verify == "" {
			return nil, usagef("%s:%d: a task needs id (a plain name), prompt and verify", file, n)
		}
		tasks = append(tasks, t)
	}
	return tasks, lines.Err()
}
