package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/pflag"

	"tether/memory"
)

var fsckCommand = &subcommand{
	Name:    "fsck",
	Summary: "check the state, and repair it",
	Detail: `Reads all that is kept of this workspace's sessions and says in plain words what
is not as it was written: the file, the chain of events, what had been
acknowledged, the full-text index. Exit status 0: nothing; 1: something.

--repair copies the files aside first and never removes that copy. It makes the
index again, and of a damaged file it saves every event that can be read.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		repair := fs.Bool("repair", false, "mend what can be mended")
		asJSON := fs.Bool("json", false, "print one JSON object")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) > 0 {
				return usagef("fsck takes no arguments; name another workspace with -C DIR")
			}
			return fsck(ctx, p, *dir, *repair, *asJSON)
		}
	},
}

func fsck(ctx context.Context, p *program, dir string, repair, asJSON bool) error {
	_, state, err := places(p.Getenv, dir)
	if err != nil {
		return err
	}
	var done memory.Repaired
	if repair {
		done, err = memory.Repair(ctx, state, stateOptions(p)...)
	} else {
		done.After, err = memory.Inspect(ctx, state, stateOptions(p)...)
	}
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(p.Err, "tether: no session here yet")
		return nil
	}
	if err != nil {
		if done.Aside != "" {
			err = fmt.Errorf("%w\na copy of the files as they were is in %s", err, done.Aside)
		}
		return err
	}
	if asJSON {
		err = p.json(fsckJSON(done))
	} else {
		_, err = fmt.Fprint(p.Out, printable(fsckText(done)))
	}
	if err == nil && len(done.After.Problems) > 0 {
		err = exitError(1)
	}
	return err
}

// fsckText lays out what was found and done for a reader.
func fsckText(done memory.Repaired) string {
	var b strings.Builder
	r := done.After
	fmt.Fprintf(&b, "state   %s\n", r.Path)
	if done.Aside != "" {
		tellProblems(&b, done.Before.Problems, true)
		fmt.Fprintf(&b, "copy    of the files as they were: %s\n", done.Aside)
	}
	if done.Saved > 0 || done.Lost > 0 {
		fmt.Fprintf(&b, "saved   %d events into a new file; of %d nothing could be read\n", done.Saved, done.Lost)
	}
	tellProblems(&b, r.Problems, false)
	if len(r.Problems) == 0 {
		fmt.Fprintf(&b, "ok      %d events, all as they were written\n", r.Events)
	}
	return b.String()
}

// tellProblems lists what is wrong; of what was mended, without the remedy.
func tellProblems(b *strings.Builder, all []memory.Problem, mended bool) {
	for _, one := range all {
		if mended {
			fmt.Fprintf(b, "%-7s was: %s\n", one.Part, one.What)
		} else {
			fmt.Fprintf(b, "%-7s %s\n        %s\n", one.Part, one.What, one.Fix)
		}
	}
}

// fsckJSON is the object that --json prints.
func fsckJSON(done memory.Repaired) map[string]any {
	problems := []map[string]string{}
	for _, one := range done.After.Problems {
		problems = append(problems, map[string]string{"part": one.Part, "what": one.What, "fix": one.Fix})
	}
	return map[string]any{
		"v": 1, "state": done.After.Path, "events": done.After.Events, "problems": problems,
		"copy": done.Aside, "saved": done.Saved, "lost": done.Lost,
	}
}
