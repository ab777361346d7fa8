package memory

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goroot is where the source of the Go that runs the tests lies: real text,
// half of it English, on every machine that can run them.
func goroot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}

// maxOutput is as large as the output of a command gets.
const maxOutput = 128 << 10

// fill makes n chunks or a few more of the Go files below dirs of the source of
// Go, each an observation as if it had been shown, a hundred to a session. It
// returns the number of chunks. One transaction holds them all: 100,000 commits
// would take minutes.
func fill(t testing.TB, s *Store, n int, dirs ...string) (chunks int) {
	t.Helper()
	root := goroot(t)
	err := s.write(t.Context(), "fill", func(tx *sql.Tx) error {
		files := 0
		each := func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || chunks >= n {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, path)
			files++
			o := Observation{ID: fmt.Sprintf("obs_%d", files), Cmd: "read " + filepath.ToSlash(rel), Output: string(data[:min(len(data), maxOutput)])}
			if err := observeIn(t.Context(), tx, s, fmt.Sprintf("s%d", files/100), o); err != nil {
				return err
			}
			return tx.QueryRow("SELECT coalesce(max(id), 0) FROM chunk").Scan(&chunks)
		}
		for _, dir := range dirs {
			if err := filepath.WalkDir(filepath.Join(root, dir), each); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || chunks < n && n < 1<<30 {
		t.Fatalf("%d chunks of %d: %v", chunks, n, err)
	}
	return chunks
}

func observeIn(ctx context.Context, tx *sql.Tx, s *Store, session string, o Observation) error {
	body, err := encode(o)
	if err != nil {
		return err
	}
	return s.add(ctx, tx, &Event{Session: session, Kind: KindObservation, Body: body})
}
