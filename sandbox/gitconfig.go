package sandbox

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// gitRuns returns the paths of the workspace root, relative to it, from which the git of a work tree takes programs to run
// although they lie beside its .git: the folder of hooks that core.hooksPath names, and settings that others include. What
// a command writes there runs at the next commit. They need not exist. GitDir is the repository, "" if it is not known.
func gitRuns(root, work, gitDir, home string) []string {
	g := gitReader{root: root, work: work, home: home, left: 20} // files; people have three
	if gitDir != "" {
		own, _ := filepath.Glob(gitDir + "/worktrees/*/config.worktree") // an odd name hides only what git rarely has
		g.read(append(own, gitDir+"/config.worktree", gitDir+"/config"))
	}
	g.read([]string{home + "/.gitconfig", home + "/.config/git/config"}) // after those of the repository, which come first
	return g.found
}

// gitReader gathers what git runs from its settings.
type gitReader struct {
	root, work, home string
	left             int // files that may still be read
	hooks            bool
	found            []string
}

// read reads files of the same rank, and what they include. Hooks that a file of a higher rank names are the ones.
func (g *gitReader) read(files []string) {
	hooks := false
	for i := 0; i < len(files) && g.left > 0; i++ {
		g.left--
		for _, s := range gitSettings(files[i]) {
			switch {
			case s.key == "path" && (s.section == "include" || strings.HasPrefix(s.section, "includeif ")):
				file := g.place(s.value, filepath.Dir(files[i]))
				files = append(files, file)
				g.add(file)
			case s.section == "core" && s.key == "hookspath" && s.value != "" && !g.hooks:
				hooks = true
				g.add(hookFolder(g.place(s.value, g.work)))
			}
		}
	}
	g.hooks = g.hooks || hooks
}

// place is a path of a file of settings as git takes it.
func (g *gitReader) place(value, from string) string {
	switch {
	case strings.HasPrefix(value, "~/"):
		return filepath.Join(g.home, value[2:])
	case filepath.IsAbs(value):
		return filepath.Clean(value)
	}
	return filepath.Join(from, value)
}

// add takes a path that lies in the workspace.
func (g *gitReader) add(path string) {
	rel, err := filepath.Rel(g.root, path)
	if rel = filepath.ToSlash(rel); err == nil && rel != "." && filepath.IsLocal(rel) && !slices.Contains(g.found, rel) {
		g.found = append(g.found, rel)
	}
}

// hookFolder is the folder to be protected for that of the hooks. With husky the hooks there run those beside them.
func hookFolder(dir string) string {
	if filepath.Base(dir) == "_" {
		return filepath.Dir(dir)
	}
	return dir
}

// setting is one line of a git configuration file. Section and key are in lower case.
type setting struct{ section, key, value string }

// gitSettings reads a git configuration file as people and git itself write it. A form that it does not know is no value.
func gitSettings(path string) []setting {
	const most = 64 << 10                                                     // bytes: a configuration has a few hundred
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // a command may be putting a FIFO there
	if err != nil {
		return nil
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > most {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	var all []setting
	section := ""
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			end := strings.LastIndexByte(line, ']')
			section = strings.ToLower(line[1:max(1, end)])
			line = line[end+1:]
		}
		if key, value, ok := strings.Cut(line, "="); ok {
			all = append(all, setting{section, strings.ToLower(strings.TrimSpace(key)), gitText(value)})
		}
	}
	return all
}

// gitText takes quotes and a comment off a value.
func gitText(value string) string {
	value = strings.TrimSpace(value)
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		value, _, _ = strings.Cut(quoted, `"`)
		return value
	}
	if i := strings.IndexAny(value, "#;"); i >= 0 {
		value = value[:i]
	}
	return strings.TrimSpace(value)
}

// gitValue returns the last value of a key in a git configuration file, "" if there is none. The file may be anybody's, so
// it is read only if it is no link. Section and key are given in lower case.
func gitValue(path, section, key string) string {
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	value := ""
	for _, s := range gitSettings(path) {
		if s.section == section && s.key == key {
			value = s.value
		}
	}
	return value
}
