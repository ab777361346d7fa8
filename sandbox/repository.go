package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// repository returns the folder outside the workspace that the .git file of a worktree or a submodule belongs to, or
// "". The file is part of the workspace, so anyone may have written it: the repository must point back to it, or
// "gitdir: /home/me/.ssh" would show the keys inside.
func repository(file string) string {
	dir, ok := strings.CutPrefix(smallFile(file), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(file), dir)
	}
	dir, err := filepath.EvalSymlinks(dir)
	switch {
	case err != nil:
		return ""
	case smallFile(filepath.Join(dir, "gitdir")) == file:
		return worktreeOf(dir)
	case submodule(dir, filepath.Dir(file)):
		return dir
	}
	return ""
}

// worktreeOf returns the repository whose worktree has its data at dir, …/.git/worktrees/NAME.
func worktreeOf(dir string) string {
	common := filepath.Dir(filepath.Dir(dir))
	if filepath.Base(filepath.Dir(dir)) != "worktrees" || firstFile(filepath.Join(common, "HEAD")) == "" {
		return ""
	}
	return common
}

// submodule reports whether dir, …/.git/modules/NAME, holds the data of the submodule that is checked out at work.
func submodule(dir, work string) bool {
	if firstFile(filepath.Join(dir, "HEAD")) == "" {
		return false
	}
	for _, name := range []string{"config", "config.worktree"} {
		back := gitValue(filepath.Join(dir, name), "core", "worktree")
		if back == "" {
			continue
		}
		if !filepath.IsAbs(back) {
			back = filepath.Join(dir, back)
		}
		if real, err := filepath.EvalSymlinks(back); err == nil && real == work {
			return true
		}
	}
	return false
}

// hookFolder returns the folder of the workspace, relative to it, from which git takes its hooks by core.hooksPath: what
// a command writes there runs at the next commit. It is "" for the usual one, which lies in .git. The settings of the
// repository come before those of the user.
func hookFolder(root, gitDir, home string) string {
	dir := ""
	for _, file := range []string{gitDir + "/config", home + "/.gitconfig", home + "/.config/git/config"} {
		if dir = gitValue(file, "core", "hookspath"); dir != "" {
			break
		}
	}
	if dir == "" {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	if filepath.Base(dir) == "_" { // husky: the hooks there run those beside them
		dir = filepath.Dir(dir)
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// gitValue returns the last value of a key in a git configuration file, "" if there is none. Section and key are given
// in lower case. A form that it does not know is no value: what depends on it is then not shown.
func gitValue(path, section, key string) string {
	const most = 64 << 10 // bytes: a configuration has a few hundred
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > most {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	value, inside := "", false
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			inside = strings.EqualFold(line, "["+section+"]")
			continue
		}
		name, v, ok := strings.Cut(line, "=")
		if ok && inside && strings.EqualFold(strings.TrimSpace(name), key) {
			value = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return value
}

// smallFile returns the text of a regular file of one line, or "".
func smallFile(path string) string {
	const most = 4096 // bytes: one path
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > most {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
