//go:build linux

package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a command leaves for tether itself to read: links to keys under the names that are read at the next start.
func TestPlantedLinksAreNotRead(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".ssh/id_rsa"), "SECRETKEY")
	b := newBox(t, Policy{})
	o := shell(t, b, "rm -f AGENTS.md; ln -s "+home+"/.ssh/id_rsa AGENTS.md; ln -s /etc/shadow notes.md; mkdir .agents; ln -s "+home+"/.ssh .agents/skills; ln -s /proc/self/root/etc/shadow up.md")
	if o.Status != 0 {
		t.Fatalf("%+v", o)
	}
	f := b.Files()
	for _, rel := range []string{"AGENTS.md", "notes.md", ".agents/skills/id_rsa", "up.md"} {
		if data, err := f.ReadFile(rel, 1<<20); !errors.Is(err, ErrOutside) || len(data) > 0 {
			t.Errorf("%s: %q, %v; want ErrOutside", rel, data, err)
		}
		if data, err := fs.ReadFile(f.FS(), rel); err == nil || len(data) > 0 {
			t.Errorf("%s as a file system: %q, %v", rel, data, err)
		}
		if _, err := f.Stat(rel); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: stat: %v; even the size would tell", rel, err)
		}
	}
	if _, err := f.ReadDir(".agents/skills"); !errors.Is(err, ErrOutside) {
		t.Errorf("a folder of keys was listed: %v", err)
	}
}

// A folder that turns into a link and back while tether walks through it leads nowhere, neither to read nor to write.
func TestFolderSwappedForLink(t *testing.T) {
	f, root := jail(t, Policy{})
	outside := t.TempDir()
	write(t, filepath.Join(outside, "file"), "SECRET")
	write(t, filepath.Join(root, "dir/file"), "inner")
	if err := os.Symlink(outside, filepath.Join(root, "other")); err != nil {
		t.Fatal(err)
	}
	stop, swaps := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { swaps <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "dir"), unix.AT_FDCWD, filepath.Join(root, "other"), unix.RENAME_EXCHANGE) == nil {
				n++
			}
		}
	}()
	seen := map[string]int{}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		data, err := f.ReadFile("dir/file", 100)
		if err == nil && string(data) != "inner" {
			t.Fatalf("read %q", data)
		}
		if file, err := f.FS().Open("dir/file"); err == nil {
			if data, _ := io.ReadAll(file); strings.Contains(string(data), "SECRET") {
				t.Fatalf("read %q", data)
			}
			file.Close()
		}
		seen[map[bool]string{true: "read", false: "refused"}[err == nil]]++
		if err := f.WriteFile("dir/new", []byte("text")); err == nil {
			seen["written"]++
		}
	}
	close(stop)
	if n := <-swaps; n < 100 || seen["read"] == 0 || seen["refused"] == 0 {
		t.Errorf("the race was none: %d swaps, %v", n, seen)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 || read(t, filepath.Join(outside, "file")) != "SECRET" {
		t.Errorf("outside there is now %v (%v)", entries, err)
	}
}

// Some files have more in them than their size says: those of /proc, and any that somebody is writing to.
func TestSizeThatLies(t *testing.T) {
	f, err := openFiles(Policy{Root: "/proc/self", Profile: Off}, "")
	if err != nil {
		t.Fatal(err)
	}
	f.policy.Root = "/proc/" + filepath.Base(must(t, func() (string, error) { return os.Readlink("/proc/self") }))
	defer f.root.Close()
	var large *TooLargeError
	if data, err := f.ReadFile("maps", 100); !errors.As(err, &large) || len(data) > 0 || large.Size <= 100 {
		t.Errorf("%d bytes, %v; want a *TooLargeError", len(data), err)
	}
	if data, err := f.ReadFile("stat", 1<<16); err != nil || len(data) == 0 {
		t.Errorf("a small one: %d bytes, %v", len(data), err)
	}
}

func must[T any](t *testing.T, f func() (T, error)) T {
	t.Helper()
	v, err := f()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What the user may not read is an error of the file system's own words, and nothing is made of it.
func TestUnreadable(t *testing.T) {
	f, root := jail(t, Policy{})
	write(t, filepath.Join(root, "file"), "text")
	write(t, filepath.Join(root, "closed/file"), "text")
	for _, name := range []string{"file", "closed"} {
		if err := os.Chmod(filepath.Join(root, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(root, "closed"), 0o755) })
	asOrdinaryUser(t, func() {
		for _, rel := range []string{"file", "closed/file"} {
			if data, err := f.ReadFile(rel, 100); !errors.Is(err, fs.ErrPermission) || len(data) > 0 {
				t.Errorf("%s: %q, %v", rel, data, err)
			}
		}
		if _, err := f.ReadDir("closed"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("listing: %v", err)
		}
		if err := f.WriteFile("closed/new", nil); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("writing: %v", err)
		}
	})
	if data, err := f.ReadFile("file", 100); os.Geteuid() == 0 && (err != nil || string(data) != "text") {
		t.Errorf("root reads %q, %v", data, err)
	}
}

// asOrdinaryUser runs f on a thread whose file accesses are those of a user without rights, where the tests run as root.
func asOrdinaryUser(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// A sparse file of 200 MB is refused by its size, before anything is read, also where the reader names no bound.
func TestHugeFileCostsNothing(t *testing.T) {
	f, root := jail(t, Policy{})
	sparse(t, filepath.Join(root, "large"), 200<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		if _, err := f.ReadFile("large", 1<<20); err == nil {
			t.Fatal("it was read")
		}
		var large *TooLargeError
		if _, err := fs.ReadFile(f.FS(), "large"); !errors.As(err, &large) {
			t.Fatalf("as a file system: %v", err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated to refuse it", n)
	}
}
