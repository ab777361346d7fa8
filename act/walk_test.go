package act

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestIgnoresAsGitDoes compares the rules with git check-ignore.
func TestIgnoresAsGitDoes(t *testing.T) {
	rules := map[string]string{
		".gitignore":     "*.log\n!keep.log\n/build/\ndocs/*.txt\n# comment\n\ntmp\n**/cache\na/**/z\n\\#x\ntrail   \n*.[oa]\n",
		"sub/.gitignore": "local\n!*.log\n/top\n",
	}
	paths := []string{
		"a.log", "keep.log", "build/x", "sub/build/x", "docs/a.txt", "docs/b/a.txt", "tmp/x", "x/tmp", "cache/1", "x/cache/1",
		"a/z", "a/b/c/z", "#x", "trail", "m.o", "sub/local", "sub/x/local", "local", "sub/b.log", "sub/top", "sub/x/top", "plain",
	}
	root := t.TempDir()
	fsys := fstest.MapFS{}
	for name, text := range rules {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	git := exec.Command("git", "-C", root, "init", "-q")
	check(t, git.Run())
	var g ignores
	g.read(fsys, ".")
	g.read(fsys, "sub")
	for _, p := range paths {
		want := exec.Command("git", "-C", root, "check-ignore", "-q", "--no-index", p).Run() == nil
		if got := ignoredWithin(g, p); got != want {
			t.Errorf("%s: ignored %v, git says %v", p, got, want)
		}
	}
}

// ignoredWithin is what a walk does: a path is ignored with its folder.
func ignoredWithin(g ignores, p string) bool {
	parts := strings.Split(p, "/")
	for i := range parts {
		if g.match(strings.Join(parts[:i+1], "/"), i+1 < len(parts)) {
			return true
		}
	}
	return false
}
