package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A DamageError says that a store is not as SQLite or the log left it. Nothing
// is written to it any more.
type DamageError struct {
	Cause string
	Copy  string // folder with a copy of the files as they were found; "" if none could be made
	err   error
}

// Unwrap is what was found: an error of SQLite, or a *ChainError.
func (e *DamageError) Unwrap() error { return e.err }

// damageOf is err as a *DamageError; nil if it says nothing about damage.
func damageOf(err error) *DamageError {
	if e, ok := errors.AsType[*DamageError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*ChainError](err); ok {
		return &DamageError{Cause: e.what(), err: err}
	}
	if damages(err) {
		return &DamageError{Cause: err.Error(), err: err}
	}
	return nil
}

// Error says what is wrong, where the copy is, and what can be done.
func (e *DamageError) Error() string {
	kept := "nothing was written to it"
	if e.Copy != "" {
		kept += ", and a copy is in " + e.Copy
	}
	return fmt.Sprintf("it is damaged: %s\n%s\nsee what is lost with: tether fsck, save the rest with: tether fsck --repair", e.Cause, kept)
}

// checkTime is how long a store is looked at when it is opened. A small one is
// looked at whole, of a large one as much as that: the rest is for tether fsck.
const checkTime = 10 * time.Millisecond

// samples is how many of the newest events, of the others and of the texts of the
// index are checked beside the structure.
const samples = 16

// small is how many events a store has that is checked whole, in about two
// milliseconds: two short sessions, or one.
const small = 64

// sample looks for damage, in a bounded time. What is only derived is made
// again at once.
func (s *Store) sample(ctx context.Context) error {
	enough := time.Now().Add(checkTime)
	limited, cancel := context.WithDeadline(ctx, enough.Add(-checkTime/2))
	defer cancel()
	bad, err := quickCheck(limited, s.reader, "'event'")
	switch {
	case len(bad) > 0:
		return &DamageError{Cause: strings.Join(bad, "; ")}
	case ctx.Err() != nil:
		return ctx.Err()
	case damages(err):
		return err
	}
	if err := s.sampleEvents(ctx, enough); err != nil {
		return err
	}
	if bad, err := s.sampleIndex(ctx, enough); bad && err == nil || damages(err) {
		return s.Rebuild(ctx)
	}
	return nil
}

// damages reports whether err says that the file is no sound database.
func damages(err error) bool {
	code := sqliteCode(err)
	return code == sqliteCorrupt || code == sqliteNotADB || lacksTable(err)
}

// lacksTable reports whether err says that a table is gone, for which SQLite has
// no code of its own. Every store has all of them from its first transaction on.
func lacksTable(err error) bool {
	return sqliteCode(err) == sqliteError && strings.Contains(err.Error(), "no such table")
}

// quickCheck returns what SQLite says about the structure of the file, or of the
// table that what names; nothing if it is sound. An error means that there was no time, or no way, to look.
func quickCheck(ctx context.Context, db queryer, what string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "PRAGMA quick_check("+what+")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var bad []string
	for rows.Next() {
		line := ""
		if err := rows.Scan(&line); err != nil {
			return bad, err
		}
		line = strings.TrimPrefix(strings.Join(strings.Fields(line), " "), "*** in database main *** ")
		if line != "ok" {
			bad = append(bad, line)
		}
	}
	return bad, rows.Err()
}

// onlyIndex reports whether all that SQLite complains of is the full-text index.
func onlyIndex(bad []string) bool {
	for _, line := range bad {
		if !strings.Contains(line, "FTS5 table") && !strings.HasPrefix(line, "fts5: ") {
			return false
		}
	}
	return true
}

// sampleEvents checks the newest events against their hashes, however long that
// takes, and as many others if there is time; a small store is checked whole. So
// each event is looked at soon after it was written.
func (s *Store) sampleEvents(ctx context.Context, enough time.Time) error {
	h, err := s.last(ctx)
	if err != nil {
		return err
	}
	if h.seq <= small {
		return s.checkEvents(ctx, 1, h.seq)
	}
	if err := s.checkEvents(ctx, h.seq-samples+1, h.seq); err != nil {
		return err
	}
	for i := 0; i < samples && time.Now().Before(enough); i++ {
		seq := 1 + rand.Int64N(h.seq)
		if err := s.checkEvents(ctx, seq, seq); err != nil {
			return err
		}
	}
	return nil
}

// checkEvents checks the events from first to last, and how the first follows
// the one before it.
func (s *Store) checkEvents(ctx context.Context, first, last int64) error {
	rows, err := s.reader.QueryContext(ctx, chain+" WHERE seq BETWEEN ? AND ? ORDER BY seq", first, last)
	if err != nil {
		return err
	}
	defer rows.Close()
	before := []byte{}
	if first > 1 {
		err := s.reader.QueryRowContext(ctx, "SELECT hash FROM event WHERE seq = ?", first-1).Scan(&before)
		if errors.Is(err, sql.ErrNoRows) {
			return &ChainError{first - 1, "it is missing"}
		}
		if err != nil {
			return err
		}
	}
	seq := first
	for ; rows.Next(); seq++ {
		e, prev, hash, err := scanLink(rows)
		if err != nil {
			return &ChainError{seq, err.Error()}
		}
		if cause := e.fault(seq, before, prev, hash); cause != "" {
			return &ChainError{seq, cause}
		}
		before = hash
	}
	if err := rows.Err(); err != nil || seq > last {
		return err
	}
	return &ChainError{seq, "it is missing"}
}

// opened counts, for each path, the stores of this process that SQLite has open.
var opened = struct {
	sync.Mutex
	count map[string]int
}{count: map[string]int{}}

func countOpen(path string, by int) {
	opened.Lock()
	defer opened.Unlock()
	opened.count[path] += by
}

// setAside copies the files of the store as they are into a folder beside it,
// named after the time of the last change, so that the same state is copied
// once. No store of this process may have them open: closing the copied file
// would drop all locks that the process holds on it.
func (s *Store) setAside() (string, error) {
	opened.Lock()
	defer opened.Unlock()
	if n := opened.count[s.path]; n > 0 {
		return "", fmt.Errorf("%d stores of this process have it open", n)
	}
	newest := time.Time{}
	for _, path := range s.files()[:2] {
		if info, err := os.Lstat(path); err == nil && info.Size() > 0 && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	if info, err := os.Lstat(s.path); err == nil && newest.IsZero() { // both are empty
		newest = info.ModTime()
	}
	dir := s.beside("damaged-" + newest.UTC().Format("20060102T150405.000000"))
	if _, err := os.Lstat(dir); err == nil {
		return dir, nil
	}
	temp, err := os.MkdirTemp(s.beside(), "copying-")
	if err != nil {
		return "", err
	}
	for _, path := range append(s.files()[:2:2], s.beside(headFile)) {
		if err := copyFile(path, filepath.Join(temp, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", errors.Join(err, os.RemoveAll(temp))
		}
	}
	return dir, os.Rename(temp, dir)
}

// copyFile copies a regular file and puts the copy on the disk.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
