package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/sandbox"
)

// A program is what a subcommand may use of the world, so that one test
// process can run many.
type program struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string

	// Home and Cache are the folders that sessions and the cache of commands are
	// kept for, where that is not the workspace: a batch has many of those.
	Home, Cache string
}

// A subcommand is one verb of tether. Its file is named after it.
type subcommand struct {
	Name    string
	Args    string
	Summary string
	Detail  string
	Hidden  bool // not in help: it is for shells
	// Flags declares the flags on fs and returns the function that does the
	// work once they are parsed.
	Flags func(fs *pflag.FlagSet) func(ctx context.Context, p *program, args []string) error
}

// subcommands is the table, in the order of help.
func subcommands() []*subcommand {
	return []*subcommand{
		runCommand,
		batchCommand,
		resumeCommand,
		sendCommand,
		actCommand,
		showCommand,
		lsCommand,
		missesCommand,
		statsCommand,
		stopCommand,
		forkCommand,
		exportCommand,
		importCommand,
		fsckCommand,
		backupCommand,
		skillCommand,
		modelsCommand,
		doctorCommand,
		configCommand,
		initCommand,
		dirsCommand,
		benchCommand,
		demoCommand,
		completionCommand,
		manCommand(),
		versionCommand,
		completeCommand(),
	}
}

// An exitError ends the process with a status and without another word: what
// there was to say has been said.
type exitError int

// Error names the status.
func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// A usageError is a command line that makes no sense; exit status 2.
type usageError struct{ msg string }

// Error is what is wrong with the line.
func (e usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

func main() {
	sandbox.Init() // the same binary is started inside the sandbox too
	ctx, cancel := context.WithCancelCause(context.Background())
	go watchSignals(cancel)
	// Whoever reads what a run prints may go away: the run does not end in the
	// middle because of that. Ignored, the signal would be so for commands too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	p := &program{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
	os.Exit(p.main(ctx, os.Args[1:]))
}

// watchSignals cancels the work at the first signal, so that the session is
// closed in order, and ends the process at the second.
func watchSignals(cancel context.CancelCauseFunc) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	first := (<-c).(syscall.Signal)
	cancel(map[syscall.Signal]error{syscall.SIGINT: harness.ErrInterrupted, syscall.SIGTERM: harness.ErrTerminated, syscall.SIGHUP: harness.ErrHangup}[first])
	for at := time.Now(); ; {
		if second := (<-c).(syscall.Signal); second != first || time.Since(at) > signalEcho {
			os.Exit(128 + int(second))
		}
	}
}

// signalEcho is how soon the same signal again is not a second one: timeout(1)
// and some shells send theirs to the process and then to its group, and no hand
// is as fast.
const signalEcho = 100 * time.Millisecond

// main runs the subcommand that args names and returns the exit status.
func (p *program) main(ctx context.Context, args []string) int {
	out := &resultWriter{Writer: p.Out}
	own := *p
	own.Out = out
	err := out.tell(p.Err, own.dispatch(ctx, args))
	var exit exitError
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintln(p.Err, "tether:", printable(err.Error()))
		return 2
	}
	if stop := cancelledBy(ctx); stop != "" {
		fmt.Fprintln(p.Err, "tether:", stop)
		return stop.Exit()
	}
	if errors.Is(err, syscall.EPIPE) {
		return 128 + int(syscall.SIGPIPE) // as if the signal had ended it
	}
	fmt.Fprintln(p.Err, "tether:", printable(err.Error()))
	return stopOf(err).Exit()
}

// cancelledBy names the signal that ended ctx.
func cancelledBy(ctx context.Context) harness.Stop {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, harness.ErrInterrupted):
		return harness.Interrupted
	case errors.Is(cause, harness.ErrTerminated):
		return harness.Terminated
	case errors.Is(cause, harness.ErrHangup):
		return harness.Hangup
	}
	return ""
}

func (p *program) dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		p.help(p.Err)
		return exitError(2)
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "--help":
		return p.helpFor(rest)
	case "-v", "-V", "--version":
		name = "version"
	}
	c := find(name)
	if c == nil {
		return noCommand(name, names())
	}
	fs := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	run := c.Flags(fs)
	switch err := fs.Parse(rest); {
	case errors.Is(err, pflag.ErrHelp):
		c.help(p.Out)
		return nil
	case err != nil:
		return usagef("%s: %s\nsee: tether help %s", c.Name, explainFlag(err, fs), c.Name)
	}
	return run(ctx, p, fs.Args())
}

// explainFlag says what is wrong with a flag: of an unknown one the nearest, of a
// value what it should be.
func explainFlag(err error, fs *pflag.FlagSet) string {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var all []string
		fs.VisitAll(func(f *pflag.Flag) { all = append(all, "--"+f.Name) })
		return err.Error() + didYouMean("--"+unknown.GetSpecifiedName(), all)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		why := wrong.Unwrap().Error()
		switch wrong.GetFlag().Value.Type() {
		case "int":
			why = "must be a whole number"
		case "intSlice":
			why = "must be whole numbers, comma separated"
		}
		if strings.HasPrefix(why, "must ") {
			return fmt.Sprintf("--%s is %q; it %s", wrong.GetFlag().Name, wrong.GetValue(), why)
		}
		return fmt.Sprintf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), why)
	}
	return err.Error()
}

func find(name string) *subcommand {
	all := subcommands()
	if i := slices.IndexFunc(all, func(c *subcommand) bool { return c.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func names() []string {
	var all []string
	for _, c := range subcommands() {
		if !c.Hidden {
			all = append(all, c.Name)
		}
	}
	return all
}
