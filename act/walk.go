package act

import (
	"context"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxWalk bounds how many entries one search looks at, so that a huge tree costs a
// second and not a minute.
const maxWalk = 200_000

// vendored are folders of other people's code, which nobody means by "search".
var vendored = []string{"node_modules", "__pycache__", ".venv"}

// findFiles returns the paths under rel, relative to the workspace and in order,
// that keep accepts. more says that the walk stopped early.
func (e *Env) findFiles(rel string, keep func(string, fs.DirEntry) bool) (found []string, more bool) {
	seen := 0
	_ = fs.WalkDir(e.Box.Files().FS(), rel, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir
		case err != nil:
			return nil
		case d.IsDir() && p != rel && (isHidden(p) || path.Base(p) == "node_modules"):
			return fs.SkipDir
		case isHidden(p) && p != rel:
			return nil
		}
		if seen++; seen > maxWalk {
			more = true
			return fs.SkipAll
		}
		if keep(p, d) {
			found = append(found, p)
		}
		return nil
	})
	return found, more
}

// paths is the files that an argument with a wildcard means, as the model would
// write them; any other argument means itself.
func (e *Env) paths(arg string) []string {
	if !strings.ContainsAny(arg, "*?[{") {
		return []string{arg}
	}
	rel, err := e.rel(arg)
	if err != nil {
		return []string{arg}
	}
	files := e.Box.Files()
	if _, err := files.Stat(rel); err == nil {
		return []string{arg}
	}
	found, err := doublestar.Glob(files.FS(), rel)
	if err != nil || len(found) == 0 {
		return []string{arg}
	}
	var names []string
	for _, f := range found {
		if !isHidden(f) {
			names = append(names, e.shown(f))
		}
	}
	return names
}

// searchable returns the files under rel that a search for text looks at: not
// those of git, of other people, or ignored by a .gitignore.
func (e *Env) searchable(ctx context.Context, rel string) ([]string, error) {
	fsys := e.Box.Files().FS()
	var ignored ignores
	var found []string
	for _, dir := range parents(rel) {
		ignored.read(fsys, dir)
	}
	err := fs.WalkDir(fsys, rel, func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil
		case p != rel && (isHidden(p) || isVendored(p) || ignored.match(p, d.IsDir())):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			ignored.read(fsys, p)
		case len(found) > maxWalk:
			return fs.SkipAll
		case d.Type().IsRegular():
			found = append(found, p)
		}
		return nil
	})
	return found, err
}

// parents returns the folders above rel, the root first; none for the root.
func parents(rel string) []string {
	var dirs []string
	for rel != "." && rel != "" {
		rel = path.Dir(rel)
		dirs = append([]string{rel}, dirs...)
	}
	return dirs
}

func isVendored(p string) bool {
	for _, v := range vendored {
		if path.Base(p) == v {
			return true
		}
	}
	return false
}

// ignores are the rules of the .gitignore files read so far, the outermost first;
// the last rule that matches decides.
type ignores []ignore

// An ignore is one rule of a .gitignore.
type ignore struct {
	dir     string // of the .gitignore, "." for the root
	pattern string // relative to dir
	folder  bool   // only folders
	not     bool   // takes back what an earlier rule ignored
}

// read adds the rules of the .gitignore in dir, if there is one.
func (g *ignores) read(fsys fs.FS, dir string) {
	data, err := fs.ReadFile(fsys, path.Join(dir, ".gitignore"))
	if err != nil {
		return
	}
	for _, line := range splitLines(string(data)) {
		if r, ok := parseIgnore(dir, line); ok {
			*g = append(*g, r)
		}
	}
}

// parseIgnore reads one line of a .gitignore as gitignore(5) describes it.
func parseIgnore(dir, line string) (ignore, bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = strings.TrimSuffix(line, " ")
	}
	r := ignore{dir: dir}
	if line == "" || line[0] == '#' {
		return r, false
	}
	line, r.not = strings.CutPrefix(line, "!")
	line, r.folder = strings.CutSuffix(line, "/")
	anchored := strings.Contains(line, "/")
	r.pattern = strings.TrimPrefix(line, "/")
	if !anchored {
		r.pattern = "**/" + r.pattern
	}
	return r, r.pattern != "" && doublestar.ValidatePattern(r.pattern)
}

// match reports whether p, relative to the workspace, is ignored.
func (g ignores) match(p string, isDir bool) bool {
	for i := len(g) - 1; i >= 0; i-- {
		r := g[i]
		name := p
		if r.dir != "." {
			var under bool
			if name, under = strings.CutPrefix(p, r.dir+"/"); !under {
				continue
			}
		}
		if r.folder && !isDir {
			continue
		}
		if ok, _ := doublestar.Match(r.pattern, name); ok {
			return !r.not
		}
	}
	return false
}
