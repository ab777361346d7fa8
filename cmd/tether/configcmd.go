package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

var configCommand = &subcommand{
	Name:    "config",
	Args:    "[show | path | check]",
	Summary: "show the configuration in force",
	Detail: `show prints the settings in force here, path the files that are read, check only
their mistakes. Order: flag, environment (TETHER_SECTION_KEY), the workspace's
tether.toml (which may only narrow), your own file, the default.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		return func(_ context.Context, p *program, args []string) error { return showConfig(p, *dir, args) }
	},
}

func showConfig(p *program, dir string, args []string) error {
	what := "show"
	if len(args) > 0 {
		what = args[0]
	}
	user, workspace := userConfig(p.Getenv), filepath.Join(dir, "tether.toml")
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
	return usagef("there is no config %q%s", what, didYouMean(what, []string{"show", "path", "check"}))
}
