package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

var lsCommand = &subcommand{
	Name:    "ls",
	Summary: "list the sessions of this workspace",
	Detail:  "Lists the newest sessions first: id, how it ended, model, task.",
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		n := fs.IntP("number", "n", 20, "how many; 0 is all")
		asJSON := fs.Bool("json", false, "print one JSON object a session")
		return func(ctx context.Context, p *program, _ []string) error {
			return listSessions(ctx, p, *dir, *n, *asJSON)
		}
	},
}

func listSessions(ctx context.Context, p *program, dir string, n int, asJSON bool) error {
	store, err := openStore(ctx, p, dir)
	if err != nil {
		return err
	}
	defer store.Close()
	all, err := store.Sessions(ctx, n)
	if err != nil {
		return err
	}
	for _, s := range all {
		if asJSON {
			err = json.NewEncoder(p.Out).Encode(map[string]any{"v": 1, "session": s.ID, "task": s.Task, "model": s.Model, "started": s.Started, "stop": s.Stop, "exit": s.Exit})
		} else {
			stop := s.Stop
			if stop == "" {
				stop = "-"
			}
			_, err = fmt.Fprintf(p.Out, "%s  %-11s  %s\n", s.ID, stop, oneLine(s.Task, 60))
		}
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(p.Err, "tether: no session here yet")
	}
	return nil
}

// oneLine is s on one line, at most n characters of it.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(printable(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
