package main

import (
	"context"
	"fmt"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

var configCommand = &subcommand{
	Name:    "config",
	Args:    "[show | trust | …]",
	Summary: "show the configuration in force",
	Detail: `show prints the settings in force here, path the files that are read, check only
their mistakes. Order: flag, environment (TETHER_SECTION_KEY), the workspace's
tether.toml (which may only narrow), your own file, the default.

trust shows the workspace's tether.toml in full with what it allows beyond your
own configuration, and asks; the consent holds for exactly that content. untrust
takes it back. Less of a sandbox than the default is never a workspace's to choose.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		yes := fs.Bool("yes", false, "trust: do not ask")
		return func(ctx context.Context, p *program, args []string) error {
			if len(args) > 1 {
				return usagef("config takes one word\nsee: tether help config")
			}
			what := "show"
			if len(args) > 0 {
				what = args[0]
			}
			if *yes && what != "trust" {
				return usagef("--yes belongs to: tether config trust")
			}
			switch what {
			case "trust":
				return trustConfig(ctx, p, *dir, *yes)
			case "untrust":
				return untrustConfig(p, *dir)
			}
			return showConfig(p, *dir, what)
		}
	},
}

func showConfig(p *program, dir, what string) error {
	user, workspace := userConfig(p.Getenv), workspaceFile(dir)
	c, err := loadConfig(user, workspace, p.Getenv)
	switch what {
	case "path":
		_, err = fmt.Fprintf(p.Out, "%s\n%s\n", user, workspace)
		return err
	case "check":
		return err
	case "show":
		if err != nil {
			return err
		}
		return toml.NewEncoder(p.Out).Encode(c)
	}
	return usagef("there is no config %q%s", what, didYouMean(what, []string{"show", "path", "check", "trust", "untrust"}))
}
