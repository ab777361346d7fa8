package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

var benchCommand = &subcommand{
	Name:    "bench",
	Args:    "tasks FILE",
	Summary: "measure how many tasks a model solves",
	Detail: `tasks FILE  the tasks of a JSONL file (id, prompt, setup, verify), each in a folder
            of its own: how many are solved, with which steps, tokens and seconds.
            verify is the gate; the model does not see its line, only what it prints.
            With --gates off it is only run at the end, to judge.
speed       how fast the model's server reads and writes, and whether it keeps what
            it has read.
self        what tether itself costs: framing, start, step, memory, binary.
window      40 steps in a copy of the workspace, in each way of folding: what the
            model's server reads anew, and what it still has.

Each prints a table in Markdown. With --rows it is that of rows which --json or
--resume has written, and nothing is measured.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f benchFlags
		f.declareBench(fs)
		return f.run
	},
}

// benchFlags are the flags of all benches: they are few, and most mean the same
// for each.
type benchFlags struct {
	common
	models                []string
	runs, steps           int
	seeds, sizes          []int
	only                  []string
	gates                 string
	keep, resume, rows    string
	markdownFile, svgFile string
	json, live            bool
	limit                 time.Duration
}

func (f *benchFlags) declareBench(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&f.models, "model", "m", nil, "ollama/NAME, llama/NAME@URL, openai/NAME, anthropic/NAME, gguf:PATH, script:FILE (repeatable)")
	fs.IntVar(&f.window, "window", 0, "context window in tokens")
	fs.StringVar(&f.constrain, "constrain", "", "auto, on or off: bind decoding to the grammar")
	fs.IntVar(&f.runs, "runs", 1, "how often each is measured")
	fs.IntSliceVar(&f.seeds, "seeds", nil, "tasks: seeds of sampling, comma separated")
	fs.StringVar(&f.gates, "gates", "on", "tasks: on, off or both: whether the check answers the model's done")
	fs.IntVar(&f.steps, "max-steps", 12, "tasks: replies of the model a task")
	fs.StringSliceVar(&f.only, "only", nil, "tasks: ids of the tasks to run; window: batch, every-turn, off")
	fs.StringVar(&f.keep, "keep", "", "tasks: a folder in which the workspaces and logs stay")
	fs.StringVar(&f.resume, "resume", "", "tasks: a file of rows: what it has is not run again, what is new is added")
	fs.StringVar(&f.rows, "rows", "", "measure nothing: print the table, and write the plot, of the rows in this file")
	fs.BoolVar(&f.live, "live", false, "tasks: show the steps")
	fs.IntSliceVar(&f.sizes, "sizes", []int{256, 1024, 4096}, "speed: sizes of the prompts in tokens")
	fs.DurationVar(&f.limit, "timeout", speedLimit, "speed: time for one model; what does not fit into it is left out")
	fs.BoolVar(&f.json, "json", false, "print one JSON object a row")
	fs.StringVar(&f.markdownFile, "markdown", "", "write the table to this file too")
	fs.StringVar(&f.svgFile, "svg", "", "write the table as a plot to this file")
	f.declare(fs)
}

// A bench is one kind of measurement.
type bench struct {
	name, args string
	run        func(f *benchFlags, ctx context.Context, p *program, args []string) error
	again      func(f *benchFlags, p *program, args []string) error // of rows that are there
}

// benches is the table of them.
func benches() []bench {
	return []bench{
		{"tasks", "FILE", (*benchFlags).runTasks, (*benchFlags).tasksAgain},
		{"speed", "", (*benchFlags).runSpeed, (*benchFlags).speedAgain},
		{"self", "", (*benchFlags).runSelf, (*benchFlags).selfAgain},
		{"window", "", (*benchFlags).runWindow, (*benchFlags).windowAgain},
	}
}

func (f *benchFlags) run(ctx context.Context, p *program, args []string) error {
	if f.runs < 1 {
		return usagef("--runs is %d and must be 1 or more", f.runs)
	}
	var names, forms []string
	for _, b := range benches() {
		names, forms = append(names, b.name), append(forms, strings.TrimSpace("tether bench "+b.name+" "+b.args))
		if len(args) > 0 && args[0] == b.name {
			if len(args[1:]) != len(strings.Fields(b.args)) {
				return usagef("usage: %s", forms[len(forms)-1])
			}
			if f.rows != "" {
				return b.again(f, p, args[1:])
			}
			return b.run(f, ctx, p, args[1:])
		}
	}
	if len(args) > 0 {
		return usagef("there is no bench %q%s\nusage: %s", args[0], didYouMean(args[0], names), strings.Join(forms, ", "))
	}
	return usagef("usage: %s", strings.Join(forms, ", "))
}

// configs are the configurations of the models that are measured, one each.
func (f *benchFlags) configs(p *program) ([]Config, error) {
	var all []Config
	for _, name := range f.models {
		f.model = name
		c, err := f.config(p)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if len(all) > 0 {
		return all, nil
	}
	c, err := f.config(p)
	return []Config{c}, err
}

// commands are the names of what c grants: they bind the decoding.
func (c Config) commandNames() ([]string, error) {
	granted, err := c.granted()
	if err != nil {
		return nil, usageError{err.Error()}
	}
	var names []string
	for _, g := range granted {
		names = append(names, g.Name)
	}
	return names, nil
}

// publish prints a table, and keeps it. With --json the rows have been printed.
func (f *benchFlags) publish(p *program, table string, plot plot) error {
	if !f.json {
		if _, err := p.Out.Write([]byte(table)); err != nil {
			return err
		}
	}
	return f.keepTable(table, plot)
}

// keepTable writes a table and its plot to the files that the flags name.
func (f *benchFlags) keepTable(table string, plot plot) error {
	for file, text := range map[string]string{f.markdownFile: table, f.svgFile: plot.svg()} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return usagef("%s cannot be written (%v); name another file", file, reason(err))
		}
	}
	return nil
}

// shortModel is the name of a model for people: a path says where it is, and not
// what it is.
func shortModel(name string) string {
	kind, path, found := strings.Cut(name, ":")
	if !found || kind != "gguf" && kind != "script" {
		return cmp.Or(name, "none")
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}
