package memory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// OpenReadOnly opens the store at path to be read, also where nothing can be
// written: on a read-only file system, or in somebody else's directory. Every
// method that writes returns an error. It neither makes the file nor brings it
// to the newest schema nor looks for damage: what of a damaged store can be read
// is read.
//
// If there never was a store at path the error wraps fs.ErrNotExist. A schema that is not
// the newest is a *SchemaError.
func OpenReadOnly(ctx context.Context, path string, options ...Option) (*Store, error) {
	s := newStore(path, options)
	s.readOnly = true
	err := s.openReadOnly(ctx)
	if err == nil {
		err = s.readable(ctx)
	}
	if err != nil {
		_ = s.release()
		return nil, s.explain("open", err)
	}
	return s, nil
}

// openReadOnly connects in whichever way the file can be read.
func (s *Store) openReadOnly(ctx context.Context) error {
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	s.path = abs
	if s.file, err = os.Lstat(abs); err != nil {
		if cause := s.remains(true); cause != "" {
			return &DamageError{Cause: cause}
		}
		return err
	}
	if !s.file.Mode().IsRegular() {
		return fmt.Errorf("it is a %s, not a database file; move it away, or name another directory with TETHER_STATE", kindOf(s.file.Mode()))
	}
	// The usual case, and that of a read-only file system on which a writer left
	// its shared memory.
	s.count()
	err = s.connectReader(ctx, address(abs), "mode=ro")
	if code := sqliteCode(err); code != sqliteCantOpen && code != sqliteReadonly {
		return err
	}
	if info, err := os.Lstat(abs + "-wal"); err != nil || info.Size() == 0 {
		// The file is all there is and nobody can write here, so that SQLite
		// needs no shared memory.
		return s.connectReader(ctx, address(abs), "mode=ro", "immutable=1")
	}
	return s.connectCopy(ctx)
}

// connectCopy reads a copy: a write-ahead log that nobody folded in cannot be
// read without shared memory, and that cannot be made here.
func (s *Store) connectCopy(ctx context.Context) error {
	s.closeReader()
	var err error
	if s.copied, err = os.MkdirTemp("", "tether-read-"); err != nil {
		return err
	}
	opened.Lock()
	defer opened.Unlock()
	if n := opened.count[s.path]; n > 0 {
		return fmt.Errorf("%d stores of this process have it open", n)
	}
	to := filepath.Join(s.copied, filepath.Base(s.path))
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(s.path+suffix, to+suffix); err != nil {
			return err
		}
	}
	return s.connectReader(ctx, address(to))
}

// connectReader connects and reads once, which is when SQLite opens the file.
func (s *Store) connectReader(ctx context.Context, name string, options ...string) error {
	if s.reader != nil {
		if err := s.reader.Close(); err != nil {
			return err
		}
	}
	var err error
	if s.reader, err = connect(name, "query_only(1)", options...); err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	s.writer = s.reader // every use of it is refused
	var tables int
	return s.reader.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
}

// closeReader ends what SQLite has open, so that the file can be copied.
func (s *Store) closeReader() {
	_ = s.reader.Close() // it could not even be opened
	s.reader, s.writer = nil, nil
	s.counted = false
	countOpen(s.path, -1)
}

// readable refuses a schema that this tether cannot read, and notes what is
// missing at the end of the log.
func (s *Store) readable(ctx context.Context) error {
	know, err := newestSchema()
	if err != nil {
		return err
	}
	have := 0
	if err := s.reader.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	if have != know {
		return &SchemaError{Have: have, Know: know}
	}
	lost, err := s.compare(ctx, s.reader)
	if !damages(err) { // else it is told when the events are read
		s.lost = lost
		return err
	}
	return nil
}
