//go:build linux

package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
