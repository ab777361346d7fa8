package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// at opens the store at path for the length of the test.
func at(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func temp(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "tether.db") }

func add(t testing.TB, s *Store, session, kind string, body any) Event {
	t.Helper()
	e, err := s.Append(t.Context(), session, kind, body)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// sound checks the chain and that it has want events.
func sound(t testing.TB, s *Store, want int64) {
	t.Helper()
	if got, err := s.Verify(context.Background()); err != nil || got != want {
		t.Errorf("sound events: got %d, %v; want %d", got, err, want)
	}
}

func TestVersion(t *testing.T) {
	var got string
	if err := at(t, ":memory:").reader.QueryRow("SELECT sqlite_version()").Scan(&got); err != nil {
		t.Fatal(err)
	}
	var a, b, c int
	fmt.Sscanf(got, "%d.%d.%d", &a, &b, &c)
	if a*1000000+b*1000+c < 3051003 {
		t.Errorf("SQLite %s: before 3.51.3 a WAL reset could corrupt the file", got)
	}
}

func TestPragmas(t *testing.T) {
	s := at(t, temp(t))
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000", "foreign_keys": "1",
		"trusted_schema": "0", "mmap_size": "0", "cell_size_check": "1", "query_only": "0",
	} {
		got := ""
		if err := s.writer.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("writer: %s: got %s, %v; want %s", pragma, got, err, want)
		}
	}
	if _, err := s.reader.Exec("DELETE FROM chunk"); sqliteCode(err) != sqliteReadonly {
		t.Errorf("a reader writes: %v", err)
	}
}

func TestAppendAndReopen(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	clock := time.Date(2026, 1, 2, 15, 4, 5, 678, time.FixedZone("", 3600))
	s.SetClock(func() time.Time { return clock })
	first := add(t, s, "a", "request", map[string]string{"text": "<a> & \"b\"\n"})
	add(t, s, "b", "request", nil)
	clock = clock.Add(-24 * time.Hour) // order does not come from the clock
	last := add(t, s, "a", "result", json.RawMessage(` { "n" : 1 } `))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = at(t, path)
	got, err := s.Events(t.Context(), "a")
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	for i, want := range []Event{first, last} {
		if fmt.Sprintf("%+v", got[i]) != fmt.Sprintf("%+v", want) {
			t.Errorf("got %+v, want %+v", got[i], want)
		}
	}
	if got, want := string(first.Body), `{"text":"<a> & \"b\"\n"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if first.Seq != 1 || last.Seq != 3 || !last.At.Equal(clock) {
		t.Errorf("first %+v, last %+v", first, last)
	}
	sound(t, s, 3)
}

func TestAppendRefuses(t *testing.T) {
	s := at(t, ":memory:")
	if _, err := s.Append(t.Context(), "a", "x", make(chan int)); err == nil {
		t.Error("a channel is no JSON")
	}
	if _, err := s.Append(t.Context(), "a", "x", json.RawMessage("{")); err == nil {
		t.Error("half a value is no JSON")
	}
	if _, err := s.Append(t.Context(), "a", "x", strings.Repeat("x", maxBody)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too large: %v", err)
	}
	if _, err := s.Append(t.Context(), "a", KindObservation, "no object"); err == nil {
		t.Error("an observation that is none")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, "a", "x", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	add(t, s, "a", "x", strings.Repeat("x", 1<<20))
	sound(t, s, 1)
}

func TestConcurrentAppends(t *testing.T) {
	for _, path := range []string{":memory:", temp(t)} {
		stores := []*Store{at(t, path)}
		if path != ":memory:" {
			stores = append(stores, at(t, path))
		}
		const workers, each = 8, 100
		var wg sync.WaitGroup
		for w := range workers {
			s := stores[w%len(stores)]
			wg.Go(func() {
				for n := range each {
					if _, err := s.Append(t.Context(), fmt.Sprint(w), "x", n); err != nil {
						t.Error(err)
					}
					if _, err := s.Search(t.Context(), "", "anything", 1); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		sound(t, stores[0], workers*each)
		for w := range workers {
			got, err := stores[0].Events(t.Context(), fmt.Sprint(w))
			if err != nil || len(got) != each {
				t.Fatalf("worker %d: %d events, %v", w, len(got), err)
			}
			for n, e := range got {
				if string(e.Body) != fmt.Sprint(n) {
					t.Fatalf("worker %d: event %d has body %s", w, n, e.Body)
				}
			}
		}
	}
}

func TestOpenAtOnce(t *testing.T) {
	path := temp(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.Append(t.Context(), "a", "x", 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	sound(t, at(t, path), 8)
}

func TestModes(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	add(t, s, "a", "x", 1)
	for name, want := range map[string]os.FileMode{
		filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v; want %v", filepath.Base(name), info.Mode().Perm(), err, want)
		}
	}
	s.Close()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	at(t, path)
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("others can read it: %v", info.Mode())
	}
}

func TestSessions(t *testing.T) {
	s := at(t, ":memory:")
	ctx := t.Context()
	if _, err := s.Session(ctx, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("no session yet: %v", err)
	}
	one, err := s.NewSession(ctx, "first task", "ollama/x")
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.NewSession(ctx, "second", "")
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, one.ID, KindStop, map[string]any{"stop": "gate_failed", "exit": 3})
	add(t, s, one.ID, KindStop, map[string]any{"stop": "done", "exit": 0, "report": "x"})
	one.Stop, one.End = "done", `{"exit":0,"report":"x","stop":"done"}`
	all, err := s.Sessions(ctx, 0)
	if err != nil || len(all) != 2 || all[0] != two || all[1] != one {
		t.Errorf("got %+v, %v; want %+v", all, err, []Session{two, one})
	}
	if some, err := s.Sessions(ctx, 1); err != nil || len(some) != 1 {
		t.Errorf("limit 1: %v, %v", some, err)
	}
	for id, want := range map[string]Session{"": two, one.ID: one, one.ID[:len(one.ID)-1]: one} {
		if got, err := s.Session(ctx, id); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", id, got, err)
		}
	}
	if _, err := s.Session(ctx, "2"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("ambiguous: %v", err)
	}
	if _, err := s.Session(ctx, one.ID+"x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}
