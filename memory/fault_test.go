//go:build linux

package memory

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fails checks that err names the file, the cause and what to do next.
func fails(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", parts)
		return
	}
	for _, part := range append(parts, "state ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

// edit changes the closed file at path as another program would.
func edit(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// filled makes a store with n events of 100 bytes and closes it.
func filled(t *testing.T, n int) (path string) {
	t.Helper()
	path = temp(t)
	s := at(t, path)
	for i := range n {
		add(t, s, "a", "x", fmt.Sprintf("event number %03d %s", i+1, strings.Repeat(".", 80)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantBad(t *testing.T, path string, seq int64) {
	t.Helper()
	s, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Verify(t.Context())
	bad, ok := errors.AsType[*ChainError](err)
	if !ok || bad.Seq != seq || n != seq-1 {
		t.Errorf("got %d sound, %v; want event %d to be bad", n, err, seq)
	}
	fails(t, err, fmt.Sprintf("event %d is not as it was written", seq), "tether fsck")
}

func TestFlippedByte(t *testing.T) {
	path := filled(t, 50)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(data, []byte("event number 037"))
	data[i+3] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	wantBad(t, path, 37)
}

func TestZeroedPage(t *testing.T) {
	path := filled(t, 500)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := bytes.Index(data, []byte("event number 300")) &^ 4095
	copy(data[page:page+4096], make([]byte, 4096))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Verify(t.Context())
	if bad, ok := errors.AsType[*ChainError](err); !ok || n < 200 || n >= 300 || bad.Seq != n+1 {
		t.Errorf("got %d sound, %v", n, err)
	}
}

func TestTampering(t *testing.T) {
	open := []string{"DROP TRIGGER event_no_update", "DROP TRIGGER event_no_delete"}
	for statement, seq := range map[string]int64{
		"UPDATE event SET body = '\"x\"' WHERE seq = 4":                                                 4,
		"UPDATE event SET at = at + 1 WHERE seq = 4":                                                    4,
		"UPDATE event SET kind = 'y' WHERE seq = 4":                                                     4,
		"UPDATE event SET session = 'b' WHERE seq = 4":                                                  4,
		"UPDATE event SET hash = zeroblob(32) WHERE seq = 4":                                            4,
		"UPDATE event SET prev_hash = x'' WHERE seq = 4":                                                4,
		"DELETE FROM event WHERE seq = 4":                                                               4,
		"DELETE FROM event WHERE seq < 3":                                                               1,
		"INSERT INTO event SELECT 0, session, kind, at, body, prev_hash, hash FROM event WHERE seq = 1": 1,
	} {
		t.Run(statement, func(t *testing.T) {
			path := filled(t, 9)
			edit(t, path, append(open, statement)...)
			wantBad(t, path, seq)
		})
	}
}

func TestAppendOnly(t *testing.T) {
	s := at(t, ":memory:")
	add(t, s, "a", "x", 1)
	for _, statement := range []string{"UPDATE event SET body = '2'", "DELETE FROM event"} {
		if _, err := s.writer.Exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	sound(t, s, 1)
}

func TestNewerSchema(t *testing.T) {
	path := filled(t, 1)
	edit(t, path, "PRAGMA user_version = 99")
	_, err := Open(t.Context(), path)
	want := SchemaError{Have: 99, Know: 3}
	if got, ok := errors.AsType[*SchemaError](err); !ok || *got != want {
		t.Errorf("got %v, want %v", err, want)
	}
	fails(t, err, "99", "3", "use the newer tether")
}

func TestMigrationIsWhole(t *testing.T) {
	path := filled(t, 1)
	s := at(t, path)
	_, err := s.step(t.Context(), 4, func(int) ([]byte, error) {
		return []byte("CREATE TABLE half (a); CREATE TABLE event (a);"), nil
	})
	fails(t, s.explain("open", err), "make schema 4", "already exists")
	var left int
	if err := s.writer.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").Scan(&left); err != nil || left != 0 {
		t.Errorf("half a step is left: %d, %v", left, err)
	}
	sound(t, at(t, path), 1)
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), filepath.Join(file, "tether.db"))
	fails(t, err, file, "not a directory", "choose another state directory")
	_, err = Open(t.Context(), dir)
	fails(t, err, dir, "is a folder")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), link)
	fails(t, err, link, "is a link")
}

func TestNoPermission(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		// Root may write anywhere: this thread gives that up, and ends with
		// its goroutine because it stays locked.
		runtime.LockOSThread()
		if os.Getuid() == 0 {
			syscall.Setfsuid(65534)
		}
		_, err := Open(context.Background(), filepath.Join(dir, "state", "tether.db"))
		done <- err
	}()
	fails(t, <-done, dir, "permission denied", "make it and its folder writable")
}

func TestNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tether.db")
	text := bytes.Repeat([]byte("not a database. "), 1000)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	fails(t, err, path, "not a database", "damaged")
	if got, _ := os.ReadFile(path); !bytes.Equal(got, text) {
		t.Error("the file was changed")
	}
}

func TestFullDisk(t *testing.T) {
	s := at(t, temp(t))
	if _, err := s.writer.Exec("PRAGMA max_page_count = 40"); err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("x", 10000)
	n := int64(0)
	for ; n < 100; n++ {
		if _, err := s.Append(t.Context(), "a", "x", body); err != nil {
			fails(t, err, "full", "free some space")
			break
		}
	}
	sound(t, s, n)
	if _, err := s.writer.Exec("PRAGMA max_page_count = 400"); err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", "x", body)
	sound(t, s, n+1)
}

func TestLockedByAnother(t *testing.T) {
	path := temp(t)
	s, other := at(t, path), at(t, path)
	tx, err := other.writer.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.Exec("PRAGMA busy_timeout = 20"); err != nil {
		t.Fatal(err)
	}
	s.patience = 100 * time.Millisecond
	_, err = s.Append(t.Context(), "a", "x", 1)
	fails(t, err, "locked", fmt.Sprintf("process %d (", os.Getpid()), "0 seconds: wait for it, or stop it")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", "x", 1)
	sound(t, s, 1)
}

func TestFileTakenAway(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	add(t, s, "a", "x", 1)
	if err := os.Rename(path, path+".bak"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Append(t.Context(), "a", "x", 2)
	fails(t, err, "removed or replaced", "start tether again")
}
