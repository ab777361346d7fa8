package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
)

var backupCommand = &subcommand{
	Name:    "backup",
	Args:    "FILE",
	Summary: "copy the state into one file",
	Detail: `Writes all that is kept of this workspace's sessions into a new FILE, as it is at
one moment, also while sessions run. The copy is checked. To go back to it, end
every tether and put FILE into the place that fsck names. A cp of the files would
have half of what is being written.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usagef("backup takes one file that does not exist yet: tether backup FILE")
			}
			return backUp(ctx, p, *dir, args[0])
		}
	},
}

func backUp(ctx context.Context, p *program, dir, file string) error {
	store, err := openStore(ctx, p, dir)
	if err != nil {
		return err
	}
	defer store.Close()
	if store.Path() == ":memory:" {
		return fmt.Errorf("there is nothing to back up: no session here yet")
	}
	if err := store.Backup(ctx, file); err != nil {
		return err
	}
	fmt.Fprintln(p.Err, "tether: the state is in", printable(file))
	return nil
}
