//go:build linux

package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mixed makes a closed store with events of all sizes, some of them indexed, and
// returns what they are.
func mixed(t *testing.T, n int) (path string, want map[int64]Event) {
	t.Helper()
	path = temp(t)
	s := at(t, path)
	for i := range n {
		size := []int{40, 400, 6000}[i%3] // some need pages of their own
		observe(t, s, fmt.Sprint("s", i%3), fmt.Sprint("obs_", i), strings.Repeat(fmt.Sprintf("word%d ", i), size/8))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, everything(t, path)
}

// everything reads all events, whatever their sessions, by their numbers.
func everything(t *testing.T, path string) map[int64]Event {
	t.Helper()
	s, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found, err := events(t.Context(), s.reader, "1 ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int64]Event{}
	for _, e := range found {
		all[e.Seq] = e
	}
	return all
}

// repaired repairs the store and checks that it is sound, that each event is as
// it was or is told to be lost, and that the damaged file is kept.
func repaired(t *testing.T, path string, want map[int64]Event) Repaired {
	t.Helper()
	damaged, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Repair(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.After.Problems) > 0 {
		t.Fatalf("after the repair: %+v", done.After.Problems)
	}
	if len(done.Before.Problems) == 0 {
		return done
	}
	if kept, err := os.ReadFile(filepath.Join(done.Aside, "tether.db")); err != nil || !bytes.Equal(kept, damaged) {
		t.Errorf("the damaged file was not kept: %v", err)
	}
	lost := int64(0)
	for seq, e := range everything(t, path) {
		was, ok := want[seq]
		switch {
		case e.Kind == KindLost:
			var gap struct{ From, To int64 }
			if err := json.Unmarshal(e.Body, &gap); err != nil {
				t.Error(err)
			}
			lost += gap.To - gap.From + 1
		case !ok || fmt.Sprint(e) != fmt.Sprint(was):
			t.Errorf("event %d is %.80s", seq, fmt.Sprint(e))
		}
	}
	if lost != done.Lost {
		t.Errorf("%d events are lost, %d were told", lost, done.Lost)
	}
	return done
}

// Fault 12: any page of the file is zeroed. Whatever was not on it is saved.
func TestEachPageZeroed(t *testing.T) {
	path, want := mixed(t, 12)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	refused, most := 0, int64(0)
	for at := int64(4096); at < info.Size(); at += 4096 {
		damaged := copyState(t, path)
		change(t, damaged, func(b []byte) []byte { clear(b[at : at+4096]); return b })
		was, err := os.ReadFile(damaged)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), damaged)
		if err == nil { // a page of what is derived
			s.Close()
		} else {
			refused++
			wantDamage(t, err, damaged, was)
		}
		done := repaired(t, damaged, want)
		most = max(most, done.Lost)
		if (done.Saved > 0 || done.Lost > 0) && done.Saved+done.Lost != int64(len(want)) {
			t.Errorf("page %d: %d saved and %d lost of %d", at/4096+1, done.Saved, done.Lost, len(want))
		}
	}
	t.Logf("%d pages, %d of them noticed at open; at most %d of %d events lost", info.Size()/4096-1, refused, most, len(want))
	if refused == 0 || most == 0 || most >= int64(len(want)) {
		t.Error("that is not what a zeroed page does")
	}
}

// wantDamage checks that the error tells of the damage, and that there is a copy
// and the file is as it was.
func wantDamage(t *testing.T, err error, path string, was []byte) {
	t.Helper()
	damage, ok := errors.AsType[*DamageError](err)
	if !ok {
		t.Fatalf("got %v, want a *DamageError", err)
	}
	fails(t, err, path, "it is damaged: ", damage.Copy, "tether fsck --repair")
	if damage.Copy == "" {
		t.Error("there is no copy")
	}
	for _, file := range []string{path, filepath.Join(damage.Copy, "tether.db")} {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, was) {
			t.Errorf("%s is not the file as it was: %v", file, err)
		}
	}
}

// Fault 13: the beginning of the file is destroyed, or it is no database at all.
func TestHeaderDestroyed(t *testing.T) {
	path, want := mixed(t, 20)
	for name, how := range map[string]func([]byte) []byte{
		"zeroed":  func(b []byte) []byte { clear(b[:4096]); return b },
		"garbage": func(b []byte) []byte { copy(b, bytes.Repeat([]byte("?!"), 2048)); return b },
		"version": func(b []byte) []byte { b[15] = '4'; return b },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"text":    func([]byte) []byte { return bytes.Repeat([]byte("not a database. "), 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			damaged := copyState(t, path)
			change(t, damaged, how)
			was, err := os.ReadFile(damaged)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // again: the copy is there already
				_, err = Open(t.Context(), damaged)
				wantDamage(t, err, damaged, was)
			}
			if dirs, _ := filepath.Glob(filepath.Join(filepath.Dir(damaged), "damaged-*")); len(dirs) != 1 {
				t.Errorf("copies: %q", dirs)
			}
			if r, err := Inspect(t.Context(), damaged); err != nil || !r.Has(PartFile) {
				t.Errorf("fsck: %+v, %v", r, err)
			}
			done := repaired(t, damaged, want)
			if name != "cut" && name != "text" && done.Saved != int64(len(want)) {
				t.Errorf("%d of %d saved", done.Saved, len(want))
			}
		})
	}
}

// Fault 13: the file is empty or gone. A new, empty database would hide it.
func TestNoNewDatabase(t *testing.T) {
	path := filled(t, 3)
	for name, take := range map[string]func(path string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.Truncate(path, 0) },
	} {
		there := copyState(t, path)
		if err := take(there); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), there)
		fails(t, err, "the database is "+name+", but event 3 had been acknowledged")
		r, err := Inspect(t.Context(), there)
		if err != nil || !r.Has(PartFile) || !strings.Contains(r.Problems[0].Fix, "from a backup") {
			t.Errorf("fsck: %+v, %v", r, err)
		}
		if info, err := os.Stat(there); name == "empty" && (err != nil || info.Size() > 0) || name == "gone" && err == nil {
			t.Errorf("something was made: %v", err)
		}
	}
}

// Fault 14: one bit of a text is another one. SQLite finds nothing.
func TestBitInText(t *testing.T) {
	path, want := mixed(t, 10)
	change(t, path, func(b []byte) []byte {
		b[bytes.Index(b, []byte(`"output":"word7`))+12] ^= 1
		return b
	})
	r, err := Inspect(t.Context(), path)
	if err != nil || !r.Has(PartLog) || r.Has(PartFile) || !strings.Contains(r.Problems[0].What, "event 8 is not as it was written") || r.Events != 7 {
		t.Errorf("fsck: %+v, %v", r, err)
	}
	if done := repaired(t, path, want); done.Saved != 9 || done.Lost != 1 {
		t.Errorf("%d saved, %d lost", done.Saved, done.Lost)
	}
}

// Fault 15: the full-text index is not that of the events.
func TestIndexDamage(t *testing.T) {
	path, want := mixed(t, 12)
	for _, statement := range []string{
		"DELETE FROM chunk_fts_idx", // of a small index nobody needs it
		"DELETE FROM chunk_fts_data WHERE id > 10",
		"DELETE FROM chunk_fts_data",
		"UPDATE chunk_fts_data SET block = zeroblob(length(block)) WHERE id > 10",
		"DELETE FROM chunk_fts_docsize WHERE id = 2",
		"DELETE FROM chunk WHERE id = (SELECT max(id) FROM chunk)",
		"UPDATE chunk SET text = 'word1 of another event' WHERE id = 3",
		"UPDATE chunk SET ref = 'obs_2', session = 's2' WHERE id = 1",
		"DELETE FROM chunk",
	} {
		t.Run(statement, func(t *testing.T) {
			damaged := copyState(t, path)
			edit(t, damaged, statement)
			r, err := Inspect(t.Context(), damaged)
			harmless := statement == "DELETE FROM chunk_fts_idx"
			if err != nil || r.Has(PartIndex) == harmless || r.Has(PartFile, PartLog, PartHead) {
				t.Fatalf("fsck: %+v, %v", r, err)
			}
			found := copyState(t, damaged)
			if done := repaired(t, damaged, want); done.Lost > 0 || done.Saved > 0 {
				t.Errorf("%d lost, %d saved of what was not damaged", done.Lost, done.Saved)
			}
			finds(t, damaged)
			// Without a repair: what open or a search notices is made again, and
			// a text of another event never comes back.
			s := at(t, found)
			for i := range 12 {
				for _, id := range ids(t, s, "", fmt.Sprint("word", i), 50) {
					if id != fmt.Sprintf("s%d/obs_%d", i%3, i) {
						t.Errorf("word%d is found in %s", i, id)
					}
				}
			}
		})
	}
}

// finds checks that each event of mixed is found by its own word, alone.
func finds(t *testing.T, path string) {
	t.Helper()
	s := at(t, path)
	for i := range 12 {
		want := fmt.Sprintf("s%d/obs_%d", i%3, i)
		if got := ids(t, s, "", fmt.Sprint("word", i), 50); len(got) != 1 || got[0] != want {
			t.Errorf("word%d: got %q, want %s", i, got, want)
		}
	}
}
