package memory

import (
	"bytes"
	"context"
	"encoding/binary"
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
		size := 40 << (i % 9) // up to 10 KB: some need pages of their own
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
	path, want := mixed(t, 25)
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
	if refused == 0 || most == 0 || most > 20 {
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

// crashed is the state of a process that was killed after n acknowledged events,
// each marked, with all of them in the write-ahead log; one more is in the file.
func crashed(t *testing.T, n int) (path string) {
	t.Helper()
	path = filled(t, 1)
	c := start(t, "append", path, "a", fmt.Sprint(n), "and mark")
	c.says(t, "done")
	c.kill(t)
	return path
}

// Fault 16: the write-ahead log is cut, overwritten or has another bit, at the
// border of each frame and beside it.
func TestLogDamage(t *testing.T) {
	const n = 3
	path := crashed(t, n)
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	step := 24 + int(binary.BigEndian.Uint32(wal[8:]))
	tries, short := 0, 0
	for border := 0; border <= len(wal); border = next(border, step) {
		for _, at := range []int{border - 1, border, border + 1} {
			if at < 0 || at > len(wal) {
				continue
			}
			for name, how := range map[string]func([]byte) []byte{
				"cut":     func(b []byte) []byte { return b[:at] },
				"bit":     func(b []byte) []byte { b = append(b, 0); b[at] ^= 0x10; return b },
				"garbage": func(b []byte) []byte { return append(b[:at], bytes.Repeat([]byte{0xa5}, len(b)-at+100)...) },
			} {
				damaged := copyState(t, path)
				change(t, damaged+"-wal", how)
				want := n - commits(wal, step, at)
				if lost := goesOn(t, fmt.Sprintf("%s at %d", name, at), damaged, n+1); lost != want {
					t.Errorf("%s at %d: %d lost, want %d", name, at, lost, want)
				}
				tries++
				short += int(min(want, 1))
			}
		}
	}
	t.Logf("%d damaged logs of %d frames, %d of them with lost events", tries, len(wal)/step, short)
}

// commits counts the transactions whose last frame ends before at.
func commits(wal []byte, step, at int) (n int64) {
	for frame := 32; frame+step <= at; frame += step {
		if binary.BigEndian.Uint32(wal[frame+4:]) != 0 {
			n++
		}
	}
	return n
}

func next(border, step int) int {
	if border == 0 {
		return 32 // the header
	}
	return border + step
}

// goesOn opens a store that had n events and has the first of them, and checks
// that the loss of the others is told, once, and in the log.
func goesOn(t *testing.T, what, path string, n int64) (lost int64) {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return 0
	}
	defer s.Close()
	l := s.Lost()
	have, err := s.Verify(t.Context())
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if l == nil {
		if have != n {
			t.Errorf("%s: %d of %d events, and nothing is said", what, have, n)
		}
		return 0
	}
	lost = l.To - l.From + 1
	if l.To != n || have-1 != n-lost || l.Session != "a" || !strings.Contains(l.Error(), "lost") {
		t.Errorf("%s: %d events, the last of them tells of the loss; %+v", what, have, l)
	}
	again, err := Open(t.Context(), path)
	if err != nil || again.Lost() != nil {
		t.Fatalf("%s: told again, %v", what, err)
	}
	again.Close()
	return lost
}

// Fault 17: the write-ahead log is deleted after a crash.
func TestLogDeleted(t *testing.T) {
	path := crashed(t, 15)
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	r, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Has(PartHead) || r.Has(PartFile, PartLog) || !strings.Contains(r.Problems[0].What, "15 events lost (2 to 16), the last one in session a") {
		t.Errorf("fsck: %+v", r)
	}
	ro, err := OpenReadOnly(t.Context(), path)
	if err != nil || ro.Lost() == nil || ro.Lost().To != 16 {
		t.Fatalf("read only: %v", err)
	}
	ro.Close()
	if lost := goesOn(t, "deleted", path, 16); lost != 15 {
		t.Errorf("%d lost", lost)
	}
	if r, err := Inspect(t.Context(), path); err != nil || len(r.Problems) > 0 {
		t.Errorf("fsck after: %+v, %v", r, err)
	}
}

// Fault 17: it is deleted before anything came to the file.
func TestFirstLogDeleted(t *testing.T) {
	path := temp(t)
	c := start(t, "append", path, "a", "4", "and mark")
	c.says(t, "done")
	c.kill(t)
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if r, err := Inspect(t.Context(), path); err != nil || !r.Has(PartHead) || !strings.Contains(r.Problems[0].What, "4 events lost (1 to 4)") {
		t.Errorf("fsck: %+v, %v", r, err)
	}
	if lost := goesOn(t, "deleted", path, 4); lost != 4 {
		t.Errorf("%d lost", lost)
	}
}

// Fault 17: an older copy was put back, and written to.
func TestOlderCopy(t *testing.T) {
	path := filled(t, 5)
	older := copyState(t, path)
	s := at(t, path)
	for range 3 {
		add(t, s, "a", "x", "newer")
	}
	s.Close()
	change(t, path, func([]byte) []byte { text, _ := os.ReadFile(older); return text })
	edit(t, path, "DROP TRIGGER event_no_update") // any other program would do
	forged := at(t, older)
	for range 4 {
		add(t, forged, "b", "x", "of another history")
	}
	forged.Close()
	change(t, path, func([]byte) []byte { text, _ := os.ReadFile(older); return text })
	s = at(t, path)
	if l := s.Lost(); l == nil || !strings.Contains(l.Error(), "event 8 is not the one that was acknowledged, the last one in session a") {
		t.Errorf("got %v", l)
	}
	s.Close()
	if s := at(t, path); s.Lost() != nil {
		t.Errorf("told again: %v", s.Lost())
	}
}

// A head that cannot be read is no head, and is told.
func TestHeadDamage(t *testing.T) {
	path := filled(t, 3)
	whole, err := os.ReadFile(filepath.Join(filepath.Dir(path), headFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "x", "3", string(whole[:len(whole)-2]), strings.Repeat("\x00", 90), "-1 00 a\n"} {
		damaged := copyState(t, path)
		if err := os.WriteFile(filepath.Join(filepath.Dir(damaged), headFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := at(t, damaged)
		if s.Lost() == nil || !strings.Contains(s.Lost().Error(), "cannot be read") {
			t.Errorf("%q: %v", text, s.Lost())
		}
		if s := at(t, damaged); s.Lost() != nil {
			t.Errorf("%q: told again", text)
		}
	}
}

// The head is marked by several processes and never goes back.
func TestHeadGoesForward(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	var all []*child
	for w := range 3 {
		all = append(all, start(t, "append", path, fmt.Sprint("s", w), "40", "and mark"))
	}
	last := int64(0)
	for range 100 {
		h, there, err := s.readHead()
		if err != nil || there && h.seq < last {
			t.Fatalf("head %d after %d, %v", h.seq, last, err)
		}
		last = max(last, h.seq)
		add(t, s, "a", "x", 1)
		if err := s.Mark(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range all {
		c.says(t, "done")
		c.ends(t)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if h, _, err := s.readHead(); err != nil || h.seq != 220 {
		t.Errorf("head %d, %v; want 220", h.seq, err)
	}
}
