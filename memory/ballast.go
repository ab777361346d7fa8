package memory

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ballastSize is how much room is kept to be given back when the disk is full:
// the end of a session is a few hundred bytes, but the write-ahead log grows by
// whole pages and the file with it, and others take from the same disk.
const ballastSize = 8 << 20

// makeBallast fills the ballast file, unless it is there or the disk is too full
// to spare it. There may be none: then the end of a session on a full disk
// cannot be recorded, which resume survives.
func (s *Store) makeBallast() {
	path := s.beside("ballast")
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.beside(), &st); err != nil || int64(st.Bavail)*int64(st.Bsize) < 2*ballastSize {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	err = reserve(f, ballastSize)
	if f.Close() != nil || err != nil {
		os.Remove(path)
	}
}

// dropBallast frees the ballast and reports whether there was one.
func (s *Store) dropBallast() bool {
	return s.file != nil && !s.readOnly && os.Remove(s.beside("ballast")) == nil
}

// isFull reports whether err says that the disk, or the user's share of it, is
// used up.
func isFull(err error) bool {
	return sqliteCode(err) == sqliteFull || extendedCode(err) == sqliteShmSize ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
