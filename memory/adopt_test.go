package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// adoptable is a store with a session, and another session's event in its middle.
func adoptable(t *testing.T) (*Store, Session) {
	t.Helper()
	ctx := t.Context()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "state", "tether.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	one, err := s.NewSession(ctx, "task <one> & \u2028", "m")
	other, err2 := s.NewSession(ctx, "other", "m")
	_, err3 := s.Append(ctx, other.ID, "turn", map[string]string{})
	err4 := s.Observe(ctx, one.ID, Observation{ID: "obs_1", Cmd: "ls", Output: "zebra-crossing <b>\u2028\n"})
	_, err5 := s.Append(ctx, one.ID, KindStop, map[string]any{"stop": "done", "exit": 0, "steps": 1})
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	return s, one
}

// TestRecords: a record survives JSON with its proof, and every change of it
// shows.
func TestRecords(t *testing.T) {
	s, one := adoptable(t)
	all, err := s.Records(t.Context(), one.ID)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	for _, r := range all {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false) // or it would not be the body that was hashed
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
		var again Record
		if err := json.Unmarshal(line.Bytes(), &again); err != nil {
			t.Fatal(err)
		}
		again.Session = one.ID
		if fault := again.Fault(); fault != "" || !bytes.Equal(again.Body, r.Body) {
			t.Errorf("after JSON %s\n%s\nis %s", fault, r.Body, again.Body)
		}
		for name, change := range map[string]func(*Record){
			"body": func(r *Record) { r.Body = json.RawMessage(`{}`) }, "kind": func(r *Record) { r.Kind = "turn" },
			"time": func(r *Record) { r.At = r.At.Add(1) }, "number": func(r *Record) { r.Seq++ },
			"session": func(r *Record) { r.Session = "x" }, "hash": func(r *Record) { r.Hash = r.Hash[1:] },
		} {
			changed := again
			if change(&changed); changed.Fault() == "" {
				t.Errorf("a record with another %s is taken", name)
			}
		}
	}
}

// TestAdopt: an adopted session is one like any other, its chain closes, and a
// name that is taken is not used twice.
func TestAdopt(t *testing.T) {
	s, one := adoptable(t)
	ctx := t.Context()
	events, err := s.Events(ctx, one.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.SetSecrets([]string{"zebra-crossing"})
	for _, id := range []string{one.ID, "", "20200101-000000-aaaa"} {
		got, err := s.Adopt(ctx, id, events, "there")
		if err != nil || got.Task != one.Task || got.From != "there" || got.ID == one.ID || id == "20200101-000000-aaaa" && got.ID != id {
			t.Fatalf("%q: %+v, %v", id, got, err)
		}
		listed, err := s.Session(ctx, got.ID)
		if err != nil || listed.Stop != "done" || listed.From != "there" || !listed.Started.Equal(one.Started) {
			t.Errorf("%+v, %v", listed, err)
		}
		o, err := s.Recall(ctx, got.ID, "obs_1")
		if err != nil || o.Cmd != "ls" || strings.Contains(o.Output, "zebra") {
			t.Errorf("%+v, %v", o, err)
		}
	}
	if n, err := s.Verify(ctx); err != nil || n != 14 {
		t.Errorf("%d sound events, %v", n, err)
	}
	for _, bad := range [][]Event{nil, events[1:], {{Kind: KindStart, Body: json.RawMessage(`[]`)}}} {
		if _, err := s.Adopt(ctx, "", bad, ""); err == nil {
			t.Errorf("%v is adopted", bad)
		}
	}
	broken := append(events[:2:2], Event{Kind: KindObservation, Body: json.RawMessage(`{"id":7}`)})
	if _, err := s.Adopt(ctx, "20200101-000000-bbbb", broken, ""); err == nil {
		t.Error("half a session is adopted")
	}
	if left, err := s.Events(ctx, "20200101-000000-bbbb"); err != nil || len(left) != 0 {
		t.Errorf("%d events of it are left, %v", len(left), err)
	}
}

// TestSessionTakenUp: a session whose newest run has not ended has not ended.
func TestSessionTakenUp(t *testing.T) {
	s, one := adoptable(t)
	if _, err := s.Append(t.Context(), one.ID, "resume", map[string]string{}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Session(t.Context(), one.ID); err != nil || got.Stop != "" || got.End != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestHolder: the kernel says who has a session, whatever the lock's file says.
func TestHolder(t *testing.T) {
	s, one := adoptable(t)
	if pid := s.Holder(one.ID); pid != 0 {
		t.Errorf("process %d has a session that nobody has", pid)
	}
	l, err := s.Lock(one.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.beside("lock", one.ID), []byte("1 x 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid := s.Holder(one.ID); pid != os.Getpid() {
		t.Errorf("process %d has the session, want %d", pid, os.Getpid())
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if pid := s.Holder(one.ID); pid != 0 {
		t.Errorf("process %d still has it", pid)
	}
}
