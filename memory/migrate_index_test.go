//go:build linux

package memory

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestIndexOfAnOldStore: a store that was made before the index had passages is
// searched like any other after it was opened.
func TestIndexOfAnOldStore(t *testing.T) {
	path := temp(t)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, name := range []string{"001_event.sql", "002_chunk.sql"} {
		text, err := migrations.ReadFile("migration/" + name)
		if err != nil {
			t.Fatal(err)
		}
		script += string(text)
	}
	edit(t, path, script, "PRAGMA user_version = 2")
	db, err := connect(address(path), "journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	prev := []byte{}
	for i, output := range []string{"a needle", "some hay"} {
		body, err := json.Marshal(Observation{ID: "obs_1", Cmd: "read x", Output: output})
		if err != nil {
			t.Fatal(err)
		}
		e := Event{Seq: int64(i + 1), Session: string(rune('a' + i)), Kind: KindObservation, Body: body}
		sum := e.sum(prev)
		if _, err := db.Exec("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", e.Seq, e.Session, e.Kind, e.At.UnixNano(), string(e.Body), prev, sum); err != nil {
			t.Fatal(err)
		}
		prev = sum
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	s := at(t, path)
	sound(t, s, 2)
	intact(t, s)
	if got := ids(t, s, "", "needle", 5); len(got) != 1 || got[0] != "a/obs_1" {
		t.Errorf("got %q", got)
	}
}
