package sandbox

import (
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
