package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
)

var sendCommand = &subcommand{
	Name:    "send",
	Args:    "SESSION TEXT…",
	Summary: "tell a session something, and go on with it",
	Detail: `Adds TEXT to what the model of SESSION reads, as a person's words, and goes on
with the session as tether resume does, also with one that was done: its limits
begin anew. TEXT "-" is read from standard input. A session that runs is not
interrupted: end it first with tether stop.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f runFlags
		f.declare(fs)
		later := fs.Bool("no-run", false, "only keep it; tether resume goes on")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) < 2 || args[0] == "" {
				return usagef("send takes a session and what to tell it\nlist the sessions with: tether ls")
			}
			text, err := readWords(ctx, p, args[1:])
			if err == nil && text == "" {
				err = usagef("there is nothing to tell\ngive it words: tether send %s TEXT", args[0])
			}
			if err != nil {
				return err
			}
			if *later {
				return f.leave(ctx, p, args[0], text)
			}
			return f.goOn(ctx, p, args[0], text)
		}
	},
}

// leave keeps text for when the session goes on.
func (f *runFlags) leave(ctx context.Context, p *program, id, text string) error {
	l, err := f.take(ctx, p, id)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.history.Say(ctx, l.store, l.session.ID, text); err != nil {
		return err
	}
	fmt.Fprintf(p.Err, "tether: kept; go on with: tether resume %s\n", l.session.ID)
	return nil
}
