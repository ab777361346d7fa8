//go:build linux

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs git on the host, with no settings but those given.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// superproject makes a repository with one submodule at lib, and returns its folder.
func superproject(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, name := range []string{"origin", "super"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, filepath.Join(base, name), "init", "-q", ".")
	}
	write(t, filepath.Join(base, "origin/file"), "text")
	git(t, filepath.Join(base, "origin"), "add", "file")
	git(t, filepath.Join(base, "origin"), "commit", "-q", "-m", "first")
	super := filepath.Join(base, "super")
	git(t, super, "submodule", "-q", "add", filepath.Join(base, "origin"), "lib")
	git(t, super, "commit", "-q", "-m", "with a submodule")
	return super
}

// A submodule as the workspace: its data lies in the repository above, which is shown and cannot be written.
func TestSubmoduleAsWorkspace(t *testing.T) {
	super := superproject(t)
	b := newBox(t, Policy{Root: filepath.Join(super, "lib")})
	if o := shell(t, b, "git log --oneline && git status --short"); o.Status != 0 || !strings.HasSuffix(o.Output, " first\n") {
		t.Errorf("%+v", o)
	}
	for _, line := range []string{"echo x >> ../.git/modules/lib/config", "touch ../.git/modules/lib/hooks/post-checkout", "rm .git", "mv .git x", "echo x > .git", "cat ../.git/config"} {
		if o := shell(t, b, line); o.Status == 0 {
			t.Errorf("%s: %+v", line, o)
		}
	}
}

// A repository with a submodule as the workspace: the .git file of the submodule is protected like its own.
func TestSubmoduleInWorkspace(t *testing.T) {
	super := superproject(t)
	b := newBox(t, Policy{Root: super})
	if o := shell(t, b, "git status --short && cd lib && git log --oneline"); o.Status != 0 || !strings.HasSuffix(o.Output, " first\n") {
		t.Errorf("%+v", o)
	}
	for _, line := range []string{"rm lib/.git", "echo 'gitdir: ../evil' > lib/.git", "mv lib/.git x", "echo x >> .git/modules/lib/config", "rm -rf lib"} {
		if o := shell(t, b, line); o.Status == 0 {
			t.Errorf("%s: %+v", line, o)
		}
	}
	_, err := b.Run(t.Context(), Cmd{Shell: "mv lib x; mkdir lib; echo 'gitdir: ../evil' > lib/.git"})
	var te *TamperedError
	if !errors.As(err, &te) || te.Path != "lib/.git" {
		t.Errorf("renamed with its folder: %v", err)
	}
}

func TestNestedRepositories(t *testing.T) {
	root := t.TempDir()
	for i := range scanNested + 3 {
		write(t, filepath.Join(root, fmt.Sprintf("vendor/d%02d/.git/config", i)), "[core]\n")
	}
	b := newBox(t, Policy{Root: root})
	o := shell(t, b, "echo evil >> vendor/d00/.git/config || touch vendor/d01/.git/hooks || echo x > vendor/d00/file")
	if o.Status != 0 || planted(o.Planted) != "vendor/d32/.git" || !strings.Contains(o.Planted[0].Why, "3 repositories, from this one on") {
		t.Errorf("%+v", o)
	}
	if got := read(t, filepath.Join(root, "vendor/d00/.git/config")); got != "[core]\n" {
		t.Errorf("it is now %q", got)
	}
	if n := len(b.scan.nested); n != scanNested {
		t.Errorf("%d are protected, want %d", n, scanNested)
	}
	if err := os.RemoveAll(filepath.Join(root, "vendor/d00")); err != nil { // a person may
		t.Fatal(err)
	}
	if o := shell(t, b, "true"); o.Status != 0 {
		t.Errorf("%+v", o)
	}
}

// What core.hooksPath names is run by git at the next commit.
func TestHooksPath(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	write(t, filepath.Join(home, ".gitconfig"), "[core]\n\thooksPath = of-user\n")
	for value, want := range map[string]string{".husky/_": ".husky", "hooks": "hooks", "a/hooks/": "a/hooks", "../x": "", "/etc/hooks": "", ".": "", "": "of-user",
		"hooks # of us": "hooks", `"a/hooks" ; quoted`: "a/hooks"} {
		root := t.TempDir()
		write(t, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main\n")
		write(t, filepath.Join(root, ".git/config"), "[core]\n\thooksPath = "+value+"\n")
		write(t, filepath.Join(root, ".husky/pre-commit"), "original")
		write(t, filepath.Join(root, "hooks/pre-commit"), "original")
		write(t, filepath.Join(root, "a/hooks/pre-commit"), "original")
		if got := strings.Join(gitRuns(root, root, filepath.Join(root, ".git"), home), " "); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
		write(t, filepath.Join(root, "of-user/pre-commit"), "original")
		b := newBox(t, Policy{Root: root})
		for _, dir := range []string{".husky", "hooks", "a/hooks", "of-user"} {
			if o := shell(t, b, "echo evil > "+dir+"/pre-commit"); (o.Status == 0) == (dir == want) {
				t.Errorf("hooksPath %q: writing %s: %+v", value, dir, o)
			}
			if err := b.Files().WriteFile(dir+"/pre-push", nil); (err == nil) == (dir == want) {
				t.Errorf("hooksPath %q: tether writes %s: %v", value, dir, err)
			}
		}
	}
}

// Hooks and settings are found wherever git finds them.
func TestGitRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string // below a folder in which w is the workspace
		want  string            // of w, is protected
	}{
		"an included file":         {map[string]string{"w/.git/config": "[include]\n\tpath = ../shared/config\n", "w/shared/config": ""}, "shared/config"},
		"one that another names":   {map[string]string{"w/.git/config": "[include] path = ../a", "w/a": "[includeIf \"gitdir:~/x\"]\npath=b\n", "w/b": ""}, "b"},
		"included by the user":     {map[string]string{"home/.gitconfig": "[include]\npath = ~/../w/a\n", "w/a": "", "w/.git/config": ""}, "a"},
		"hooks by an included one": {map[string]string{"w/.git/config": "[include]\npath = ../../x\n", "x": "[core]\nhooksPath = h\n", "w/h/pre-commit": ""}, "h/pre-commit"},
		"of a work tree":           {map[string]string{"w/.git/config.worktree": "[core]\nhooksPath = h\n", "w/h/pre-commit": ""}, "h/pre-commit"},
		"of a nested repository":   {map[string]string{"w/.git/config": "", "w/sub/.git/config": "[core]\nhooksPath = h\n", "w/sub/h/pre-commit": ""}, "sub/h/pre-commit"},
		"of the repository around": {map[string]string{".git/config": "[core]\nhooksPath = w/h\n", "w/h/pre-commit": ""}, "h/pre-commit"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			t.Setenv("HOME", filepath.Join(base, "home"))
			write(t, filepath.Join(base, "home/x"), "")
			for file, text := range tt.files {
				write(t, filepath.Join(base, file), text)
			}
			b := newBox(t, Policy{Root: filepath.Join(base, "w")})
			if o := shell(t, b, "echo evil > "+tt.want); o.Status == 0 {
				t.Errorf("written: %+v", o)
			}
			var protected *ProtectedError
			if err := b.Files().WriteFile(tt.want, nil); !errors.As(err, &protected) {
				t.Errorf("written by tether: %v", err)
			}
		})
	}
}

// What does not exist cannot be covered; it is told, and covered from then on.
func TestGitRunsAppear(t *testing.T) {
	root := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	write(t, filepath.Join(root, ".git/config"), "[core]\nhooksPath = .husky/_\n")
	b := newBox(t, Policy{Root: root})
	var protected *ProtectedError
	if err := b.Files().WriteFile(".husky/pre-commit", nil); !errors.As(err, &protected) {
		t.Errorf("written by tether: %v", err)
	}
	o := shell(t, b, "mkdir .husky; echo evil > .husky/pre-commit")
	if want := (Finding{".husky", "git takes programs to run from it, by its settings"}); !slices.Contains(o.Planted, want) {
		t.Errorf("%+v, want it planted", o)
	}
	if o := shell(t, b, "echo more > .husky/pre-commit"); o.Status == 0 || len(o.Planted) != 0 {
		t.Errorf("%+v, want it covered and nothing told twice", o)
	}
}

func TestRepository(t *testing.T) {
	base := t.TempDir()
	real := filepath.Join(base, "super/.git/modules/lib")
	work := filepath.Join(base, "super/lib")
	file := filepath.Join(work, ".git")
	for name, tt := range map[string]struct{ file, config, head, want string }{
		"a submodule":         {"gitdir: ../.git/modules/lib\n", "[core]\n\tworktree = ../../../lib\n", "ref", real},
		"absolute":            {"gitdir: " + real, "[core]\n\tworktree = " + work, "ref", real},
		"quoted, other case":  {"gitdir: " + real, "[CORE]\n\tworkTree=\"" + work + "\"", "ref", real},
		"points elsewhere":    {"gitdir: " + real, "[core]\n\tworktree = ../../../other\n", "ref", ""},
		"points nowhere":      {"gitdir: " + real, "[core]\n\tbare = false\n", "ref", ""},
		"another section":     {"gitdir: " + real, "[other]\n\tworktree = ../../../lib\n", "ref", ""},
		"another key":         {"gitdir: " + real, "[core]\n\tworktree2 = ../../../lib\n", "ref", ""},
		"no repository":       {"gitdir: " + real, "[core]\n\tworktree = ../../../lib\n", "", ""},
		"nothing there":       {"gitdir: ../nowhere", "[core]\n\tworktree = ../../../lib\n", "ref", ""},
		"no file of git":      {"hello", "[core]\n\tworktree = ../../../lib\n", "ref", ""},
		"the last one counts": {"gitdir: " + real, "[core]\n\tworktree = ../../../lib\n\tworktree = /x\n", "ref", ""},
	} {
		if err := os.RemoveAll(filepath.Join(base, "super")); err != nil {
			t.Fatal(err)
		}
		write(t, file, tt.file)
		write(t, filepath.Join(real, "config"), tt.config)
		if tt.head != "" {
			write(t, filepath.Join(real, "HEAD"), tt.head)
		}
		if got := repository(file); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The launcher gets descriptors: what a path leads to after the check does not matter. One that is too old for that is
// not started when the path leads elsewhere at the last moment.
func TestSwappedWorkspace(t *testing.T) {
	for _, pins := range []bool{true, false} {
		base, secret := t.TempDir(), rand.Text()
		root, keys := filepath.Join(base, "ws"), filepath.Join(base, "keys")
		write(t, filepath.Join(keys, "tether.toml"), secret)
		write(t, filepath.Join(keys, "id"), secret)
		write(t, filepath.Join(root, "tether.toml"), "x=1\n")
		b := newBox(t, Policy{Root: root})
		b.host.Pins = b.host.Pins && pins
		tr, err := b.look()
		if err == nil {
			err = errors.Join(os.Rename(root, root+".old"), os.Symlink(keys, root))
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.start(Cmd{Shell: "cat tether.toml; ls; cat id; echo evil > id; echo evil > new"}, "", tr)
		if (err == nil) != b.host.Pins {
			t.Errorf("with pins %v: started: %v", b.host.Pins, err)
		}
		if err == nil {
			o, err := b.follow(t.Context(), p, Outcome{})
			if err != nil || strings.Contains(o.Output, secret) || !strings.HasPrefix(o.Output, "x=1\n") {
				t.Errorf("%+v, %v", o, err)
			}
		}
		if got := read(t, filepath.Join(keys, "id")); got != secret || exists(filepath.Join(keys, "new")) {
			t.Errorf("the other folder was written: %q", got)
		}
		if _, err := b.Run(t.Context(), Cmd{Shell: "true"}); err == nil {
			t.Error("the next command ran in the replaced folder")
		}
	}
}

// A repository outside may lie where another command can write. A link that it puts in its place does not show the keys.
func TestSwappedRepository(t *testing.T) {
	base := t.TempDir()
	root, common, keys := filepath.Join(base, "ws"), filepath.Join(base, "cache/r"), filepath.Join(base, "keys")
	write(t, filepath.Join(keys, "id"), "SECRET")
	write(t, filepath.Join(common, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(common, "worktrees/w/gitdir"), filepath.Join(root, ".git")+"\n")
	write(t, filepath.Join(root, ".git"), "gitdir: "+filepath.Join(common, "worktrees/w")+"\n")
	b := newBox(t, Policy{Root: root})
	if o := shell(t, b, "cat "+common+"/HEAD"); o.Status != 0 {
		t.Fatalf("the repository is not shown: %+v", o)
	}
	tr, err := b.look()
	if err == nil {
		err = errors.Join(os.Rename(common, common+".old"), os.Symlink(keys, common))
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.start(Cmd{Shell: "cat " + common + "/id"}, "", tr)
	var refused *RefusedError
	if b.host.Pins && !errors.As(err, &refused) { // one that is too old goes by the path
		t.Errorf("started: %v", err)
	}
	if err == nil {
		o, err := b.follow(t.Context(), p, Outcome{})
		t.Logf("%+v, %v", o, err)
	}
}

// No descriptor of the workspace is open inside: it would lead past everything that is mounted over it.
func TestNoDescriptorStays(t *testing.T) {
	root := t.TempDir()
	repo(t, root)
	b := newBox(t, Policy{Root: root})
	o := shell(t, b, `for p in /proc/[0-9]*; do ls -l $p/fd; done | sed -n 's/.*-> //p' | grep -v 'pipe:\|/dev/null\|anon_inode\|/proc\|socket:' | sort -u`)
	if strings.TrimSpace(o.Output) != "" {
		t.Errorf("open inside: %s", o.Output)
	}
}

func TestInspectProtects(t *testing.T) {
	root := t.TempDir()
	repo(t, root)
	write(t, filepath.Join(root, "tests/a"), "")
	write(t, filepath.Join(root, "sub/.git"), "gitdir: x")
	p := Policy{Root: root, Profile: WorkspaceWrite, Protect: []string{"tests", "tests/a", ".git/config", "sub/.git"}}
	got, err := inspect(p, machine())
	if want := []string{".git", "tests", "sub/.git"}; err != nil || !slices.Equal(got.Protect, want) {
		t.Errorf("%q, %v, want %q", got.Protect, err, want)
	}
	p.Profile = Full
	got, err = inspect(p, machine())
	if want := []string{"tests", ".git/config", "sub/.git"}; err != nil || !slices.Equal(got.Protect, want) {
		t.Errorf("full: %q, %v, want %q", got.Protect, err, want)
	}
}

// What is checked through a descriptor is bound by it, in the order in which Run hands them over.
func TestPinnedVectors(t *testing.T) {
	h := machine()
	h.Pins, h.Freeze = true, []string{"/", "/home"}
	tr := tree{Protect: []string{".git", "tests/a b", "sub/.git"}, Hide: []string{"/srv/p/.tether"}, GitDirs: []string{"/srv/main/.git"}}
	golden(t, "pinned", vectorOf(Policy{Profile: WorkspaceWrite, Root: "/srv/p"}, h, tr, Cmd{Shell: "ls"}))
	golden(t, "pinned-full", vectorOf(Policy{Profile: Full, Root: "/srv/p"}, h, tree{Protect: []string{"gate.sh"}}, Cmd{Shell: "ls"}))
}

// A tool may have made .git of a folder a link: the rest of the workspace is as good as any.
func TestNestedLink(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "data/HEAD"), "x")
	write(t, filepath.Join(root, "sub/file"), "x")
	if err := os.Symlink("../data", filepath.Join(root, "sub/.git")); err != nil {
		t.Fatal(err)
	}
	if o := shell(t, newBox(t, Policy{Root: root}), "cat sub/file"); o.Output != "x" || len(o.Planted) != 0 {
		t.Errorf("%+v", o)
	}
}
