package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
)

// A SchemaError says that a store was made by a newer tether, or by an older one
// where it can only be read.
type SchemaError struct {
	Have int // the schema of the file
	Know int // the newest schema that this tether knows
}

// Error names both numbers and the way out.
func (e *SchemaError) Error() string {
	if e.Have < e.Know {
		return fmt.Sprintf("it has schema %d and this tether needs %d; it can be brought to that only where it can be written", e.Have, e.Know)
	}
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
	return fmt.Sprintf("%s; see what can be saved with: tether fsck",
		e.what())
}

func (e *ChainError) what() string {
	return fmt.Sprintf("event %d is not as it was written (%s)", e.Seq, e.Cause)
}

var errReadOnly = errors.New("it was opened to be read only; make it and its folder writable, or choose another state directory")

var errMoved = errors.New("the file was removed or replaced while it was open, so nothing more can be kept; start tether again")

// The primary result codes of SQLite that have a way out worth naming.
const (
	sqliteError    = 1
	sqliteBusy     = 5
	sqliteReadonly = 8
	sqliteIOErr    = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26

	sqliteShmSize = 10 | 19<<8 // no room for the shared memory of a WAL database
)

// explain says what was done to which store, why it failed and what to do
// next. A nil error stays nil.
func (s *Store) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*explained](err); told {
		return err // by what was done within this
	}
	hint := ""
	switch code := sqliteCode(err); {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case isGuarded(err): // it says what to do
	case code == sqliteReadonly, code == sqliteCantOpen, errors.Is(err, fs.ErrPermission),
		errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		hint = "; make it and its folder writable, or choose another state directory"
	case code == sqliteBusy:
		hint = held(err)
	case code == sqliteIOErr: // SQLite's words for a full disk, too, where it makes its shared memory
		hint = "; the disk is full or broken: free some space and try again, or choose another state directory with TETHER_STATE"
	case isFull(err):
		hint = "; free some space and try again: nothing was half-written"
	case code == sqliteCorrupt, code == sqliteNotADB:
		hint = "; it is damaged: nothing more is written to it; see what is lost with: tether fsck"
	}
	return &explained{fmt.Errorf("%s state %s: %w%s", what, s.path, err, hint)}
}

// explained is an error that says all that explain does.
type explained struct{ error }

// Unwrap is the error in its words.
func (e *explained) Unwrap() error { return e.error }

// isGuarded reports whether err is one of those that say themselves what can be
// done.
func isGuarded(err error) bool {
	_, guard := errors.AsType[*GuardError](err)
	_, damage := errors.AsType[*DamageError](err)
	return guard || damage || errors.Is(err, errReadOnly)
}

// held names who has the lock that a write waited for.
func held(err error) string {
	e, ok := errors.AsType[*errHeld](err)
	if !ok {
		return "; another tether holds it: wait for it, or stop it, and try again"
	}
	who := "another tether"
	if e.holder != "" {
		who = e.holder
	}
	return fmt.Sprintf("; %s has held it for %.0f seconds: wait for it, or stop it, and try again", who, e.after.Seconds())
}

// sqliteCode returns the primary result code in err, 0 if there is none.
func sqliteCode(err error) int { return extendedCode(err) & 0xff }

// extendedCode returns the extended result code in err, 0 if there is none.
func extendedCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}
