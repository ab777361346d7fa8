package act

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

var findCommand = &Command{
	Name:    "find",
	Args:    "[DIR] [-name GLOB]",
	Summary: "find files by name",
	Detail: "Lists the files and folders under DIR. find GLOB finds a name anywhere.\n" +
		"  -type f|d  only files, or only folders\nexample: find src -name '*_test.go'",
	Program: true,
	Raw:     true,
	Run:     runFind,
}

// A finder is what find was asked for.
type finder struct {
	dirs []string
	glob string // of the base name; "" is all
	fold bool   // -iname
	kind string // "f", "d" or ""
}

// parseFind reads the options that are done here; ok is false for any other.
func parseFind(args []string) (f finder, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") || a == "-" {
			f.dirs = append(f.dirs, a)
			continue
		}
		if i++; i == len(args) {
			return f, a == "-print"
		}
		switch value := args[i]; {
		case a == "-name" && f.glob == "", a == "-iname" && f.glob == "":
			f.glob, f.fold = value, a == "-iname"
		case a == "-type" && f.kind == "" && (value == "f" || value == "d"):
			f.kind = value
		case a == "-print":
			i--
		default:
			return f, false
		}
	}
	return f, f.glob == "" || doublestar.ValidatePattern(f.glob)
}

func runFind(_ context.Context, env *Env, args []string) error {
	f, ok := parseFind(args)
	if !ok {
		return errProgram
	}
	if len(f.dirs) == 1 && f.glob == "" && !env.exists(f.dirs[0]) {
		f.glob, f.dirs = path.Base(f.dirs[0]), nil // "find GLOB"
	}
	if len(f.dirs) == 0 {
		f.dirs = []string{""}
	}
	var found []string
	for _, dir := range f.dirs {
		some, err := f.in(env, dir)
		if err != nil {
			return err
		}
		found = append(found, some...)
	}
	for i, p := range found {
		if i == maxLines && !env.piped {
			break
		}
		if !env.piped {
			p = inLine(p)
		}
		fmt.Fprintln(env.Out, p)
	}
	return f.end(env, len(found))
}

// exists reports whether the model named something that is there.
func (e *Env) exists(name string) bool {
	rel, err := e.rel(name)
	if err != nil {
		return true // let the search say what is wrong with it
	}
	_, err = e.Box.Files().Stat(rel)
	return err == nil
}

// in lists what is under one folder, named as find does: after the folder as it
// was given.
func (f finder) in(env *Env, dir string) ([]string, error) {
	rel, err := env.rel(path.Join(".", dir))
	if strings.HasPrefix(dir, "/") {
		rel, err = env.rel(dir)
	}
	if err != nil {
		return nil, err
	}
	if _, err := env.Box.Files().Stat(rel); err != nil {
		return nil, env.fileError(dir, err)
	}
	found, _ := env.findFiles(rel, func(p string, d fs.DirEntry) bool {
		return f.keeps(p, d) && (p != rel || dir != "")
	})
	for i, p := range found {
		found[i] = named(dir, rel, p)
	}
	return found, nil
}

// named writes the path p under rel as one under dir.
func named(dir, rel, p string) string {
	under := strings.TrimPrefix(strings.TrimPrefix(p, rel), "/")
	if rel == "." {
		under = p
	}
	switch {
	case p == rel && dir != "":
		return dir
	case dir == "":
		return under
	}
	return strings.TrimSuffix(dir, "/") + "/" + under
}

func (f finder) keeps(p string, d fs.DirEntry) bool {
	name, glob := path.Base(p), f.glob
	if f.fold {
		name, glob = strings.ToLower(name), strings.ToLower(glob)
	}
	switch {
	case f.kind == "f" && !d.Type().IsRegular(), f.kind == "d" && !d.IsDir():
		return false
	case glob == "":
		return true
	}
	ok, _ := doublestar.Match(glob, name)
	return ok
}

// end says how the search ended.
func (f finder) end(env *Env, n int) error {
	what := map[string]string{"": "files and folders", "f": "files", "d": "folders"}[f.kind]
	if f.glob != "" {
		what = "names like " + f.glob
	}
	switch {
	case env.piped:
	case n == 0:
		env.Say("There are no %s.", what)
	case n > maxLines:
		env.Say("Those are the first %d of %d; name a folder or a pattern.", maxLines, n)
	default:
		env.Say("Those are all %s.", what)
	}
	return nil
}
