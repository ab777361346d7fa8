package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/pflag"

	"tether/act"
	window "tether/context"
	"tether/memory"
)

var actCommand = &subcommand{
	Name:    "act",
	Args:    "CMD…",
	Summary: "run a command as the model would",
	Detail: `Runs each CMD exactly as a model's call would run, and prints what the model
would see. The exit status is that of the last one. With several, each sees
what the one before it left behind, as in one session.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f actFlags
		fs.StringVar(&f.stdin, "stdin", "", "a file that the (last) command reads; - is standard input")
		fs.BoolVar(&f.json, "json", false, "print one JSON object a command")
		f.declare(fs)
		return f.run
	},
}

type actFlags struct {
	common
	stdin string
	json  bool
}

// acted is the JSON of one act.
type acted struct {
	V      int    `json:"v"`
	Cmd    string `json:"cmd"`
	Status int    `json:"status"`
	Output string `json:"output"`
	Obs    string `json:"obs"`
	MS     int64  `json:"ms"`
}

func (f *actFlags) run(ctx context.Context, p *program, args []string) error {
	if len(args) == 0 {
		return usagef("no command\ngive one: tether act 'read README.md'")
	}
	stdin, err := f.readStdin(p)
	if err != nil {
		return err
	}
	c, err := f.config(p)
	if err != nil {
		return err
	}
	w, err := open(ctx, p, c, f.dir, "act "+args[0])
	if err != nil {
		return err
	}
	defer w.Close()
	status := 0
	for i, line := range args {
		in := ""
		if i == len(args)-1 {
			in = stdin
		}
		if status, err = f.one(ctx, p, w, i+1, line, in); err != nil {
			return err
		}
	}
	if status != act.OK {
		return exitError(status)
	}
	return nil
}

// one runs a line and prints what the model would see of it.
func (f *actFlags) one(ctx context.Context, p *program, w *workplace, n int, line, stdin string) (int, error) {
	start := time.Now()
	res := w.Shell.Do(ctx, line, stdin)
	if res.Err != nil {
		return 0, res.Err
	}
	t := window.Turn{ID: fmt.Sprintf("obs_%d", n), Call: window.Call{Cmd: line, Stdin: stdin}, Output: res.Output, Status: res.Status}
	err := w.Store.Observe(ctx, w.Session.ID, memory.Observation{ID: t.ID, Cmd: line, Stdin: stdin, Output: t.Output, Status: t.Status})
	if err != nil {
		return 0, err
	}
	seen := w.Config.budget().Observe(t)
	if f.json {
		return res.Status, json.NewEncoder(p.Out).Encode(acted{1, line, res.Status, seen, t.ID, time.Since(start).Milliseconds()})
	}
	_, err = fmt.Fprintln(p.Out, seen)
	return res.Status, err
}

// maxStdin is the largest standard input of an act, in bytes. A model's is
// bounded by its reply; a person's by this.
const maxStdin = 16 << 20

func (f *actFlags) readStdin(p *program) (string, error) {
	var r io.Reader
	switch f.stdin {
	case "":
		return "", nil
	case "-":
		r = p.In
	default:
		file, err := os.Open(f.stdin)
		if errors.Is(err, fs.ErrNotExist) {
			return "", usagef("--stdin %s: there is no such file", f.stdin)
		}
		if err != nil {
			return "", err
		}
		defer file.Close()
		r = file
	}
	text, err := io.ReadAll(io.LimitReader(r, maxStdin+1))
	if err == nil && len(text) > maxStdin {
		err = usagef("--stdin is larger than %d bytes", maxStdin)
	}
	return string(text), err
}
