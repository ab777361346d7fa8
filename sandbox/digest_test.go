package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// digestTree makes files of a workspace, "name": "content", "name -> target" for a link and "name/" for a folder.
func digestTree(t *testing.T, files ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, target, link := strings.Cut(f, " -> ")
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case link:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func digestFiles(t *testing.T, root string) *Files {
	t.Helper()
	f, err := openFiles(Policy{Root: root}, root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.close() })
	return f
}

// TestDigestPatterns: what a pattern matches, and what is bound read-only for it.
func TestDigestPatterns(t *testing.T) {
	root := digestTree(t, "verify.sh", "tests/a.py", "tests/b.txt", "tests/unit/c.py", "tests/[x].py", "src/d.py", ".git/config", "node_modules/m/a.py",
		"tests/link.py -> ../src/d.py", "empty/", "unit -> tests/unit", "round -> round")
	if err := os.Link(filepath.Join(root, "src/d.py"), filepath.Join(root, "twice.py")); err != nil {
		t.Fatal(err)
	}
	f := digestFiles(t, root)
	for _, c := range []struct{ pattern, files, bound string }{
		{"verify.sh", "verify.sh", "verify.sh"},
		{"./verify.sh", "verify.sh", "verify.sh"},
		{"tests/*.py", "tests/[x].py tests/a.py tests/link.py", "tests/[x].py tests/a.py"},
		{"tests/[x].py", "tests/[x].py", "tests/[x].py"},
		{"tests", "tests/[x].py tests/a.py tests/b.txt tests/link.py tests/unit/c.py", "tests"},
		{"tests/**", "tests/[x].py tests/a.py tests/b.txt tests/link.py tests/unit/c.py", "tests"},
		{"**/*.py", "src/d.py tests/[x].py tests/a.py tests/link.py tests/unit/c.py twice.py", "tests/[x].py tests/a.py tests/unit/c.py"},
		{"{src,tests/unit}/*.py", "src/d.py tests/unit/c.py", "tests/unit/c.py"},
		{"empty", "", "empty"},
		{"unit", "tests/unit/c.py unit", "tests/unit/c.py"},
		{"round", "round", ""},
		{"nothing.sh", "", ""},
		{"nothing/*", "", ""},
		{"../*", "", ""},
		{".git/*", ".git/config", ".git/config"},
	} {
		sums, err := f.Digest([]string{c.pattern})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(sums)), " "); got != c.files {
			t.Errorf("%s matches %q, want %q", c.pattern, got, c.files)
		}
		bound, err := Protectable(root, []string{c.pattern})
		if got := strings.Join(bound, " "); err != nil || got != c.bound {
			t.Errorf("%s is bound as %q (%v), want %q", c.pattern, got, err, c.bound)
		}
	}
}

// TestDigestSees: every way in which a file can become another one, and nothing but those.
func TestDigestSees(t *testing.T) {
	root := digestTree(t, "a", "b", "other", "link -> b", "out -> /etc/hostname")
	f := digestFiles(t, root)
	digest := func() string {
		sums, err := f.Digest([]string{"a", "link", "out"})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(sums)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	must := func(errs ...error) {
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	before := digest()
	must(os.WriteFile(at("a"), []byte("a"), 0o600), os.WriteFile(at("other"), nil, 0o600))
	if digest() != before {
		t.Error("the same content is another digest")
	}
	for what, change := range map[string]func(){
		"content":              func() { must(os.WriteFile(at("a"), []byte("x"), 0o600)) },
		"another file":         func() { must(os.Rename(at("other"), at("a"))) },
		"a link in its place":  func() { must(os.Remove(at("a")), os.Symlink("b", at("a"))) },
		"a folder in place":    func() { must(os.Remove(at("a")), os.Mkdir(at("a"), 0o755)) },
		"gone":                 func() { must(os.Remove(at("a"))) },
		"the target of a link": func() { must(os.WriteFile(at("b"), []byte("x"), 0o600)) },
		"another target":       func() { must(os.Remove(at("link")), os.Symlink("a", at("link"))) },
		"another one outside":  func() { must(os.Remove(at("out")), os.Symlink("/etc/passwd", at("out"))) },
	} {
		change()
		if digest() == before {
			t.Errorf("%s: the digest is the same", what)
		}
		for _, name := range []string{"a", "b", "link", "out"} {
			must(os.RemoveAll(at(name)))
		}
		must(os.WriteFile(at("a"), []byte("a"), 0o600), os.WriteFile(at("b"), []byte("b"), 0o600), os.WriteFile(at("other"), nil, 0o600),
			os.Symlink("b", at("link")), os.Symlink("/etc/hostname", at("out")))
		if digest() != before {
			t.Fatalf("after %s: not as it was", what)
		}
	}
}

// TestDigestBounds: more than can be hashed before each gate is an error, and no file is left out in silence.
func TestDigestBounds(t *testing.T) {
	root := digestTree(t, "many/")
	for i := range maxDigestFiles + 1 {
		if err := os.WriteFile(filepath.Join(root, "many", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	large, err := os.Create(filepath.Join(root, "large"))
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	if err := large.Truncate(maxDigestBytes + 1); err != nil {
		t.Fatal(err)
	}
	f := digestFiles(t, root)
	for _, pattern := range []string{"many", "many/*", "large"} {
		if _, err := f.Digest([]string{pattern}); !errors.Is(err, ErrManyFiles) {
			t.Errorf("%s: error %v, want ErrManyFiles", pattern, err)
		}
	}
	if _, err := Protectable(root, []string{"many/*"}); !errors.Is(err, ErrManyFiles) {
		t.Errorf("Protectable: error %v, want ErrManyFiles", err)
	}
	if got, err := Protectable(root, []string{"many"}); err != nil || !slices.Equal(got, []string{"many"}) {
		t.Errorf("the folder as a whole: %q, %v", got, err)
	}
}
