package memory

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// A Repaired says what Repair did.
type Repaired struct {
	Before, After Report
	Aside         string // folder with the files as they were; "" if nothing had to be done
	Saved         int64  // events in the new file; 0 if no new file had to be made
	Lost          int64  // events that had been acknowledged and are not there
}

// Repair mends the store at path as far as it can be. It copies the files aside
// before it changes anything, and it never removes such a copy. Modes are
// tightened; a full-text index is made again; of a damaged database every event
// that can be read is put into a new file, under its old number, and an event of
// the kind KindLost stands in the place of each that cannot. No other process may
// have the store open.
func Repair(ctx context.Context, path string, options ...Option) (Repaired, error) {
	s := newStore(path, options)
	var err error
	if s.path, err = filepath.Abs(path); err != nil {
		return Repaired{}, err
	}
	lock, err := s.exclude()
	if err != nil {
		return Repaired{}, s.explain("repair", err)
	}
	defer lock.Close()
	options = append(options, func(s *Store) { s.presence, s.shared = lock, true })
	done := Repaired{}
	if done.Before, err = Inspect(ctx, path, options...); err != nil || len(done.Before.Problems) == 0 {
		done.After = done.Before
		return done, err
	}
	if err := s.repair(ctx, &done, options); err != nil {
		return done, s.explain("repair", err)
	}
	done.After, err = Inspect(ctx, path, options...)
	return done, err
}

// exclude keeps every other process from the store.
func (s *Store) exclude() (*os.File, error) {
	lock, err := flock(s.beside("lock", ".store"), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.New("another tether has it open; end that first")
	}
	return lock, err
}

func (s *Store) repair(ctx context.Context, done *Repaired, options []Option) error {
	if _, err := os.Lstat(s.path); err != nil {
		return errors.New("there is no database that could be repaired; " + s.fixGone())
	}
	var err error
	if done.Aside, err = s.setAside(); err != nil {
		return fmt.Errorf("nothing was changed, because the files could not be copied aside: %w", err)
	}
	if err := s.tighten(); err != nil {
		return err
	}
	if done.Before.Has(PartFile, PartLog) {
		if err := s.salvage(ctx, done, options); err != nil {
			return err
		}
	}
	// Opening it settles the head. The index is made again if it was that.
	mended, err := Open(ctx, s.path, options...)
	if err != nil {
		return err
	}
	if lost := mended.Lost(); lost != nil && lost.To > 0 {
		done.Lost += lost.To - lost.From + 1
	}
	if done.Before.Has(PartIndex) {
		err = mended.Rebuild(ctx)
	}
	return errors.Join(err, mended.Close())
}

// tighten gives the files the modes that they should have.
func (s *Store) tighten() error {
	for path, mode := range s.modes() {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSymlink != 0 || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(path, info.Mode().Perm()&mode); err != nil {
			return err
		}
	}
	return nil
}

// salvage puts what can be read of the copy aside into a new file, and that into
// the place of the database.
func (s *Store) salvage(ctx context.Context, done *Repaired, options []Option) error {
	old, err := openPages(filepath.Join(done.Aside, filepath.Base(s.path)))
	if err != nil {
		return err
	}
	defer old.Close()
	temp, err := os.MkdirTemp(s.beside(), "repair-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, filepath.Base(s.path))
	to, err := Open(ctx, fresh, options...)
	if err != nil {
		return err
	}
	err = to.fill(ctx, old, done)
	var last head
	if err == nil {
		last, err = to.last(ctx)
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return s.replace(fresh, last)
}

// replace puts the file fresh into the place of the database, whose copy is
// aside. The old write-ahead log goes first: SQLite would apply it to the new
// file.
func (s *Store) replace(fresh string, last head) error {
	for _, path := range s.files()[1:] {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(fresh, s.path); err != nil {
		return err
	}
	// The hashes behind a lost event are new ones. A head that names an event
	// that is not there stays: it tells how many are missing at the end.
	if h, _, err := s.readHead(); err == nil && h.seq <= last.seq && last.seq > 0 {
		return replaceFile(s.beside(headFile), last.String())
	}
	return syncDir(s.beside())
}

// perCommit is how many events are put into the new file at once.
const perCommit = 200

// fill adds the events of old, in their order.
func (s *Store) fill(ctx context.Context, old *pageFile, done *Repaired) error {
	found := old.events()
	end := int64(0)
	for seq := range found {
		end = max(end, seq)
	}
	prev := []byte{}
	for from := int64(1); from <= end; from += perCommit {
		err := s.write(ctx, "fill", func(tx *sql.Tx) (err error) {
			for seq := from; seq < min(from+perCommit, end+1) && err == nil; seq++ {
				e, ok := Event{}, false
				if at, there := found[seq]; there {
					e, ok = old.at(at)
				}
				if !ok {
					e = s.gap(seq)
					done.Lost++
				} else {
					done.Saved++
				}
				prev, err = put(ctx, tx, prev, e)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gap is what stands in the place of an event that cannot be read.
func (s *Store) gap(seq int64) Event {
	return Event{Seq: seq, Kind: KindLost, At: s.now().UTC(), Body: fmt.Appendf(nil, `{"from":%d,"to":%d,"hash":""}`, seq, seq)}
}

// String is the line in the head's file.
func (h head) String() string {
	return fmt.Sprintf("%d %s %s\n", h.seq, hex.EncodeToString(h.hash), h.session)
}
