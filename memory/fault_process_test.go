//go:build linux

package memory

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Fault 8: another process has the database locked.
func TestHeldByAnother(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	if _, err := s.writer.Exec("PRAGMA busy_timeout = 20"); err != nil {
		t.Fatal(err)
	}
	other := start(t, "hold", path)
	other.says(t, "held")
	s.patience = 200 * time.Millisecond
	_, err := s.Append(t.Context(), "a", "x", 1)
	fails(t, err, "locked", fmt.Sprintf("; process %d (", other.Process.Pid), "wait for it, or stop it")

	// A short wait is none that anybody sees, and nothing is doubled.
	s.patience = patience
	done := make(chan error)
	go func() {
		_, err := s.Append(t.Context(), "a", "x", 2)
		done <- err
	}()
	other.ends(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
	sound(t, s, 1)
	if got, _ := s.Events(t.Context(), "a"); len(got) != 1 || string(got[0].Body) != "2" {
		t.Errorf("got %v", got)
	}
}

// Fault 8: a read never waits for a writer.
func TestReadWhileHeld(t *testing.T) {
	path := filled(t, 3)
	start(t, "hold", path).says(t, "held")
	s, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sound(t, s, 3)
}

// Fault 9: two processes want one session.
func TestOneOwner(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	first := start(t, "lock", path, "20260102-150405-k7qa")
	first.says(t, "locked")
	_, err := s.Lock("20260102-150405-k7qa")
	busy, ok := errors.AsType[*BusyError](err)
	if !ok || busy.PID != first.Process.Pid || time.Since(busy.Since).Abs() > time.Hour {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{fmt.Sprint(first.Process.Pid), "tether show 2026", "tether stop 2026"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	// Another session is free, and the first process is unharmed.
	other, err := s.Lock("20260102-150405-xxxx")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error(err)
	}
	// A halted owner is one: nothing here looks at how old a lock is.
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.SetClock(func() time.Time { return time.Now().Add(48 * time.Hour) })
	if _, err := s.Lock("20260102-150405-k7qa"); err == nil {
		t.Error("taken from a process that is halted")
	}
	first.kill(t)
	again, err := s.Lock("20260102-150405-k7qa")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Lock{again, other} {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "lock", "2*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestLockNames(t *testing.T) {
	s := at(t, temp(t))
	for _, name := range []string{"", ".store", "..", "../x", "a/b", "a\x00"} {
		if l, err := s.Lock(name); err == nil {
			t.Errorf("%q: %v", name, l)
		}
	}
	inMemory := at(t, ":memory:")
	l, err := inMemory.Lock("a")
	if err != nil || l.Release() != nil {
		t.Error(err)
	}
}

// Many goroutines and processes hand one session on: never two have it.
func TestLockIsHandedOn(t *testing.T) {
	s := at(t, temp(t))
	owners := make(chan int, 1)
	owners <- 0
	done := make(chan int)
	for range 4 {
		go func() {
			had := 0
			for had < 50 {
				l, err := s.Lock("a")
				if _, busy := errors.AsType[*BusyError](err); busy {
					continue
				}
				if err != nil {
					t.Error(err)
					break
				}
				if n := <-owners; n != 0 {
					t.Errorf("%d others have it", n)
				}
				owners <- 1
				<-owners
				owners <- 0
				had++
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
			done <- had
		}()
	}
	for range 4 {
		<-done
	}
}

// Fault 10: several processes with sessions of their own write to one database,
// while some of them are halted for a time.
func TestManyWriters(t *testing.T) {
	const writers, each = 8, 500
	path := temp(t) // which the first of them makes
	var all []*child
	for w := range writers {
		all = append(all, start(t, "append", path, fmt.Sprint("s", w), fmt.Sprint(each)))
	}
	s := at(t, path)
	for i, c := range all {
		c.says(t, fmt.Sprint(5+i))
		c.Process.Signal(syscall.SIGSTOP) // it may have the lock
		time.AfterFunc(100*time.Millisecond, func() { c.Process.Signal(syscall.SIGCONT) })
	}
	for _, c := range all {
		c.says(t, "done")
		c.ends(t)
	}
	sound(t, s, writers*each)
	for w := range writers {
		got, err := s.Events(t.Context(), fmt.Sprint("s", w))
		if err != nil || len(got) != each {
			t.Fatalf("session %d: %d events, %v", w, len(got), err)
		}
		for i, e := range got {
			if !strings.HasPrefix(string(e.Body), fmt.Sprintf(`"s%d number %d .`, w, i)) {
				t.Fatalf("session %d: event %d is %.20s", w, i, e.Body)
			}
		}
	}
}

// Fault 11: nothing that a store does drops the lock of another one in the same
// process. Reading a file of the database and closing it would.
func TestLocksAreKept(t *testing.T) {
	path := filled(t, 3)
	s, other := at(t, path), at(t, path)
	if _, err := s.writer.Exec("PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	tx, err := other.writer.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ctx := t.Context()
	read := func() error {
		r, err := OpenReadOnly(ctx, path)
		if err == nil {
			_, err = r.Events(ctx, "a")
			err = errors.Join(err, r.Close())
		}
		return err
	}
	for name, use := range map[string]func() error{
		"inspect": func() error { _, err := Inspect(ctx, path); return ignoreBusy(err) },
		"check":   func() error { _, err := s.Check(ctx); return ignoreBusy(err) },
		"verify":  func() error { _, err := s.Verify(ctx); return err },
		"read":    read,
		"mark":    func() error { return s.Mark(ctx) },
		"backup":  func() error { return s.Backup(ctx, filepath.Join(t.TempDir(), "b.db")) },
		"holder":  func() error { s.holder(); return nil },
		"guard":   s.guard,
		"lock": func() error {
			l, err := s.Lock("a")
			return errors.Join(err, l.Release())
		},
		"aside": func() error {
			if _, err := s.setAside(); err == nil {
				return errors.New("the open files were copied")
			}
			return nil
		},
		"repair": func() error {
			if _, err := Repair(ctx, path); err == nil {
				return errors.New("a store in use was repaired")
			}
			return nil
		},
	} {
		if err := use(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := try(t, path); got != "busy" {
			t.Fatalf("%s dropped the lock: another process finds the database %s", name, got)
		}
	}
	// That this test would notice.
	if _, err := os.ReadFile(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	if got := try(t, path); got != "free" {
		t.Errorf("after the file was read the database is %s", got)
	}
}

// ignoreBusy: the comparison of index and texts asks for the lock that the test
// itself has.
func ignoreBusy(err error) error {
	if sqliteCode(err) == sqliteBusy {
		return nil
	}
	return err
}

// try is what another process finds: "busy" or "free".
func try(t *testing.T, path string) string {
	t.Helper()
	c := exec.Command(os.Args[0], path)
	c.Env = append(os.Environ(), roleEnv+"=try")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// The pools may close every connection that they have. The write-ahead log stays,
// and so nothing looks as if it had been taken away.
func TestAllConnectionsClosed(t *testing.T) {
	s := at(t, temp(t))
	add(t, s, "a", "x", 1)
	for _, pool := range []*sql.DB{s.reader, s.writer} {
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(readers)
	}
	if _, err := os.Lstat(s.Path() + "-wal"); err != nil {
		t.Error(err)
	}
	add(t, s, "a", "x", 2)
	sound(t, s, 2)
}

// Fault 19: the database, or its write-ahead log, is removed or replaced while
// it is open.
func TestTakenAway(t *testing.T) {
	for _, name := range []string{"", "-wal"} {
		for how, take := range map[string]func(path string) error{
			"removed": os.Remove,
			"renamed": func(path string) error { return os.Rename(path, path+".bak") },
			"replaced": func(path string) error {
				return errors.Join(os.Rename(path, path+".bak"), os.WriteFile(path, nil, 0o600))
			},
		} {
			t.Run(how+name, func(t *testing.T) {
				path := temp(t)
				s := at(t, path)
				add(t, s, "a", "x", 1)
				if err := take(path + name); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					_, err := s.Append(t.Context(), "a", "x", 2)
					fails(t, err, "removed or replaced", "start tether again")
				}
			})
		}
	}
}
