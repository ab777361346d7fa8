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
	"strings"
	"syscall"
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
// It takes the lock once, so that a store that cannot be written fails here and
// not in the middle of a task, and looks for damage in a bounded time. These are
// refused: a store of a newer tether (*SchemaError), one that other users own or
// can write (*GuardError), one on a network file system (see AnyFileSystem) and a
// damaged one (*DamageError), of which a copy is made. Events that are missing at
// the end of the log do not keep it from being used: see Lost.
func Open(ctx context.Context, path string, options ...Option) (*Store, error) {
	s := newStore(path, options)
	err := s.open(ctx)
	if err == nil {
		return s, nil
	}
	_ = s.release() // err is the one that counts
	if damage := damageOf(err); damage != nil {
		damage.Copy, _ = s.setAside() // none is no reason to hide the damage
		err = damage
	}
	return nil, s.explain("open", err)
}

func newStore(path string, options []Option) *Store {
	s := &Store{path: path, now: time.Now, statfs: fileSystem, patience: patience}
	for _, set := range options {
		set(s)
	}
	return s
}

func (s *Store) open(ctx context.Context) error {
	name := s.path
	if name != ":memory:" {
		var err error
		if name, err = s.take(); err != nil {
			return err
		}
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
	s.reader.SetMaxOpenConns(readers + 1)
	s.reader.SetMaxIdleConns(readers)
	if err := s.moor(); err != nil {
		return err
	}
	if err := s.sample(ctx); err != nil {
		return err
	}
	s.makeBallast()
	return s.settle(ctx)
}

// take checks who owns the directory, says that the store is in use, makes the
// file if it is missing, and returns its address for SQLite.
func (s *Store) take() (string, error) {
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return "", err
	}
	s.path = abs
	if err := s.guard(); err != nil {
		return "", err
	}
	if s.presence == nil {
		err = s.register()
	}
	if err != nil {
		return "", err
	}
	if s.file, err = s.prepare(); err != nil {
		return "", err
	}
	s.count()
	return address(abs), nil
}

// register says that the store is in use, until it is closed.
func (s *Store) register() (err error) {
	s.presence, err = flock(s.beside("lock", ".store"), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("it is being repaired by another tether; try again when that is done")
	}
	return err
}

// moor keeps one connection for as long as the store is open. A pool may close
// any other, and with the last one SQLite removes the write-ahead log, which
// moved would take for somebody else's doing.
func (s *Store) moor() error {
	var err error
	if s.anchor, err = s.reader.Conn(context.Background()); err != nil {
		return err
	}
	_, err = s.anchor.ExecContext(context.Background(), "SELECT 1 FROM sqlite_schema") // now the file is open
	return err
}

// count says that SQLite has the file open from now on.
func (s *Store) count() {
	s.counted = true
	countOpen(s.path, 1)
}

func address(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// connect returns a pool of connections, none of them open yet, that differ
// from SQLite's defaults where those trust the file or the disk too much.
func connect(name, pragma string, options ...string) (*sql.DB, error) {
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
	for _, o := range options {
		key, value, _ := strings.Cut(o, "=")
		q.Set(key, value)
	}
	return sql.Open("sqlite", name+"?"+q.Encode())
}

// prepare makes the file if it is missing, and never instead of one that has
// held events. It does not open a file that is there: closing it again would
// drop every lock that this process holds on it.
func (s *Store) prepare() (fs.FileInfo, error) {
	info, err := os.Lstat(s.path)
	if err == nil && info.Size() > 0 {
		return info, nil
	}
	if cause := s.remains(err != nil); cause != "" {
		return nil, &DamageError{Cause: cause}
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return os.Lstat(s.path) // another process was faster
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// remains says what shows that there was a database where there is none or an
// empty one; "" if nothing does.
func (s *Store) remains(gone bool) string {
	state := "empty" // as it is, too, while another process makes it
	if gone {
		state = "gone"
	}
	if h, there, _ := s.readHead(); there {
		return fmt.Sprintf("the database is %s, but event %d had been acknowledged", state, h.seq)
	}
	if info, err := os.Lstat(s.path + "-wal"); gone && err == nil && info.Size() > 0 {
		return "the database is gone, but its write-ahead log is there"
	}
	return ""
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

// moved reports whether the file, or its write-ahead log, was removed or
// replaced since it was opened. SQLite would go on acknowledging writes that
// nobody can ever read. Only who has the writer may call it.
func (s *Store) moved() error {
	if s.file == nil {
		return nil
	}
	info, err := os.Lstat(s.path)
	if err != nil || !os.SameFile(info, s.file) {
		return errMoved
	}
	wal, err := os.Lstat(s.path + "-wal")
	switch {
	case s.wal == nil && err == nil:
		s.wal = wal // while it is open SQLite never makes another one
	case s.wal != nil && (err != nil || !os.SameFile(wal, s.wal)):
		return errMoved
	}
	return nil
}
