package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

var initCommand = &subcommand{
	Name:    "init",
	Summary: "write a tether.toml for a project",
	Detail: `Looks what the project is (Go, Rust, Node, Python, make), proposes the check that
says when a task is done, and writes it with the settings that a project may have
into a commented tether.toml. A file that is there is never written over.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		dir := fs.StringP("dir", "C", ".", "the workspace")
		return func(_ context.Context, p *program, args []string) error {
			if len(args) > 0 {
				return usagef("init takes no word; name the project's folder with --dir")
			}
			return initProject(p, *dir)
		}
	},
}

// A project is what a folder holds, as far as its files tell.
type project struct {
	Kind    string
	Gate    string // the command that says whether it is as it should be
	Protect string // its tests, as a pattern
}

// projectKinds are looked for in this order, and the first one's gate is proposed: the
// tool of a language knows more of a project than a Makefile that calls it.
var projectKinds = []struct {
	project
	found func(dir string) bool
}{
	{project{"Go", "go test ./...", "**/*_test.go"}, has("go.mod")},
	{project{"Rust", "cargo test", "tests/**"}, has("Cargo.toml")},
	{project{"Node", "npm test", "test/**"}, nodeTests},
	{project{"Python", "python3 -m pytest -q", "tests/**"}, pytests},
	{project{"Python", "python3 -m unittest discover -s tests", "tests/**"}, has("tests/*.py", "test_*.py", "setup.py", "pyproject.toml", "requirements.txt")},
	{project{"make", "make test", "Makefile"}, makeTarget("test")},
	{project{"make", "make check", "Makefile"}, makeTarget("check")},
}

// findProjects are the kinds of project that dir is, the likeliest first.
func findProjects(dir string) []project {
	var all []project
	seen := map[string]bool{}
	for _, k := range projectKinds {
		if !seen[k.Kind] && k.found(dir) {
			seen[k.Kind] = true
			all = append(all, k.project)
		}
	}
	return all
}

// has reports whether one of the files is there.
func has(patterns ...string) func(string) bool {
	return func(dir string) bool {
		for _, p := range patterns {
			if found, err := filepath.Glob(filepath.Join(escapeGlob(dir), p)); err == nil && len(found) > 0 {
				return true
			}
		}
		return false
	}
}

// escapeGlob is a path that a pattern may begin with.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// nodeTests reports whether a package.json has a script for its tests, other than
// the one with which npm fills an empty place.
func nodeTests(dir string) bool {
	text, err := readSmall(filepath.Join(dir, "package.json"), 0)
	var pkg struct{ Scripts map[string]string }
	if err != nil || json.Unmarshal([]byte(text), &pkg) != nil {
		return false
	}
	script := pkg.Scripts["test"]
	return script != "" && !strings.Contains(script, "no test specified")
}

// pytests reports whether a project says that pytest runs its tests.
func pytests(dir string) bool {
	if has("pytest.ini", "conftest.py", "tests/conftest.py")(dir) {
		return true
	}
	for _, name := range []string{"pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt"} {
		if text, err := readSmall(filepath.Join(dir, name), 0); err == nil && strings.Contains(text, "pytest") {
			return true
		}
	}
	return false
}

// makeTarget reports whether a Makefile has a target of that name.
func makeTarget(name string) func(string) bool {
	rule := regexp.MustCompile(`(?m)^` + name + `[ \t]*:([^=]|$)`)
	return func(dir string) bool {
		for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} {
			if text, err := readSmall(filepath.Join(dir, file), 0); err == nil && rule.MatchString(text) {
				return true
			}
		}
		return false
	}
}

func initProject(p *program, dir string) error {
	if _, _, err := places(p.Getenv, dir); err != nil {
		return err
	}
	file := workspaceFile(dir)
	all := findProjects(dir)
	err := writeNew(file, projectFile(all))
	switch {
	case errors.Is(err, os.ErrExist):
		return &configError{File: file, Msg: "it is there already, and stays as it is\nsee what it says: tether config show --origin"}
	case err != nil:
		return &configError{File: file, Msg: fmt.Sprintf("it cannot be written (%v)", reason(err))}
	}
	if len(all) == 0 {
		fmt.Fprintf(p.Out, "%s is written; no kind of project was found, so put the command that proves a task into verify\n", file)
		return nil
	}
	fmt.Fprintf(p.Out, "%s is written: a %s project, done when this succeeds: %s\nnext: tether run \"make the tests pass\"\n", file, all[0].Kind, all[0].Gate)
	return nil
}

// writeNew makes a file with text, or no file: half of one would be there already at
// the next try.
func writeNew(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// projectFile is the text of the file for what was found.
func projectFile(all []project) string {
	var b strings.Builder
	b.WriteString(`# Settings of this project for tether. A project may only narrow what its user
# allows: what goes beyond that is refused until the user has read it and said
# yes (tether config trust). Every setting: tether help config, tether config show.

[run]
# What must succeed before a task counts as done, each in a fresh sandbox.
`)
	if len(all) == 0 {
		b.WriteString("# verify = [\"make test\"]\n")
	} else {
		fmt.Fprintf(&b, "verify = [%q]\n", all[0].Gate)
	}
	for _, other := range all[min(1, len(all)):] {
		fmt.Fprintf(&b, "# or, since it is a %s project too: verify = [%q]\n", other.Kind, other.Gate)
	}
	pattern := "tests/**"
	if len(all) > 0 {
		pattern = all[0].Protect
	}
	fmt.Fprintf(&b, `
# Files that belong to the checks: a run that changes them is not done.
# protect = [%q]

# Replies of the model until a run ends (a project may lower it).
# steps = 30

# The commands that the model gets (a project may take some away).
# tools = ["sh", "read", "write", "append", "edit", "grep", "find", "done", "help"]

# Names of variables in the environment whose values are never kept.
# secrets = ["DEPLOY_TOKEN"]

# [sandbox]
# How long one command may take (a project may lower it).
# timeout = "1m0s"
`, pattern)
	return b.String()
}
