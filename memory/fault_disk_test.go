//go:build linux

package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Fault 4: each commit is on the disk before it is acknowledged. Whether the
// disk then keeps it is the disk's word; that it was asked is counted.
func TestCommitsAreSynced(t *testing.T) {
	dir := t.TempDir()
	count := func(events int) int {
		trace := filepath.Join(dir, fmt.Sprint(events))
		cmd := exec.Command("strace", "-f", "-e", "trace=fsync,fdatasync", "-o", trace,
			os.Args[0], filepath.Join(dir, fmt.Sprint("state", events), "tether.db"), "a", fmt.Sprint(events))
		cmd.Env = append(os.Environ(), roleEnv+"=append")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "sync(")
	}
	const events = 50
	without, with := count(0), count(events)
	t.Logf("%d syncs for %d commits; %d without any", with, events, without)
	if with-without < events {
		t.Errorf("%d syncs for %d commits", with-without, events)
	}
}

// smallDisk runs the test once more with a disk of that many bytes at the
// returned place; "" is the run outside.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	if dir := inside(t, "--size", fmt.Sprint(size), "--tmpfs"); dir != "" {
		return filepath.Join(dir, "state", "tether.db")
	}
	return ""
}

// occupy takes all but free bytes of the small disk.
func occupy(t *testing.T, free int64) (give func()) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(os.Getenv(insideEnv), &st); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(os.Getenv(insideEnv), "other"))
	if err == nil {
		err = syscall.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-free)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			t.Error(err)
		}
	}
}

// fillUp appends until the disk is full and returns the error and how many were
// acknowledged.
func fillUp(t *testing.T, s *Store) (int64, error) {
	t.Helper()
	n := int64(0)
	for _, size := range []int{10000, 1} { // then not even a small one fits
		for err := error(nil); err == nil; n++ {
			if _, err = s.Append(t.Context(), "a", "x", strings.Repeat("x", size)); err != nil && size == 1 {
				return n, err
			}
			if n > 10000 {
				t.Fatal("the disk does not get full")
			}
		}
		n--
	}
	return n, nil
}

// Fault 5: the disk of the database is full.
func TestDiskFull(t *testing.T) {
	path := smallDisk(t, 32<<20)
	if path == "" {
		return
	}
	s := at(t, path)
	ballast := filepath.Join(filepath.Dir(path), "ballast")
	if info, err := os.Stat(ballast); err != nil || info.Size() != ballastSize {
		t.Fatalf("no ballast: %v", err)
	}
	give := occupy(t, 2<<20)
	n, err := fillUp(t, s)
	fails(t, err, "full", "; free some space and try again: nothing was half-written")
	if strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("more than a line: %q", err)
	}
	sound(t, s, n)
	if err := s.Mark(t.Context()); err != nil {
		t.Errorf("mark: %v", err)
	}
	// The stop is recorded, in the room that was kept for it.
	add(t, s, "a", KindStop, map[string]any{"stop": "error", "exit": 1})
	if _, err := os.Stat(ballast); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ballast is still there: %v", err)
	}
	sound(t, s, n+1)
	// When there is room again it goes on, without being opened anew.
	give()
	add(t, s, "b", KindStart, map[string]string{"task": "next"})
	sound(t, s, n+2)
	if _, err := os.Stat(ballast); err != nil {
		t.Errorf("no new ballast: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if r, err := Inspect(t.Context(), path); err != nil || len(r.Problems) > 0 || r.Events != n+2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Fault 5: no ballast, and nothing is half-written all the same.
func TestTinyDisk(t *testing.T) {
	path := smallDisk(t, 4<<20)
	if path == "" {
		return
	}
	s := at(t, path)
	n, err := fillUp(t, s)
	fails(t, err, "full", "free some space")
	if _, err := s.Append(t.Context(), "a", KindStop, "x"); err == nil {
		n++ // so little may fit
	}
	sound(t, s, n)
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	sound(t, at(t, path), n)
}

// Fault 5: a repair that has no room for the copy changes nothing.
func TestRepairWithoutRoom(t *testing.T) {
	path := smallDisk(t, 16<<20)
	if path == "" {
		return
	}
	s := at(t, path)
	for range 20 {
		add(t, s, "a", "x", strings.Repeat("x", 10000))
	}
	s.Close()
	change(t, path, func(b []byte) []byte { clear(b[8192:12288]); return b })
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	occupy(t, 64<<10)
	_, err = Repair(t.Context(), path)
	fails(t, err, "nothing was changed", "no space left", "free some space")
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "copying-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Fault 7: a read-only file system. A store that was closed, one that was killed
// with its shared memory left there, and one that has only its log left.
func TestReadOnlyDisk(t *testing.T) {
	if there := os.Getenv(insideEnv); there != "" {
		for _, name := range []string{"closed", "killed", "unshared"} {
			readsButDoesNotWrite(t, filepath.Join(there, name, "tether.db"))
		}
		return
	}
	dir := t.TempDir()
	for _, name := range []string{"closed", "killed", "unshared"} {
		path := filepath.Join(dir, name, "tether.db")
		s := at(t, path)
		observe(t, s, "a", "obs_1", "a needle in the hay")
		s.Close()
		if name == "closed" {
			continue
		}
		c := start(t, "append", path, "a", "2", "and wait")
		c.says(t, "done")
		c.kill(t)
		if name == "unshared" {
			if err := os.Remove(path + "-shm"); err != nil {
				t.Fatal(err)
			}
		}
	}
	inside(t, "--ro-bind", dir)
}

func readsButDoesNotWrite(t *testing.T, path string) {
	t.Helper()
	want := int64(1)
	if !strings.Contains(path, "closed") {
		want = 3
	}
	s, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	defer s.Close()
	sound(t, s, want)
	if got := ids(t, s, "a", "needle", 5); len(got) != 1 {
		t.Errorf("%s: found %q", path, got)
	}
	if _, err := s.Events(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "b.db")); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	_, err = s.Append(t.Context(), "a", "x", 1)
	fails(t, err, "read only", "make it and its folder writable, or choose another state directory")
	if r, err := Inspect(t.Context(), path); err != nil || len(r.Problems) > 0 || r.Events != want {
		t.Errorf("%s: %+v, %v", path, r, err)
	}
	// Who wants to write is told so at once.
	w, err := Open(context.Background(), path)
	fails(t, err, path, "read-only file system", "make it and its folder writable, or choose another state directory")
	if err == nil {
		w.Close()
	}
}

// A store that cannot be opened read-write by this user, but read.
func TestReadOnlyMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, err := OpenReadOnly(t.Context(), filepath.Join(dir, "tether.db"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder was made")
	}
	path := filled(t, 1)
	edit(t, path, "PRAGMA user_version = 1")
	_, err = OpenReadOnly(t.Context(), path)
	if old, ok := errors.AsType[*SchemaError](err); !ok || old.Have != 1 || !strings.Contains(err.Error(), "can be written") {
		t.Errorf("got %v", err)
	}
}
