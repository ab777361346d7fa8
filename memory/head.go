package memory

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// KindLost is the event with which a store goes on after acknowledged events
// were lost. Its body is {"from", "to", "hash"}: the numbers that are missing
// and, if it is known, the hash of the last of them.
const KindLost = "lost"

// headFile holds the number, the hash and the session of an event that was
// acknowledged. It lies beside the database: nothing inside one can tell that
// its newest events are gone with its write-ahead log.
const headFile = "head"

// A head is an event that must be in the log.
type head struct {
	seq     int64
	hash    []byte
	session string
}

// A LostError says that events which had been acknowledged are not in the log.
type LostError struct {
	From, To int64  // their numbers; both 0: nobody can tell
	Session  string // of the last one; "" if it belonged to none, or is unknown
	changed  bool   // they were replaced by others
	hash     []byte
}

// Error says how many events are missing and in which session.
func (e *LostError) Error() string {
	where := ""
	if e.Session != "" {
		where = ", the last one in session " + e.Session
	}
	const next = "\nwhat is there is sound and can be used; check what the session did before you go on with it"
	switch n := e.To - e.From + 1; {
	case e.To == 0:
		return "the file " + headFile + " cannot be read, so nobody can tell whether the newest events are there" + next
	case e.changed:
		return fmt.Sprintf("event %d is not the one that was acknowledged%s: an older copy of the state was put back, or its last part was lost", e.To, where) + next
	case n == 1:
		return fmt.Sprintf("1 event lost (%d)%s: it had been acknowledged and is not in the log", e.To, where) + next
	default:
		return fmt.Sprintf("%d events lost (%d to %d)%s: they had been acknowledged and are not in the log", n, e.From, e.To, where) + next
	}
}

// Lost returns what was missing when the store was opened; nil is nothing, as
// it should be. It is told once: the store then goes on behind an event of the
// kind KindLost.
func (s *Store) Lost() *LostError { return s.lost }

// Mark writes down, beside the database, which event is the newest, so that its
// loss will be noticed. Call it at the end of each step; Close does it too. It
// takes two syncs. A full disk is no error here: an old mark is as true.
func (s *Store) Mark(ctx context.Context) error {
	if s.file == nil || s.readOnly {
		return nil
	}
	err := s.mark(ctx)
	if isFull(err) {
		err = nil
	}
	return s.explain("mark the head of", err)
}

func (s *Store) mark(ctx context.Context) error {
	lock, err := s.alone(ctx)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Close()
	h, err := s.last(ctx)
	if err != nil || h.seq == 0 {
		return err
	}
	return replaceFile(s.beside(headFile), h.String())
}

// alone waits until no other process marks, or an older head could replace a
// newer one. It gives up, with nil, after a while: the other one may be halted.
func (s *Store) alone(ctx context.Context) (*os.File, error) {
	for range 100 { // half a second; a mark takes a few milliseconds
		lock, err := flock(s.beside("lock", ".head"), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return lock, err
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// last is the newest event.
func (s *Store) last(ctx context.Context) (head, error) {
	h := head{}
	err := s.reader.QueryRowContext(ctx, "SELECT seq, hash, session FROM event ORDER BY seq DESC LIMIT 1").
		Scan(&h.seq, &h.hash, &h.session)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return h, err
}

// replaceFile makes text the content of the file at path: after a crash it has
// the old content or the new.
func replaceFile(path, text string) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir puts the names in dir on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readHead reads the head beside the database. There is none in a store whose
// first step has not ended yet.
func (s *Store) readHead() (h head, there bool, err error) {
	path := s.beside(headFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, false, nil
	}
	if err == nil && !info.Mode().IsRegular() { // a pipe would be read for ever
		err = fmt.Errorf("%s is a %s, not a file of tether; move it away", path, kindOf(info.Mode()))
	}
	if err != nil {
		return h, false, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return h, false, err
	}
	var sum string
	n, _ := fmt.Sscan(string(text), &h.seq, &sum, &h.session)
	h.hash, err = hex.DecodeString(sum)
	if n < 2 || err != nil || h.seq < 1 || len(h.hash) != 32 || text[len(text)-1] != '\n' {
		return head{}, true, nil // as if the disk had never got it
	}
	return h, true, nil
}

// compare reports what the head names and the log lacks; nil is nothing.
func (s *Store) compare(ctx context.Context, db rower) (*LostError, error) {
	h, there, err := s.readHead()
	switch {
	case err != nil || !there:
		return nil, err
	case h.seq == 0:
		return &LostError{}, nil
	}
	var last int64
	var hash []byte
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0), (SELECT hash FROM event WHERE seq = ?) FROM event`, h.seq).Scan(&last, &hash)
	lost := &LostError{From: h.seq, To: h.seq, Session: h.session, hash: h.hash}
	switch {
	case err != nil:
		return nil, err
	case last < h.seq:
		lost.From = last + 1
	case string(hash) == string(h.hash):
		return nil, nil
	default:
		lost.changed = true
	}
	told := 0
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM event WHERE kind = 'lost' AND body ->> '$.hash' = ?", hex.EncodeToString(h.hash)).Scan(&told)
	if err != nil || told > 0 {
		return nil, err // it was told, and then the head could not be written
	}
	return lost, nil
}

// A rower is a pool or a transaction.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// settle compares the log with its head. If events are missing it says so in
// the log itself, in the session of the last of them, and goes on from there.
func (s *Store) settle(ctx context.Context) error {
	var err error
	if s.lost, err = s.compare(ctx, s.reader); err != nil || s.lost == nil {
		return err
	}
	err = s.write(ctx, "go on with", func(tx *sql.Tx) error {
		lost, err := s.compare(ctx, tx) // another process may have been here before
		if err != nil || lost == nil {
			return err
		}
		body, err := encode(map[string]any{"from": lost.From, "to": lost.To, "hash": hex.EncodeToString(lost.hash)})
		if err != nil {
			return err
		}
		return s.add(ctx, tx, &Event{Session: lost.Session, Kind: KindLost, Body: body})
	})
	if err != nil {
		return err
	}
	return s.Mark(ctx)
}
