//go:build linux

package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repo makes the parts of a repository that matter here.
func repo(t *testing.T, root string) {
	t.Helper()
	write(t, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(root, ".git/config"), "[core]\n")
	write(t, filepath.Join(root, ".git/hooks/pre-commit.sample"), "x")
}

func TestProtectedByPolicy(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Full} {
		root := t.TempDir()
		write(t, filepath.Join(root, "tests/a_test.txt"), "original")
		write(t, filepath.Join(root, "gate.sh"), "original")
		b := newBox(t, Policy{Root: root, Profile: profile, Protect: []string{"tests/a_test.txt", "gate.sh"}})
		for _, line := range []string{"echo evil > tests/a_test.txt", "rm gate.sh", "mv gate.sh x", "ln gate.sh other", "chmod +x gate.sh", "cp /dev/null gate.sh", "rm -r tests"} {
			if o := shell(t, b, line); o.Status == 0 {
				t.Errorf("%s: %s: %+v", profile, line, o)
			}
		}
		if o := shell(t, b, "echo x > tests/other && cat gate.sh"); o.Status != 0 || o.Output != "original" {
			t.Errorf("%s: what is not protected: %+v", profile, o)
		}
		for _, rel := range []string{"tests/a_test.txt", "gate.sh"} {
			var pe *ProtectedError
			if err := b.Files().WriteFile(rel, []byte("evil")); !errors.As(err, &pe) {
				t.Errorf("%s: WriteFile(%s): %v, want a *ProtectedError", profile, rel, err)
			}
			if got := read(t, filepath.Join(root, rel)); got != "original" {
				t.Errorf("%s: %s is now %q", profile, rel, got)
			}
		}
	}
}

// A mount point cannot be renamed, but the folder above it can.
func TestAncestorIsReplaced(t *testing.T) {
	for line, want := range map[string]string{
		"mv tests x; cp -r x tests; echo evil > tests/deep/a.txt":   "it was replaced",
		"mv tests x; mkdir -p tests/deep":                           "it is gone",
		"mv tests x; ln -s x tests; mv x/deep y; cp -r y x/deep":    "it was replaced",
		"mv tests/deep tests/d; cp -r tests/d tests/deep; sleep .1": "it was replaced",
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, "tests/deep/a.txt"), "original")
		b := newBox(t, Policy{Root: root, Protect: []string{"tests/deep/a.txt"}})
		_, err := b.Run(t.Context(), Cmd{Shell: line})
		var te *TamperedError
		if !errors.As(err, &te) || te.Path != "tests/deep/a.txt" || te.What != want {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
	// The same without a sandbox, where nothing is in the way.
	root := t.TempDir()
	write(t, filepath.Join(root, "a.txt"), "original")
	b := newBox(t, Policy{Root: root, Profile: Off, Protect: []string{"a.txt"}})
	var te *TamperedError
	if _, err := b.Run(t.Context(), Cmd{Shell: "echo changed! > a.txt"}); !errors.As(err, &te) {
		t.Errorf("off: error %v", err)
	}
}

func TestProtectMustExist(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "file"), "")
	if err := os.Symlink("file", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, rel := range []string{"missing", "link", "../x", "/etc/passwd", ".", "", "a\x00b", "link/x"} {
		var re *RefusedError
		if _, err := New(t.Context(), Policy{Root: root, Protect: []string{rel}}); !errors.As(err, &re) {
			t.Errorf("%q: error %v, want a *RefusedError", rel, err)
		}
	}
	b := newBox(t, Policy{Root: root, Protect: []string{"file"}})
	if err := os.Remove(filepath.Join(root, "file")); err != nil {
		t.Fatal(err)
	}
	var te *TamperedError
	if _, err := b.Run(t.Context(), Cmd{Shell: "true"}); !errors.As(err, &te) || te.What != "it is gone" {
		t.Errorf("removed between two commands: error %v", err)
	}
}

// meanwhile runs a command, and on the host something else while it runs.
func meanwhile(t *testing.T, b *Box, host func()) error {
	t.Helper()
	r, w := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := b.Run(t.Context(), Cmd{Shell: "echo begun > begun; read line", Stdin: r})
		done <- err
	}()
	until(t, "the command runs", func() bool { return exists(filepath.Join(b.Policy().Root, "begun")) })
	host()
	io.WriteString(w, "go\n")
	w.Close()
	return <-done
}

func TestChangedOnTheHost(t *testing.T) {
	for name, tt := range map[string]struct {
		path string
		do   func(path string) error
		want string // "" is no error
	}{
		"saved by rename": {"tether.toml", func(p string) error {
			return errors.Join(os.WriteFile(p+"~", []byte("x=1\n"), 0o644), os.Rename(p+"~", p))
		}, "it was replaced"},
		"same size":     {"tether.toml", func(p string) error { return os.WriteFile(p, []byte("x=2\n"), 0o644) }, "its contents changed"},
		"other size":    {"tether.toml", func(p string) error { return os.WriteFile(p, []byte("x=20\n"), 0o644) }, "its contents changed"},
		"same contents": {"tether.toml", func(p string) error { return os.WriteFile(p, []byte("x=1\n"), 0o644) }, ""},
		"touched":       {"tether.toml", func(p string) error { return os.Chtimes(p, time.Now(), time.Now()) }, ""},
		"mode":          {"tether.toml", func(p string) error { return os.Chmod(p, 0o666) }, "its permissions changed"},
		"hook":          {".git/hooks/pre-commit", func(p string) error { return os.WriteFile(p, nil, 0o755) }, "it appeared"},
		"commondir":     {".git/commondir", func(p string) error { return os.WriteFile(p, nil, 0o644) }, "it appeared"},
		"config":        {".git/config", func(p string) error { return os.WriteFile(p, []byte("[evil]"), 0o644) }, "its contents changed"},
		"a commit":      {".git/HEAD", func(p string) error { return os.WriteFile(p, []byte("ref: refs/heads/other\n"), 0o644) }, ""},
		"an index":      {".git/index", func(p string) error { return os.WriteFile(p, nil, 0o644) }, ""},
		"an example":    {".git/hooks/x.sample", func(p string) error { return os.WriteFile(p, nil, 0o755) }, ""},
	} {
		root := t.TempDir()
		repo(t, root)
		write(t, filepath.Join(root, "tether.toml"), "x=1\n")
		b := newBox(t, Policy{Root: root})
		err := meanwhile(t, b, func() {
			if err := tt.do(filepath.Join(root, tt.path)); err != nil {
				t.Fatal(err)
			}
		})
		var te *TamperedError
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (!errors.As(err, &te) || te.Path != tt.path || te.What != tt.want):
			t.Errorf("%s: error %v, want %s %s", name, err, tt.path, tt.want)
		}
	}
}

// Between two commands the protected paths are the person's to change.
func TestChangedBetween(t *testing.T) {
	root := t.TempDir()
	repo(t, root)
	b := newBox(t, Policy{Root: root})
	for range 3 {
		shell(t, b, "true")
		write(t, filepath.Join(root, ".git/config"), "[core]\n"+time.Now().String())
	}
	shell(t, b, "true")
}

func TestTamperedWords(t *testing.T) {
	err := &TamperedError{"tests/a.txt", "it was replaced"}
	if got := err.Error(); !strings.HasPrefix(got, "tests/a.txt is protected, but it was replaced while a command ran") {
		t.Error(got)
	}
}

// The hash of a file that has not been touched is remembered, and no other one.
func TestSums(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "tether.toml")
	write(t, path, "x=1\n")
	dir, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var s sums
	note := func(at time.Time) imprint {
		t.Helper()
		now, err := imprintOf(dir, "tether.toml")
		if err == nil {
			now, err = s.fill(dir, "tether.toml", now, at)
		}
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	if note(time.Now()); len(s.seen) != 0 {
		t.Error("a file that may change within the same tick was remembered")
	}
	later := time.Now().Add(time.Hour)
	first := note(later)
	if got := s.seen["tether.toml"]; got != first {
		t.Errorf("remembered %v, want %v", got, first)
	}
	forged := first
	forged.sum[0]++
	s.seen["tether.toml"] = forged
	if got := note(later); got != forged {
		t.Error("an untouched file was read again")
	}
	write(t, path, "x=2\n")
	if got := note(later); got.sum == forged.sum || got.sum == first.sum {
		t.Error("a changed file was not read again")
	}
}
