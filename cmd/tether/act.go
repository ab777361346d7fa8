package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"tether/act"
	window "tether/context"
	"tether/harness"
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
	stdin, err := await(ctx, func() (string, error) { return f.readStdin(p) })
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
	var calls []window.Call
	for _, line := range args {
		calls = append(calls, window.Call{Cmd: line})
	}
	calls[len(calls)-1].Stdin = stdin
	a := w.hand()
	a.Notify = func(e harness.Event) {
		if e.Type == harness.EventWarning {
			fmt.Fprintln(p.Err, "tether:", oneLine(e.Output, 400))
		}
	}
	status, err := a.Hand(ctx, w.Session.Task, calls, func(t window.Turn, took time.Duration) error {
		return f.print(p, a.Budget, t, took)
	})
	if err != nil {
		return err
	}
	if status != act.OK {
		return exitError(status)
	}
	return nil
}

// hand is an agent in this workplace whose acts a person decides.
func (w *workplace) hand() *harness.Agent {
	policy := w.Box.Policy()
	return &harness.Agent{
		Shell: w.Shell, Budget: w.Config.budget(), Store: w.Store, Session: w.Session, Stop: stopOf, Network: w.Asked,
		Setup: harness.Setup{Sandbox: string(policy.Profile), Network: string(policy.Network), Allow: policy.Allow, Root: policy.Root, Commands: w.Shell.Names(), Version: version()},
	}
}

// print prints what the model would see of a turn.
func (f *actFlags) print(p *program, b window.Budget, t window.Turn, took time.Duration) error {
	seen := b.Observe(t)
	if f.json {
		return p.json(acted{1, t.Call.Cmd, t.Status, seen, t.ID, took.Milliseconds()})
	}
	_, err := fmt.Fprintln(p.Out, printable(seen))
	return err
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
		if err != nil {
			return "", usagef("--stdin %s: it cannot be read (%v)", f.stdin, reason(err))
		}
		defer file.Close()
		r = file
	}
	text, err := io.ReadAll(io.LimitReader(r, maxStdin+1))
	switch {
	case err != nil:
		return "", usagef("--stdin %s: it cannot be read (%v)", f.stdin, reason(err))
	case len(text) > maxStdin:
		return "", usagef("--stdin is larger than %d bytes", maxStdin)
	}
	return string(text), nil
}
