package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// An Option changes how a store is opened.
type Option func(*Store)

// AnyFileSystem lets a store lie on a network file system, where locks and
// shared memory may not work and two processes may destroy it. It is for a
// machine that has nothing else.
func AnyFileSystem() Option { return func(s *Store) { s.anywhere = true } }

// guard makes what is missing of the directory and looks at what is there. It
// refuses what another user owns, or could have written into, with the command
// that mends it; and it tightens what others could only read, because a
// "mkdir .tether" with the usual umask is a person's way to ask for a store in
// the workspace, and nobody can have changed anything there.
func (s *Store) guard() error {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := s.local(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := s.own(dir, info, 0o700); err != nil {
		return err
	}
	for _, path := range s.files() {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is a %s, not a file of tether; move it away, or name another directory with TETHER_STATE", filepath.Base(path), kindOf(info.Mode()))
		}
		if err := s.own(path, info, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// local refuses a network file system.
func (s *Store) local(dir string) error {
	if s.anywhere {
		return nil
	}
	kind, err := s.statfs(dir)
	if err != nil {
		return err
	}
	if name := remote[kind]; name != "" {
		return fmt.Errorf("%s is on a network file system (%s), where a database can be destroyed\n"+
			"name a local directory with TETHER_STATE, or take the risk with TETHER_STATE_ANYWHERE=1", dir, name)
	}
	return nil
}

// files are the paths that SQLite opens, the database first.
func (s *Store) files() []string {
	var all []string
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		all = append(all, s.path+suffix)
	}
	return all
}

// own checks that path is ours alone. Root is no exception: what belongs to
// somebody else was written by somebody else, and our files would be in their
// way.
func (s *Store) own(path string, info fs.FileInfo, mode fs.FileMode) error {
	have := info.Mode().Perm()
	if bad := s.foreign(path, info, mode); bad != nil && !(bad.written && info.IsDir() && s.fresh()) {
		return bad
	}
	if have&0o077 == 0 {
		return nil
	}
	return os.Chmod(path, have&mode)
}

// foreign says why path is not ours alone; nil if it is, or if others could do
// no more than read it.
func (s *Store) foreign(path string, info fs.FileInfo, mode fs.FileMode) *GuardError {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return &GuardError{Path: path, Cause: fmt.Sprintf("belongs to user %d and this is user %d", st.Uid, os.Geteuid()),
			Repair: fmt.Sprintf("chown -R %d %s", os.Geteuid(), quote(filepath.Dir(s.path)))}
	}
	if have := info.Mode().Perm(); have&0o022 != 0 {
		return &GuardError{Path: path, Cause: fmt.Sprintf("can be written by other users (mode %04o)", have),
			Repair: fmt.Sprintf("chmod %o %s", mode, quote(path)), written: true}
	}
	return nil
}

// fresh reports whether the directory has no store yet that somebody could have
// tampered with.
func (s *Store) fresh() bool {
	for _, path := range append(s.files(), s.beside(headFile)) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// A GuardError says that the state is not the user's alone.
type GuardError struct {
	Path, Cause string
	Repair      string // a command line
	written     bool   // it is about the mode
}

// Error names the file, what is wrong with it and the command that mends it.
func (e *GuardError) Error() string {
	return fmt.Sprintf("%s %s\nif you trust what is in it: %s; otherwise name another directory with TETHER_STATE", e.Path, e.Cause, e.Repair)
}

// quote makes one word of a path for a shell.
func quote(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+"
