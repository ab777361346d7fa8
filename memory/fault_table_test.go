//go:build linux

package memory

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Another program took tables away, or took the number of the schema, or has its
// own tables there: what is derived is made again at open; nothing is written
// into the rest, and every event that is still in the file is saved from it.
func TestTablesGone(t *testing.T) {
	path, want := mixed(t, 6)
	for name, c := range map[string]struct {
		script string
		opens  bool
		gone   int64 // events
	}{
		"passages":  {"DROP TABLE chunk", true, 0},
		"index":     {"DROP TABLE chunk_fts", true, 0},
		"events":    {"DROP TABLE event", false, int64(len(want))},
		"number":    {"PRAGMA user_version = 0", false, 0},
		"elsewhose": {"DROP TABLE chunk_fts; DROP TABLE chunk; DROP TABLE event; CREATE TABLE other (a); PRAGMA user_version = 0", false, int64(len(want))},
	} {
		damaged := copyState(t, path)
		db, err := sql.Open("sqlite", damaged)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(c.script); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		fsck := copyState(t, damaged)
		was, err := os.ReadFile(damaged)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), damaged)
		if c.opens {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := s.NewSession(t.Context(), "more", ""); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		} else {
			wantDamage(t, err, damaged, was)
		}
		done := repaired(t, fsck, want)
		if len(done.Before.Problems) == 0 || done.Lost > c.gone {
			t.Errorf("%s: %d lost of %d, was %+v", name, done.Lost, len(want), done.Before.Problems)
		}
	}
}

// What stands in the place of the head and is no file is not waited for.
func TestHeadIsNoFile(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"folder":         func(p string) error { return os.Mkdir(p, 0o700) },
		"device or pipe": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		path := filled(t, 1)
		head := filepath.Join(filepath.Dir(path), headFile)
		if err := os.Remove(head); err != nil {
			t.Fatal(err)
		}
		if err := put(head); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), path)
		fails(t, err, path, head+" is a "+name, "move it away")
		_, err = Inspect(t.Context(), path)
		fails(t, err, path, head+" is a "+name)
	}
}

// A small store is checked whole each time: which of its events was changed does
// not decide whether that is noticed.
func TestSmallStoreIsCheckedWhole(t *testing.T) {
	path := filled(t, small)
	for seq := range small {
		damaged := copyState(t, path)
		db, err := sql.Open("sqlite", damaged)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("DROP TRIGGER event_no_update; UPDATE event SET at = at + 1 WHERE seq = ?", seq+1); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), damaged)
		fails(t, err, damaged, fmt.Sprintf("event %d is not as it was written", seq+1))
	}
}
