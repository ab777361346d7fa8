package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"
)

var versionCommand = &subcommand{
	Name:    "version",
	Summary: "print the version",
	Detail:  "Prints the version as the build recorded it.",
	Flags: func(*pflag.FlagSet) func(context.Context, *program, []string) error {
		return func(_ context.Context, p *program, args []string) error {
			if err := noWords("version", args); err != nil {
				return err
			}
			fmt.Fprintf(p.Out, "tether %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return nil
		}
	},
}

// stamped is the version of a release, which the linker writes here: what a build
// finds out about its repository would make it another one in another folder.
var stamped string

// version is that of the release or of the module, or the commit, or "devel".
func version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	switch v := info.Main.Version; {
	case v != "" && v != "(devel)":
		return v
	case commit != "":
		return commit + dirty
	}
	return "devel"
}
