package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/memory"
)

var forkCommand = &subcommand{
	Name:    "fork",
	Args:    "SESSION@N",
	Summary: "make a session that begins as another one did",
	Detail: `Makes a new session whose past is that of SESSION up to the end of step N (0: its
beginning) and prints its id. SESSION stays as it is. The files of the workspace
are not taken back: they are as they are now. Go on with tether resume.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) != 1 {
				return usagef("fork takes a session and a step, such as 20260102-150405-k7qa@3")
			}
			return forkSession(ctx, p, *dir, args[0])
		}
	},
}

func forkSession(ctx context.Context, p *program, dir, name string) error {
	id, step, ok := strings.Cut(name, "@")
	n, err := strconv.Atoi(step)
	if !ok || err != nil {
		return usagef("%s names no step; write it as SESSION@N\nsee the steps with: tether show %s", name, id)
	}
	_, state, err := places(p.Getenv, dir)
	if err != nil {
		return err
	}
	store, err := memory.Open(ctx, state, stateOptions(p)...)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Session(ctx, id)
	if err != nil {
		return err
	}
	events, err := store.Events(ctx, s.ID)
	if err != nil {
		return err
	}
	if events, err = harness.Until(events, n); err != nil {
		return usagef("session %s: %v", s.ID, err)
	}
	made, err := store.Adopt(ctx, "", events, fmt.Sprintf("%s@%d", s.ID, n))
	if err != nil {
		return err
	}
	fmt.Fprintln(p.Out, made.ID)
	fmt.Fprintf(p.Err, "tether: the files of the workspace are as they are now; go on with: tether resume %s\n", made.ID)
	return nil
}
