//go:build linux

package memory

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A reported is a public report of a store that went wrong, made an input.
type reported struct {
	ID    string
	Input struct {
		Type  string
		Steps []string
		Docs  []string
		Query string
		Bytes string
	}
	Expect struct {
		Outcome string
		Hits    []int
		Entries []string `json:"entries_after"`
		Warn    bool
	}
}

// TestReports runs what others reported about their stores on this one. Rows
// about a resumed history, a server's words and a command's output are tests of
// the packages that have those.
func TestReports(t *testing.T) {
	text, err := os.ReadFile("testdata/bugs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range bytes.Lines(text) {
		var r reported
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		run := map[string]func(*testing.T, reported){"store": reportedLock, "fts": reportedQuery, "session_file": reportedHole}[r.Input.Type]
		if run == nil {
			continue
		}
		ran++
		t.Run(r.ID, func(t *testing.T) { run(t, r) })
	}
	if ran != 4 {
		t.Errorf("%d reports ran", ran)
	}
}

// reportedLock: A has the lock for 300 ms and B writes at the same time.
func reportedLock(t *testing.T, r reported) {
	if want := "A: COMMIT after 300 ms"; !slices.Contains(r.Input.Steps, want) {
		t.Fatalf("steps %q", r.Input.Steps)
	}
	path := temp(t)
	a, b := at(t, path), at(t, path)
	committed := make(chan time.Time, 1)
	err := a.write(t.Context(), "x", func(tx *sql.Tx) error {
		if err := a.add(t.Context(), tx, &Event{Session: "a", Kind: "x", Body: json.RawMessage("1")}); err != nil {
			return err
		}
		go func() {
			if _, err := b.Append(t.Context(), "b", "x", 2); err != nil {
				t.Error(err)
			}
			committed <- time.Now()
		}()
		<-time.After(300 * time.Millisecond)
		return nil
	})
	released := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	if at := <-committed; at.Before(released.Add(-100 * time.Millisecond)) {
		t.Errorf("B was done %v before A", released.Sub(at))
	}
	sound(t, a, 2)
}

// reportedQuery: a query with marks that mean something to FTS5.
func reportedQuery(t *testing.T, r reported) {
	s := at(t, ":memory:")
	for i, doc := range r.Input.Docs {
		observe(t, s, "a", fmt.Sprint("obs_", i), doc)
	}
	var want []string
	for _, i := range r.Expect.Hits {
		want = append(want, fmt.Sprint("a/obs_", i))
	}
	if got := ids(t, s, "a", r.Input.Query, 5); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%q: got %q, want %q", r.Input.Query, got, want)
	}
}

// reportedHole: a record in the middle is zeros after a crash. It is skipped,
// the later ones are there, and the user is told how many were lost.
func reportedHole(t *testing.T, r reported) {
	path := temp(t)
	s := at(t, path)
	for _, record := range strings.Split(strings.TrimSpace(r.Input.Bytes), "\n") {
		body := strings.ReplaceAll(record, "\x00", "?")
		if !json.Valid([]byte(body)) {
			body = `"` + strings.Repeat("a record that becomes zeros ", 10) + `"`
		}
		add(t, s, "a", "x", json.RawMessage(body))
	}
	s.Close()
	change(t, path, func(b []byte) []byte {
		at := bytes.Index(b, []byte("a record that becomes zeros"))
		clear(b[at : at+270])
		return b
	})
	_, err := Open(t.Context(), path)
	fails(t, err, "it is damaged: event 2 is not as it was written", "tether fsck --repair")
	done, err := Repair(t.Context(), path)
	if err != nil || done.Lost != 1 || len(done.After.Problems) > 0 {
		t.Errorf("told of %d lost, %v", done.Lost, err)
	}
	var got []string
	events, err := at(t, path).Events(t.Context(), "a")
	for _, e := range events {
		var record struct{ C string }
		if err := json.Unmarshal(e.Body, &record); err != nil {
			t.Error(err)
		}
		got = append(got, record.C)
	}
	if err != nil || !slices.Equal(got, r.Expect.Entries) {
		t.Errorf("got %q, %v; want %q", got, err, r.Expect.Entries)
	}
}

// FuzzPages: no file, whatever is in it, keeps a salvage from ending, and what
// it finds are events.
func FuzzPages(f *testing.F) {
	path := f.TempDir() + "/tether.db"
	s := at(f, path)
	for i := range 3 {
		add(f, s, "a", "x", strings.Repeat("x", 3000*i))
	}
	s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, []byte("SQLite"), 5, []byte("\x00"))
	f.Add(4096, []byte("\x0d\x00\x00\x7f\xff"), 8192, []byte("\x0d\x00\x00\x00\x02\x00\x00\x0f\xff\x00\x01"))
	f.Add(16, []byte("\x02\x00"), 0, []byte{})
	f.Fuzz(func(t *testing.T, at int, text []byte, at2 int, text2 []byte) {
		damaged := slices.Clone(whole)
		for i, b := range map[int][]byte{at: text, at2: text2} {
			if i >= 0 && i < len(damaged) {
				copy(damaged[i:], b)
			}
		}
		path := t.TempDir() + "/tether.db"
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		pages, err := openPages(path)
		if err != nil {
			t.Fatal(err)
		}
		defer pages.Close()
		for seq, place := range pages.events() {
			if e, ok := pages.at(place); !ok || e.Seq != seq || e.Session != "a" {
				t.Errorf("event %d is %v", seq, e)
			}
		}
	})
}
