package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"tether/memory/failpoint"
)

// readers is how many searches can run at once beside the writer: a person's
// command, a web page and a few sub-agents; each costs 100 kB.
const readers = 4

// Open opens the store at path, and makes it (mode 0600) and its directory
// (0700) if they are missing. ":memory:" is a store that is gone when closed.
//
// Open writes nothing to a store that is there, but takes its lock once, so
// that a store that cannot be written fails here and not in the middle of a
// task. A store of a newer tether is refused with a *SchemaError.
func Open(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, now: time.Now}
	if err := s.open(ctx); err != nil {
		if s.writer != nil {
			s.writer.Close()
		}
		return nil, s.explain("open", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	name := ":memory:"
	if s.path != name {
		abs, err := filepath.Abs(s.path)
		if err != nil {
			return err
		}
		s.path = abs
		if s.file, err = prepare(abs); err != nil {
			return err
		}
		name = (&url.URL{Scheme: "file", Path: abs}).String()
	}
	var err error
	if s.writer, err = connect(name, "journal_mode(WAL)"); err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	s.reader = s.writer
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if s.file == nil {
		return nil // a second connection would be a second, empty database
	}
	if s.reader, err = connect(name, "query_only(1)"); err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	return nil
}

// connect returns a pool of connections, none of them open yet, that differ
// from SQLite's defaults where those trust the file or the disk too much.
func connect(name, pragma string) (*sql.DB, error) {
	sync := "synchronous(FULL)" // a step takes seconds, a sync a millisecond
	if failpoint.Bug("no-sync") {
		sync = "synchronous(OFF)"
	}
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", // before journal_mode, which may have to wait
		pragma,
		sync,
		"foreign_keys(1)", "trusted_schema(0)", "cell_size_check(1)",
		"mmap_size(0)", // a damaged file must be an error, not a SIGBUS
	}}
	return sql.Open("sqlite", name+"?"+q.Encode())
}

// prepare makes what is missing of the file and its directory, and takes the
// file from other users. It never opens a file that is there: closing it again
// would drop every lock that this process holds on it.
func prepare(path string) (fs.FileInfo, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		defer f.Close()
		return f.Stat()
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is a %s, not a database file", kindOf(info.Mode()))
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return nil, err
		}
	}
	return info, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	}
	return "device or pipe"
}

// moved reports whether the file was removed or replaced since it was opened.
// SQLite would go on acknowledging writes that nobody can ever read.
func (s *Store) moved() error {
	if s.file == nil {
		return nil
	}
	info, err := os.Lstat(s.path)
	if err == nil && os.SameFile(info, s.file) {
		return nil
	}
	return errMoved
}
