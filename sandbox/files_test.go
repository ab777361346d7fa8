//go:build linux

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// jail makes a workspace and its Files. Files need no sandbox, so the profile is off.
func jail(t testing.TB, p Policy) (*Files, string) {
	t.Helper()
	if p.Profile == "" {
		p.Profile = Off
	}
	b := newBox(t, p)
	return b.Files(), b.Policy().Root
}

func TestRel(t *testing.T) {
	f, root := jail(t, Policy{})
	for _, tt := range []struct{ dir, name, want string }{
		{"", "a.go", "a.go"},
		{"", "./a.go", "a.go"},
		{"", "a//b/../c", "a/c"},
		{"sub", "a.go", "sub/a.go"},
		{"sub", "../a.go", "a.go"},
		{"sub", "..", "."},
		{"sub", "", "sub"},
		{"", "", "."},
		{"", ".", "."},
		{"sub", root, "."},
		{"sub", root + "/", "."},
		{"sub", root + "/x/y", "x/y"},
		{"", "..a", "..a"},
		{"", "a b/ü", "a b/ü"},
		{"", "..", ""},
		{"sub", "../..", ""},
		{"", "a/../../b", ""},
		{"", "/etc/passwd", ""},
		{"", root + "x/y", ""},
		{"", root + "/../y", ""},
		{"", "a\x00b", ""},
	} {
		got, err := f.Rel(tt.dir, tt.name)
		if got != tt.want || (err != nil) != (tt.want == "") || err != nil && !errors.Is(err, ErrOutside) {
			t.Errorf("Rel(%q, %q) = %q, %v; want %q", tt.dir, tt.name, got, err, tt.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	f, root := jail(t, Policy{})
	outside := t.TempDir()
	write(t, filepath.Join(outside, "key"), "SECRET")
	write(t, filepath.Join(root, "file"), "text")
	write(t, filepath.Join(root, "binary"), "\x00\xff\x00")
	write(t, filepath.Join(root, "sub/file"), "below")
	for name, target := range map[string]string{
		"inner": "sub/file", "link": filepath.Join(outside, "key"), "linkdir": outside, "zero": "/dev/zero", "up": "../" + filepath.Base(outside) + "/key",
		"loop": "loop", "proc": "/proc/self/environ", "dangling": "nothing",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	sparse(t, filepath.Join(root, "large"), 200<<20)
	for rel, want := range map[string]string{"file": "text", "binary": "\x00\xff\x00", "sub/file": "below", "inner": "below", "sub/../file": "text"} {
		if got, err := f.ReadFile(rel, 1<<20); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v", rel, got, err)
		}
	}
	for _, rel := range []string{"link", "linkdir/key", "zero", "up", "proc", "../x", "/etc/passwd"} {
		if data, err := f.ReadFile(rel, 1<<20); !errors.Is(err, ErrOutside) || len(data) != 0 {
			t.Errorf("%s: %q, %v; want ErrOutside", rel, data, err)
		}
	}
	for _, rel := range []string{"missing", "missing/x", "dangling"} {
		if _, err := f.ReadFile(rel, 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", rel, err)
		}
	}
	if _, err := f.ReadFile("loop", 0); err == nil {
		t.Error("a link to itself was read")
	}
	var large *TooLargeError
	if _, err := f.ReadFile("large", 1<<20); !errors.As(err, &large) || large.Size != 200<<20 || large.Max != 1<<20 {
		t.Errorf("large: %v", err)
	}
	if got, err := f.ReadFile("file", 4); string(got) != "text" || err != nil {
		t.Errorf("a file of just the size: %q, %v", got, err)
	}
	if _, err := f.ReadFile("file", 3); !errors.As(err, &large) {
		t.Errorf("one byte over: %v", err)
	}
}

func TestReadFileNotRegular(t *testing.T) {
	f, root := jail(t, Policy{})
	if err := os.Mkdir(filepath.Join(root, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root) // the path of a socket may have only 108 bytes
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := map[string]string{"dir": "folder", ".": "folder", "fifo": "FIFO", "socket": "socket"}
	if os.Geteuid() == 0 { // only root makes devices; others meet one only behind a link, which leads outside
		if err := unix.Mknod(filepath.Join(root, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Fatal(err)
		}
		want["zero"] = "device"
	}
	for rel, kind := range want {
		var nr *NotRegularError
		if _, err := f.ReadFile(rel, 100); !errors.As(err, &nr) || nr.Kind != kind || nr.Path != rel {
			t.Errorf("%s: %v, want kind %s", rel, err, kind)
		}
	}
	for _, rel := range []string{"dir", "fifo"} {
		var nr *NotRegularError
		if err := f.WriteFile(rel, nil); !errors.As(err, &nr) || nr.Kind != want[rel] {
			t.Errorf("writing %s: %v", rel, err)
		}
	}
}

func sparse(t testing.TB, path string, size int64) {
	t.Helper()
	write(t, path, "")
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func TestStateIsUnreadable(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".tether/tether.db"), "SECRET")
	write(t, filepath.Join(root, "state/db"), "SECRET")
	write(t, filepath.Join(root, "file"), "")
	for name, target := range map[string]string{"db": ".tether/tether.db", "dir": ".tether", "s": "state/db"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, _ := jail(t, Policy{Root: root, State: filepath.Join(root, "state")})
	var pe *ProtectedError
	for _, rel := range []string{".tether/tether.db", "state/db", "db", "s", "dir/tether.db", "./.tether/tether.db", "x/../.tether/tether.db"} {
		if data, err := f.ReadFile(rel, 0); len(data) > 0 || !errors.As(err, &pe) {
			t.Errorf("%s: %q, %v", rel, data, err)
		}
	}
	for _, rel := range []string{".tether", "state", "dir"} {
		if _, err := f.ReadDir(rel); !errors.As(err, &pe) {
			t.Errorf("%s: %v", rel, err)
		}
	}
	entries, err := f.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"db", "dir", "file", "s"}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
}

func TestFS(t *testing.T) {
	f, root := jail(t, Policy{})
	write(t, filepath.Join(root, "a"), "A")
	write(t, filepath.Join(root, "sub/b"), "B")
	write(t, filepath.Join(root, ".tether/x"), "hidden")
	if err := fstest.TestFS(f.FS(), "a", "sub/b"); err != nil {
		t.Error(err)
	}
	if err := unix.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.FS().Open("fifo"); err == nil {
		t.Error("a FIFO was opened")
	}
	if _, err := fs.Stat(f.FS(), ".tether/x"); err == nil {
		t.Error("the state can be seen")
	}
}

func TestWriteFile(t *testing.T) {
	f, root := jail(t, Policy{})
	if err := f.WriteFile("new/deep/file", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(root, "new/deep/file")); got != "one" {
		t.Errorf("got %q", got)
	}
	write(t, filepath.Join(root, "run.sh"), "old")
	if err := os.Chmod(filepath.Join(root, "run.sh"), 0o751); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("./run.sh", nil); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(filepath.Join(root, "run.sh"))
	if err != nil || fi.Mode().Perm() != 0o751 || fi.Size() != 0 {
		t.Errorf("%v, %v; want mode 0751 and no bytes", fi, err)
	}
	if err := f.WriteFile(root+"/abs", []byte("x")); err != nil || read(t, filepath.Join(root, "abs")) != "x" {
		t.Errorf("an absolute path: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*.tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteFileThroughNoLink(t *testing.T) {
	f, root := jail(t, Policy{})
	outside := t.TempDir()
	write(t, filepath.Join(outside, "victim"), "original")
	write(t, filepath.Join(root, "dir/file"), "inner")
	for name, target := range map[string]string{"out": outside, "victim": filepath.Join(outside, "victim"), "inner": "dir", "file": "dir/file", "hooks": ".git/hooks"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, rel := range []string{"out/victim", "out/new", "out/a/b", "victim", "inner/new", "file", "hooks/post-checkout"} {
		var nr *NotRegularError
		if err := f.WriteFile(rel, []byte("evil")); !errors.As(err, &nr) || nr.Kind != "link" {
			t.Errorf("%s: %v", rel, err)
		}
	}
	for _, rel := range []string{"../x", "/etc/x", "dir/../../x"} {
		if err := f.WriteFile(rel, nil); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v", rel, err)
		}
	}
	var nr *NotRegularError
	if err := f.WriteFile("dir/file/x", nil); !errors.As(err, &nr) || err.Error() != "dir/file is a file and no folder, not a file" && nr.Path != "dir/file" {
		t.Errorf("a file as a folder: %v", err)
	}
	if got := read(t, filepath.Join(outside, "victim")); got != "original" {
		t.Errorf("the victim is now %q", got)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("made outside: %v", entries)
	}
	if got := read(t, filepath.Join(root, "dir/file")); got != "inner" || exists(filepath.Join(root, "dir/new")) {
		t.Errorf("written through an inner link: %q", got)
	}
}

func TestProtectedPaths(t *testing.T) {
	f, root := jail(t, Policy{})
	for _, rel := range []string{".git/config", ".git", "sub/.git/hooks/x", ".GIT/config", ".tether/x", "tether.toml", ".vscode/tasks.json", ".claude/x",
		".mcp.json", ".envrc", ".gitmodules", "./.git/config", "a/../tether.toml", root + "/.git/x"} {
		var pe *ProtectedError
		if err := f.WriteFile(rel, nil); !errors.As(err, &pe) || pe.Reason == "" {
			t.Errorf("%s: %v", rel, err)
		}
	}
	for _, rel := range []string{".github/workflows/x.yml", ".gitignore", "sub/tether.toml", "git", ".editorconfig"} {
		if err := f.WriteFile(rel, nil); err != nil {
			t.Errorf("%s: %v", rel, err)
		}
	}
	ro, _ := jail(t, Policy{Root: root, Profile: ReadOnly})
	var pe *ProtectedError
	if err := ro.WriteFile("file", nil); !errors.As(err, &pe) {
		t.Errorf("read-only: %v", err)
	}
}

// A reader sees the old or the new contents, never a part.
func TestWriteFileIsAtomic(t *testing.T) {
	f, root := jail(t, Policy{})
	texts := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	if err := f.WriteFile("file", []byte(texts[0])); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		var err error
		for i := range 20 {
			err = errors.Join(err, f.WriteFile("file", []byte(texts[i%2])))
		}
		done <- err
	}()
	for {
		if data := read(t, filepath.Join(root, "file")); data != texts[0] && data != texts[1] {
			t.Fatalf("a reader saw %d bytes", len(data))
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestSnapshot(t *testing.T) {
	f, root := jail(t, Policy{})
	for _, name := range []string{"same", "edited", "gone", "mode", "sub/edited", ".git/x", "node_modules/x", ".tether/x", "touched"} {
		write(t, filepath.Join(root, name), "text")
	}
	before := f.Snapshot(t.Context())
	if f.Snapshot(t.Context()).Sum() != before.Sum() {
		t.Error("nothing has changed, and the sum is another one")
	}
	if changed := before.Changed(f.Snapshot(t.Context())); len(changed) != 0 || !before.Complete() {
		t.Errorf("nothing happened, but %q", changed)
	}
	tickOver(t, filepath.Join(root, "touched"))
	for _, name := range []string{"edited", "sub/edited", ".git/x", "node_modules/x", ".tether/x", "new/file"} {
		write(t, filepath.Join(root, name), "longer text")
	}
	old := time.Now().Add(-time.Hour)
	write(t, filepath.Join(root, "touched"), "TEXT")
	if err := errors.Join(os.Chtimes(filepath.Join(root, "touched"), old, old), os.Remove(filepath.Join(root, "gone")), os.Chmod(filepath.Join(root, "mode"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"empty", "new/inner"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := before.Changed(f.Snapshot(t.Context()))
	if f.Snapshot(t.Context()).Sum() == before.Sum() {
		t.Error("much has changed, and the sum is the same")
	}
	if want := []string{"edited", "empty/", "gone", "mode", "new/file", "new/inner/", "sub/edited", "touched"}; !slices.Equal(got, want) {
		t.Errorf("changed %q, want %q", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s := f.Snapshot(ctx); s.Complete() || len(before.Changed(s)) > len(got) {
		t.Error("a snapshot that was cut says that it is complete, or that files are gone")
	}
}

// tickOver waits until the clock of the file system has gone on since a file was written.
func tickOver(t *testing.T, path string) {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(t.TempDir(), "probe")
	until(t, "the file system's clock goes on", func() bool {
		write(t, probe, "x")
		now, err := os.Stat(probe)
		return err == nil && now.ModTime().After(fi.ModTime())
	})
}

func BenchmarkSnapshot(b *testing.B) {
	f, root := jail(b, Policy{})
	for d := range 50 {
		for n := range 20 {
			write(b, filepath.Join(root, "d"+string(rune('a'+d%26))+string(rune('a'+d/26)), "f"+string(rune('a'+n))), "text")
		}
	}
	for b.Loop() {
		f.Snapshot(b.Context())
	}
}
