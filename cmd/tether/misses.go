package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/harness/llm"
	"tether/memory"
)

var missesCommand = &subcommand{
	Name:    "misses",
	Args:    "[SESSION]",
	Summary: "list what models sent that could not be read as a call",
	Detail: `Lists the replies of this workspace's sessions, or of SESSION, that looked like a
call and were not run, with what the model was told; and in which forms calls were
found that did not come as they were asked for. With --json each reply is a test
case: a line for harness/llm/testdata/corpus.jsonl, whose "want" you set right.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		asJSON := fs.Bool("json", false, "print each as a test case, one JSON object a line")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) > 1 {
				return usagef("misses takes one session")
			}
			return listMisses(ctx, p, *dir, args, *asJSON)
		}
	},
}

func listMisses(ctx context.Context, p *program, dir string, args []string, asJSON bool) error {
	store, err := openStore(ctx, p, dir)
	if err != nil {
		return err
	}
	defer store.Close()
	var all []memory.Session
	if len(args) == 0 {
		all, err = store.Sessions(ctx, 0)
	} else {
		var one memory.Session
		one, err = store.Session(ctx, args[0])
		all = append(all, one)
	}
	if err != nil {
		return err
	}
	missed := 0
	forms := map[string]int{}
	for _, s := range all {
		events, err := store.Events(ctx, s.ID)
		if err != nil {
			return err
		}
		n, err := p.misses(s.ID, harness.Replay(events), forms, asJSON)
		if err != nil {
			return err
		}
		missed += n
	}
	if missed == 0 {
		fmt.Fprintln(p.Err, "tether: nothing that looked like a call was left unread")
	}
	if asJSON {
		return nil
	}
	return p.forms(forms)
}

// misses prints what could not be read in a session, and counts the forms in
// which calls were found.
func (p *program) misses(id string, h harness.History, forms map[string]int, asJSON bool) (missed int, err error) {
	for _, r := range h.Received {
		if r.Recovered != "" {
			forms[r.Recovered]++
		}
		if r.Miss == "" {
			continue
		}
		missed++
		c := llm.MissOf(fmt.Sprintf("%s request %d", id, r.N), r.Miss, r.Nudge, h.Setup.Commands)
		if asJSON {
			err = p.json(c)
		} else {
			_, err = fmt.Fprint(p.Out, printable(fmt.Sprintf("%s, %s\n%s\ntold: %s\n\n", c.ID, h.Setup.Model, indent(r.Miss, "  | "), r.Nudge)))
		}
		if err != nil {
			return missed, err
		}
	}
	return missed, nil
}

// forms prints in which other forms calls came that were run.
func (p *program) forms(n map[string]int) error {
	var all []string
	for form, times := range n {
		all = append(all, fmt.Sprintf("%s %d", form, times))
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	_, err := fmt.Fprintf(p.Out, "found in other forms: %s\n", printable(strings.Join(all, ", ")))
	return err
}
