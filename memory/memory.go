// Package memory keeps what happened: one append-only log of events with a
// hash chain, in SQLite, and a full-text index of what was observed and noted.
// Sessions, search and recall are read from the log or derived from it; the
// index can be thrown away and made again (Rebuild).
//
// A change is acknowledged, by a nil error, only after it is on the disk:
// what was acknowledged survives kill -9 and, if the disk is honest, a power
// cut.
package memory

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"tether/memory/failpoint"
)

// ErrNotFound is returned, wrapped, when no session, observation or note has
// the wanted id.
var ErrNotFound = errors.New("not found")

// A Store is one database file. Its methods may be called from many
// goroutines, and several processes may have the same file open: a writer
// waits up to half a minute for the others.
type Store struct {
	path     string      // absolute, or :memory:
	file     fs.FileInfo // what was opened; nil for :memory:
	wal      fs.FileInfo // its write-ahead log, once there was one; guarded by writer
	writer   *sql.DB     // one connection, so that writes queue here and not in SQLite
	reader   *sql.DB     // a few; the writer itself for :memory:
	anchor   *sql.Conn   // of reader; see moor
	now      func() time.Time
	readOnly bool
	secrets  *strings.Replacer // nil: none
	lost     *LostError        // found at open
	presence *os.File          // tells a repair that the store is in use
	copied   string            // folder of the copy that is read; "" for none
	counted  bool              // in opened
	shared   bool              // presence is somebody else's, to close

	anywhere bool // see AnyFileSystem
	statfs   func(dir string) (uint32, error)
	patience time.Duration
}

// Close marks the head, folds the write-ahead log into the file and closes it.
// The store cannot be used afterwards.
func (s *Store) Close() error {
	err := s.Mark(context.Background())
	return errors.Join(err, s.release())
}

// release gives back what the store holds, also if it was opened only in part.
func (s *Store) release() error {
	var err error
	if s.anchor != nil {
		err = s.anchor.Close()
	}
	if s.reader != nil && s.reader != s.writer {
		err = errors.Join(err, s.reader.Close())
	}
	if s.writer != nil {
		err = errors.Join(err, s.writer.Close())
	}
	if s.counted {
		s.counted = false
		countOpen(s.path, -1)
	}
	if s.presence != nil && !s.shared {
		err = errors.Join(err, s.presence.Close())
	}
	if s.copied != "" {
		err = errors.Join(err, os.RemoveAll(s.copied))
	}
	return err
}

// Path is the file of the store, absolute; ":memory:" for one without.
func (s *Store) Path() string { return s.path }

// SetClock replaces time.Now as the source of event times. The order of events
// never depends on it. Call it before the store is shared.
func (s *Store) SetClock(now func() time.Time) { s.now = now }

// write runs do in one transaction, which is committed if do returns nil. The
// lock of the database is taken at its beginning (_txlock), so that what do
// reads is still true when it writes.
func (s *Store) write(ctx context.Context, what string, do func(*sql.Tx) error) error {
	if s.readOnly {
		return s.explain(what, errReadOnly)
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return s.explain(what, err)
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return s.explain(what, err)
	}
	if err := s.moved(); err != nil {
		return s.explain(what, err)
	}
	return s.explain(what, commit(tx))
}

// commit ends tx: when it returns nil, what tx wrote is on the disk.
func commit(tx *sql.Tx) error {
	if err := failpoint.Here("memory/commit"); err != nil {
		return err
	}
	if failpoint.Bug("ack-before-commit") {
		go tx.Commit()
		return nil
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return failpoint.Here("memory/committed")
}
