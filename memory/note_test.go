package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRecall(t *testing.T) {
	s := at(t, ":memory:")
	ctx := t.Context()
	one, err := s.NewSession(ctx, "first", "")
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.NewSession(ctx, "second", "")
	if err != nil {
		t.Fatal(err)
	}
	want := Observation{ID: "obs_1", Cmd: "cat x", Stdin: "in", Status: 1, Output: "<no> 'x'\x00\n"}
	if err := s.Observe(ctx, one.ID, want); err != nil {
		t.Fatal(err)
	}
	done := add(t, s, one.ID, KindStop, map[string]string{"stop": "done", "task": "first", "report": "it is mended"})
	add(t, s, one.ID, KindStop, 7) // of another shape: no report
	short := one.ID[len(one.ID)-4:]
	for _, id := range []string{short + "/obs_1", one.ID + "/obs_1", one.ID[:len(one.ID)-1] + "/obs_1"} {
		if got, err := s.Recall(ctx, two.ID, id); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", id, got, err)
		}
	}
	if got, err := s.Recall(ctx, one.ID, "obs_1"); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	report := fmt.Sprint("done_", done.Seq)
	if got, err := s.Recall(ctx, one.ID, report); err != nil || got.Output != "it is mended" || got.Cmd != "first" {
		t.Errorf("report: got %+v, %v", got, err)
	}
	for _, id := range []string{"", "obs_2", "done_1", "done_x", "done_99", "' OR 1", "/obs_1", "2/obs_1", "none/obs_1", short + "/", "%/obs_1"} {
		if _, err := s.Recall(ctx, one.ID, id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"obs_1", report} {
		if _, err := s.Recall(ctx, two.ID, id); !errors.Is(err, ErrNotFound) {
			t.Errorf("another session's %s: %v", id, err)
		}
	}
}

// keys are the keys and texts of notes.
func keys(t testing.TB, s *Store, session string) string {
	t.Helper()
	notes, err := s.Notes(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, n := range notes {
		all = append(all, n.Key+"="+n.Text)
	}
	return strings.Join(all, " ")
}

func remember(t testing.TB, s *Store, session, key, text string) {
	t.Helper()
	if n, err := s.Remember(t.Context(), session, key, text); err != nil || n.Key != key || n.Text != text {
		t.Fatalf("%+v, %v", n, err)
	}
}

// TestNotes: they belong to one session, outlive the process, and what is
// forgotten or replaced is found no more but stays in the log.
func TestNotes(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	remember(t, s, "a", "port", "8080")
	remember(t, s, "a", "host", "localhost")
	remember(t, s, "b", "port", "9090")
	remember(t, s, "a", "port", "8081")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = at(t, path)
	if got := keys(t, s, "a"); got != "host=localhost port=8081" {
		t.Errorf("a: %s", got)
	}
	if got := keys(t, s, "b"); got != "port=9090" {
		t.Errorf("b: %s", got)
	}
	if n, err := s.Note(t.Context(), "a", "port"); err != nil || n.Text != "8081" {
		t.Errorf("got %+v, %v", n, err)
	}
	for query, want := range map[string]string{"8080": "", "8081": "a/port", "port": "a/port", "9090": ""} {
		if got := strings.Join(ids(t, s, "a", query, 5), " "); got != want {
			t.Errorf("%s: found %s, want %s", query, got, want)
		}
		hits, err := s.SearchProject(t.Context(), "a", query, 5)
		for _, h := range hits {
			if h.Session != "a" || err != nil {
				t.Errorf("%s: a sees %+v, %v", query, h, err)
			}
		}
	}
	if err := s.Forget(t.Context(), "a", "port"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"port", "none", ""} {
		if err := s.Forget(t.Context(), "a", key); !errors.Is(err, ErrNotFound) {
			t.Errorf("forget %s: %v", key, err)
		}
		if _, err := s.Note(t.Context(), "a", key); !errors.Is(err, ErrNotFound) {
			t.Errorf("recall %s: %v", key, err)
		}
	}
	if got := ids(t, s, "a", "8081", 5); len(got) > 0 {
		t.Errorf("forgotten, and found: %q", got)
	}
	remember(t, s, "a", "port", "8082")
	if got := keys(t, s, "a"); got != "host=localhost port=8082" {
		t.Errorf("a: %s", got)
	}
	intact(t, s)
	sound(t, s, 6)
}

// roleRemember keeps a note in a process of its own.
func roleRemember(args []string) error {
	s, err := Open(context.Background(), args[0])
	if err != nil {
		return err
	}
	if _, err := s.Remember(context.Background(), args[1], args[2], args[3]); err != nil {
		return err
	}
	fmt.Println("kept")
	return s.Close()
}

// TestNoteOfAnotherProcess: a note is there for the next program that opens the
// store.
func TestNoteOfAnotherProcess(t *testing.T) {
	path := temp(t)
	c := start(t, "remember", path, "a", "port", "8080")
	c.says(t, "kept")
	c.ends(t)
	s := at(t, path)
	if n, err := s.Note(t.Context(), "a", "port"); err != nil || n.Text != "8080" {
		t.Errorf("got %+v, %v", n, err)
	}
	if got := ids(t, s, "a", "8080", 5); len(got) != 1 {
		t.Errorf("found %q", got)
	}
}

func TestKeys(t *testing.T) {
	s := at(t, ":memory:")
	for _, key := range []string{"", "two words", "a\nb", strings.Repeat("x", 61), "obs_1", "done_12", "k7qa/obs_1"} {
		_, err := s.Remember(t.Context(), "a", key, "text")
		if _, ok := errors.AsType[*KeyError](err); !ok {
			t.Errorf("%q: %v", key, err)
		}
	}
	if _, err := s.Remember(t.Context(), "a", "key", " \n"); err == nil {
		t.Error("an empty note")
	}
	for _, key := range []string{"größe", "a/b", "obs", "obs_x", `"'%`, "note_1"} {
		remember(t, s, "a", key, "text")
	}
	sound(t, s, 6)
}

// TestOldNotes: notes were once the store's and had no key. They are found in
// the project.
func TestOldNotes(t *testing.T) {
	s := at(t, ":memory:")
	add(t, s, "", KindNote, map[string]string{"text": "the tests need a network"})
	hits, err := s.SearchProject(t.Context(), "a", "network", 5)
	if err != nil || len(hits) != 1 || hits[0].ID != "note_1" {
		t.Errorf("got %+v, %v", hits, err)
	}
	if n, err := s.Note(t.Context(), "a", "note_1"); err != nil || n.Text != "the tests need a network" {
		t.Errorf("got %+v, %v", n, err)
	}
	intact(t, s)
}
