package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"tether/harness/llm"
)

var dirsCommand = &subcommand{
	Name:    "dirs",
	Summary: "print where everything is kept",
	Detail: `Prints the files and folders that tether reads and writes, a line each, and what is
not there yet. They follow the XDG variables; tether help environment has the others.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		asJSON := fs.Bool("json", false, "print one JSON object")
		return func(_ context.Context, p *program, args []string) error {
			if err := noWords("dirs", args); err != nil {
				return err
			}
			return showDirs(p, *dir, *asJSON)
		}
	},
}

// A kept is a file or a folder that tether uses.
type kept struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Is   bool   `json:"exists"`
	what string
}

// allPlaces lists what belongs to the user and to the workspace dir.
func allPlaces(p *program, dir string) ([]kept, error) {
	root, state, err := places(p.Getenv, dir)
	if err != nil {
		return nil, err
	}
	own := userConfig(p.Getenv)
	all := []kept{
		{"config", own, false, "your settings"},
		{"project", workspaceFile(root), false, "settings of this workspace, which may only narrow"},
		{"trust", trustFile(p.Getenv), false, "the project files that you trust"},
		{"skills", filepath.Join(filepath.Dir(own), "skills"), false, "your own skills"},
		{"state", state, false, "the sessions of this workspace"},
		{"models", llm.ModelsDir(), false, "the models that were fetched"},
		{"cache", filepath.Join(xdg(p.Getenv, "XDG_CACHE_HOME", ".cache"), "tether"), false, "what can be deleted"},
	}
	for i := range all {
		_, err := os.Stat(all[i].Path)
		all[i].Is = err == nil
	}
	return all, nil
}

func showDirs(p *program, dir string, asJSON bool) error {
	all, err := allPlaces(p, dir)
	if err != nil {
		return err
	}
	if asJSON {
		return p.json(map[string]any{"v": 1, "places": all})
	}
	for _, at := range all {
		what := at.what
		if !at.Is {
			what += "; not there"
		}
		if _, err := fmt.Fprintf(p.Out, "%-8s %s  (%s)\n", at.Name, printable(at.Path), what); err != nil {
			return err
		}
	}
	return nil
}
