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
	"time"

	"tether/memory/failpoint"
)

// ErrNotFound is returned, wrapped, when no session, observation or note has
// the wanted id.
var ErrNotFound = errors.New("not found")

// A Store is one database file. Its methods may be called from many
// goroutines, and several processes may have the same file open: a writer
// waits up to five seconds for the others.
type Store struct {
	path   string      // absolute, or :memory:
	file   fs.FileInfo // what was opened; nil for :memory:
	writer *sql.DB     // one connection, so that writes queue here and not in SQLite
	reader *sql.DB     // a few; the writer itself for :memory:
	now    func() time.Time
}

// Close folds the write-ahead log into the file and closes it. The store
// cannot be used afterwards.
func (s *Store) Close() error {
	if s.reader == s.writer {
		return s.writer.Close()
	}
	return errors.Join(s.reader.Close(), s.writer.Close())
}

// SetClock replaces time.Now as the source of event times. The order of events
// never depends on it. Call it before the store is shared.
func (s *Store) SetClock(now func() time.Time) { s.now = now }

// write runs do in one transaction, which is committed if do returns nil. The
// lock of the database is taken at its beginning (_txlock), so that what do
// reads is still true when it writes.
func (s *Store) write(ctx context.Context, what string, do func(*sql.Tx) error) error {
	tx, err := s.writer.BeginTx(ctx, nil)
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
