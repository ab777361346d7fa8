package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"tether/memory"
)

// How long a process has to end after a signal: in order after the first (a
// running command is killed and the end committed within 2 s), at once after the
// second.
const (
	stopInOrder = 10 * time.Second
	stopAtOnce  = 3 * time.Second
	stopLook    = 20 * time.Millisecond // between two looks at whether it has
)

var stopCommand = &subcommand{
	Name:    "stop",
	Args:    "SESSION",
	Summary: "end a session that runs in another terminal",
	Detail: `Interrupts the process that runs SESSION, as Ctrl-C there does: the command that
runs is ended, and what was done stays. Go on later with tether resume. Exit
status 1 if it does not run, or does not end.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("stop takes one session\nlist the running ones with: tether ls")
			}
			return stopSession(ctx, p, *dir, args[0])
		}
	},
}

func stopSession(ctx context.Context, p *program, dir, id string) error {
	store, err := openStore(ctx, p, dir)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Session(ctx, id)
	if err != nil {
		return err
	}
	pid := store.Holder(s.ID)
	if pid == 0 {
		return fmt.Errorf("session %s does not run\nsee how it ended with: tether show %[1]s", s.ID)
	}
	if err := interrupt(ctx, store, s.ID, pid); err != nil {
		return fmt.Errorf("session %s is run by process %d, which %w", s.ID, pid, err)
	}
	if s, err = store.Session(ctx, s.ID); err != nil {
		return err
	}
	how := s.Stop
	if how == "" {
		how = "at once, and what it was doing is unknown"
	}
	fmt.Fprintf(p.Err, "tether: session %s has ended: %s; go on with: tether resume %[1]s\n", s.ID, how)
	return nil
}

// interrupt ends the process pid, which has the session: in order, or else at
// once. The process is held on to first and looked at again then, so that no
// other one that gets its number is hit.
func interrupt(ctx context.Context, store *memory.Store, session string, pid int) error {
	fd, err := holdProcess(pid)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return fmt.Errorf("cannot be stopped from here: %w", err)
	}
	defer letGo(fd)
	if store.Holder(session) != pid {
		return nil // it has ended by itself
	}
	for _, patience := range []time.Duration{stopInOrder, stopAtOnce} {
		if err := signalProcess(fd, unix.SIGINT); errors.Is(err, unix.ESRCH) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot be stopped from here: %w", err)
		}
		if ended, err := waitEnd(ctx, fd, patience); ended || err != nil {
			return err
		}
	}
	return fmt.Errorf("does not end\nend it with: kill -9 %d; nothing that is kept is lost by that", pid)
}
