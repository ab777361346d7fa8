package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

// configWords are what tether config can be told.
var configWords = []string{"show", "path", "check", "trust", "untrust"}

var configCommand = &subcommand{
	Name:    "config",
	Args:    "[show | trust | …]",
	Summary: "show the configuration in force",
	Detail: `show prints the settings in force here, with --origin where each comes from; path
the files that are read, check only their mistakes. Order: flag, environment
(TETHER_SECTION_KEY), the workspace's tether.toml (which may only narrow), your own
file, the default.

trust shows the workspace's tether.toml in full with what it allows beyond your
own configuration, and asks; the consent holds for exactly that content. untrust
takes it back. Less of a sandbox than the default is never a workspace's to choose.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f configFlags
		f.common.declare(fs)
		f.declareModel(fs)
		fs.BoolVar(&f.origin, "origin", false, "show: where each value comes from")
		fs.BoolVar(&f.json, "json", false, "show: print one JSON object, with the origins")
		fs.BoolVar(&f.yes, "yes", false, "trust: do not ask")
		return f.run
	},
}

type configFlags struct {
	common
	origin, json, yes bool
}

func (f *configFlags) run(ctx context.Context, p *program, args []string) error {
	if len(args) > 1 {
		return usagef("config takes one word of %s\na setting is changed in a file of: tether config path", strings.Join(configWords, ", "))
	}
	what := "show"
	if len(args) > 0 {
		what = args[0]
	}
	switch {
	case f.yes && what != "trust":
		return usagef("--yes belongs to: tether config trust")
	case (f.origin || f.json) && what != "show":
		return usagef("--origin and --json belong to: tether config show")
	}
	switch what {
	case "show":
		return f.show(p)
	case "path":
		_, err := fmt.Fprintf(p.Out, "%s\n%s\n", userConfig(p.Getenv), workspaceFile(f.dir))
		return err
	case "check":
		_, err := loadConfig(userConfig(p.Getenv), workspaceFile(f.dir), p.Getenv)
		return err
	case "trust":
		return trustConfig(ctx, p, f.dir, f.yes)
	case "untrust":
		return untrustConfig(p, f.dir)
	}
	return usagef("there is no config %q%s", what, didYouMean(what, configWords))
}

// show prints the settings in force, the flags among them.
func (f *configFlags) show(p *program) error {
	c, err := f.config(p)
	if err != nil {
		return err
	}
	if f.origin || f.json {
		return f.showOrigins(p, c, f.json)
	}
	return toml.NewEncoder(p.Out).Encode(c)
}
