package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
)

// A SchemaError says that a store was made by a newer tether.
type SchemaError struct {
	Have int // the schema of the file
	Know int // the newest schema that this tether knows
}

// Error names both numbers and the way out.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("it has schema %d and this tether knows up to %d; use the newer tether, or another state directory",
		e.Have, e.Know)
}

// A ChainError names the first event that is not as it was written.
type ChainError struct {
	Seq   int64
	Cause string
}

// Error names the event and what is wrong with it.
func (e *ChainError) Error() string {
	return fmt.Sprintf("event %d is not as it was written (%s); keep the file and restore a copy, or start with another state directory",
		e.Seq, e.Cause)
}

var errMoved = errors.New("the file was removed or replaced while it was open, so nothing more can be kept; start tether again")

// The primary result codes of SQLite that have a way out worth naming.
const (
	sqliteBusy     = 5
	sqliteReadonly = 8
	sqliteIOErr    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26
)

// explain says what was done to which store, why it failed and what to do
// next. A nil error stays nil.
func (s *Store) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	switch code := sqliteCode(err); {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case code == sqliteReadonly, code == sqliteCantOpen, errors.Is(err, fs.ErrPermission),
		errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		hint = "; make it and its folder writable, or choose another state directory"
	case code == sqliteBusy:
		hint = "; another tether has held it for 5 seconds: wait for it, or stop it, and try again"
	case code == sqliteFull, errors.Is(err, syscall.ENOSPC):
		hint = "; free some space and try again: nothing was half-written"
	case code == sqliteIOErr: // SQLite's words for a full disk, too, where it makes its shared memory
		hint = "; the disk is full or broken: free some space and try again, or choose another state directory with TETHER_STATE"
	case code == sqliteCorrupt, code == sqliteNotADB:
		hint = "; it is damaged: keep the file and restore a copy, or start with another state directory"
	}
	return fmt.Errorf("%s state %s: %w%s", what, s.path, err, hint)
}

// sqliteCode returns the primary result code in err, 0 if there is none.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}
