package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The parts of a store in which Check looks for problems.
const (
	PartFile  = "file"  // the database
	PartModes = "modes" // who may read and write it
	PartLog   = "log"   // the events
	PartHead  = "head"  // what had been acknowledged
	PartIndex = "index" // what is derived from the events
)

// A Problem is something that is not as it should be.
type Problem struct {
	Part string // one of the Part constants
	What string // in plain words
	Fix  string // what can be done
}

// A Report is what a check found.
type Report struct {
	Path     string
	Events   int64     // sound ones, counted from the first
	Problems []Problem // none: everything is as it was written
}

func (r *Report) add(part, fix, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{part, fmt.Sprintf(format, args...), fix})
}

// Has reports whether there is a problem in one of the parts.
func (r *Report) Has(parts ...string) bool {
	for _, p := range r.Problems {
		for _, part := range parts {
			if p.Part == part {
				return true
			}
		}
	}
	return false
}

// What can be done, in the words of Problem.
const (
	fixRepair = "tether fsck --repair"
	fixSave   = "tether fsck --repair saves what can be read into a new file and keeps the damaged one"
)

// Inspect checks the store at path without changing it, and also if it is so
// damaged that it cannot be opened. The error is for what kept it from looking:
// there is no store (fs.ErrNotExist), or it must not be read.
func Inspect(ctx context.Context, path string, options ...Option) (Report, error) {
	s := newStore(path, options)
	s.readOnly = true
	var err error
	if s.path, err = filepath.Abs(path); err != nil {
		return Report{Path: path}, err
	}
	r := Report{Path: s.path}
	s.checkModes(&r) // before SQLite gets at the files
	err = s.openReadOnly(ctx)
	defer s.release()
	if gone, ok := errors.AsType[*DamageError](err); ok {
		r.add(PartFile, s.fixGone(), "%s", gone.Cause)
		return r, nil
	}
	switch {
	case damages(err):
		r.add(PartFile, fixSave, "the file is no database any more: %v", err)
		return r, nil
	case err != nil:
		return r, s.explain("check", err)
	}
	if cause := s.remains(false); s.file.Size() == 0 && cause != "" {
		r.add(PartFile, s.fixGone(), "%s", cause)
		return r, nil
	}
	err = s.readable(ctx)
	old, ok := errors.AsType[*SchemaError](err)
	switch {
	case ok && old.Have == 0:
		return r, s.explain("check", s.checkEmpty(ctx, &r))
	case ok && old.Have < old.Know:
		err = s.check(ctx, &r, false)
		return r, err
	case err != nil && !damages(err):
		return r, s.explain("check", err)
	}
	err = s.check(ctx, &r, true)
	return r, err
}

// checkEmpty looks at a database without tables: nothing came to the disk, or
// all of it was in a write-ahead log that is gone. With tables it is no store.
func (s *Store) checkEmpty(ctx context.Context, r *Report) error {
	err := ownTables(ctx, s.reader)
	if alien, ok := errors.AsType[*DamageError](err); ok {
		r.add(PartFile, fixSave, "%s", alien.Cause)
		return nil
	}
	if h, there, _ := s.readHead(); there {
		s.addLost(r, &LostError{From: min(1, h.seq), To: h.seq, Session: h.session})
	}
	return err
}

// fixGone is what can be done without a database.
func (s *Store) fixGone() string {
	return "put it back from a backup, or begin anew by moving the folder away: mv " + quote(filepath.Dir(s.path)) + " " + quote(filepath.Dir(s.path)+".old")
}

// Check reads everything and compares it: the structure of the file, the chain
// of the events, the head beside it, and the full-text index with the events.
// It changes nothing and takes about a second for 10,000 events.
func (s *Store) Check(ctx context.Context) (Report, error) {
	r := Report{Path: s.path}
	s.checkModes(&r)
	err := s.check(ctx, &r, true)
	return r, err
}

// check does so with or without the index, which an older schema lacks.
func (s *Store) check(ctx context.Context, r *Report, index bool) error {
	bad, err := quickCheck(ctx, s.reader, "3")
	if err != nil && !damages(err) {
		return s.explain("check", err)
	}
	if err != nil {
		bad = append(bad, err.Error())
	}
	if len(bad) > 0 && !onlyIndex(bad) {
		r.add(PartFile, fixSave, "its structure is broken: %s", strings.Join(bad, "; "))
	}
	if r.Events, err = s.Verify(ctx); err != nil {
		broken, ok := errors.AsType[*ChainError](err)
		if !ok {
			return err
		}
		r.add(PartLog, fixSave, "%s; the %d before it are sound", broken.what(), broken.Seq-1)
	}
	if err := s.checkHead(ctx, r); err != nil {
		return s.explain("check", err)
	}
	if !index || r.Has(PartFile, PartLog) {
		return nil // the index is made again with the rest
	}
	return s.explain("check", s.checkIndex(ctx, r, bad))
}

// checkModes looks at who may read and write the files.
func (s *Store) checkModes(r *Report) {
	if s.path == ":memory:" {
		return
	}
	all := s.modes()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		mode := all[path]
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			continue
		}
		if bad := s.foreign(path, info, mode); bad != nil {
			r.add(PartModes, bad.Repair, "%s %s", path, bad.Cause)
		}
	}
}

// modes are the paths of the state with the modes that they should have.
func (s *Store) modes() map[string]fs.FileMode {
	all := map[string]fs.FileMode{filepath.Dir(s.path): 0o700, s.beside(headFile): 0o600}
	for _, path := range s.files() {
		all[path] = 0o600
	}
	return all
}

func (s *Store) checkHead(ctx context.Context, r *Report) error {
	if s.file == nil {
		return nil
	}
	lost, err := s.compare(ctx, s.reader)
	if damages(err) {
		return nil // the log's own problem
	}
	if lost != nil {
		s.addLost(r, lost)
	}
	return err
}

func (s *Store) addLost(r *Report, lost *LostError) {
	what, _, _ := strings.Cut(lost.Error(), "\n")
	r.add(PartHead, "nothing brings them back; the next run says so in the log and goes on, and so does "+fixRepair, "%s", what)
}

// checkIndex compares the full-text index with its texts, and those with the
// events.
func (s *Store) checkIndex(ctx context.Context, r *Report, bad []string) error {
	what := strings.Join(bad, "; ")
	for _, look := range []func(context.Context) (string, error){s.textFault, s.termFault} {
		if what != "" {
			break
		}
		var err error
		what, err = look(ctx)
		if damages(err) {
			what, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
	}
	if what != "" {
		r.add(PartIndex, fixRepair+" makes it again from the log; a search may miss things until then", "the full-text index is not that of the events: %s", what)
	}
	return nil
}

// termFault says what SQLite finds when it compares the index with the texts;
// "" if nothing, or if it cannot look: it does so only in a transaction that
// could write.
func (s *Store) termFault(ctx context.Context) (string, error) {
	db := s.writer
	if s.readOnly {
		var err error
		if db, err = connect(address(s.path), "query_only(0)"); err != nil {
			return "", err
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if _, err := db.ExecContext(ctx, "PRAGMA busy_timeout = 500"); err != nil { // half a second: a commit takes a millisecond
			return notHere(err)
		}
	}
	_, err := db.ExecContext(ctx, "INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('integrity-check', 1)")
	return notHere(err)
}

// notHere makes nothing of an error that says that this place cannot be written.
func notHere(err error) (string, error) {
	switch sqliteCode(err) {
	case sqliteReadonly, sqliteCantOpen, sqliteIOErr:
		return "", nil
	}
	return "", err
}
