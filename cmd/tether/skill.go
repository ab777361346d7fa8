package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"tether/skills"
)

var skillCommand = &subcommand{
	Name:    "skill",
	Args:    "list | show NAME",
	Summary: "list the skills, or print one",
	Detail: `Lists the skills a model can use here: the bundled ones, yours (beside your
configuration, skills/NAME/SKILL.md) and the workspace's (skills/NAME/SKILL.md).`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		return func(_ context.Context, p *program, args []string) error { return showSkills(p, *dir, args) }
	},
}

func showSkills(p *program, dir string, args []string) error {
	lib, err := skills.Open(filepath.Join(filepath.Dir(userConfig(p.Getenv)), "skills"), os.DirFS(dir))
	if err != nil {
		return err
	}
	switch {
	case len(args) == 0, args[0] == "list" && len(args) == 1:
		for _, s := range lib.List() {
			fmt.Fprintf(p.Out, "%-16s %-9s %s\n", s.Name, s.Layer, oneLine(s.Description, 80))
		}
		for _, problem := range lib.Problems() {
			fmt.Fprintln(p.Err, "tether:", printable(problem.Error()))
		}
		return nil
	case len(args) == 2 && (args[0] == "show" || args[0] == "use"):
		s, ok := lib.Get(args[1])
		if !ok {
			return usagef("there is no skill %q\nlist them with: tether skill list", args[1])
		}
		fmt.Fprintln(p.Out, printable(s.Body))
		for _, line := range s.Verify {
			fmt.Fprintln(p.Out, "verify:", printable(line))
		}
		return nil
	}
	return wrongVerb("skill", args, []string{"list", "show NAME"})
}
