package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A BusyError says that another process works on a session.
type BusyError struct {
	Session string
	PID     int       // of the process that has it; 0: unknown
	Since   time.Time // by that process's clock; zero: unknown
}

// Error says who has the session and what can be done meanwhile.
func (e *BusyError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if !e.Since.IsZero() {
		who += " since " + e.Since.Local().Format(time.DateTime)
	}
	return fmt.Sprintf("session %s is being run by %s\nread it with: tether show %s; end it with: tether stop %s",
		e.Session, who, e.Session, e.Session)
}

// A Lock makes its holder the one process that works on a session. It ends
// with Release or with the process, however that ends: the kernel gives it back.
type Lock struct{ file *os.File }

// Lock takes the session for this process, or returns a *BusyError at once. It
// keeps nobody from reading. The stores in memory have no other processes.
func (s *Store) Lock(session string) (*Lock, error) {
	if s.file == nil {
		return &Lock{}, nil
	}
	if session == "" || strings.HasPrefix(session, ".") || strings.ContainsAny(session, "/\x00") {
		return nil, fmt.Errorf("%q is not a session", session)
	}
	f, err := flock(s.beside("lock", session), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, s.busy(session)
	}
	if err != nil {
		return nil, s.explain("lock session "+session+" in", err)
	}
	// Who has it is only for the message of others; that the lock is held is the
	// kernel's word. So a full disk is no reason to refuse.
	_ = f.Truncate(0)
	fmt.Fprintf(f, "%d %s %d\n", os.Getpid(), bootID(), s.now().Unix())
	return &Lock{f}, nil
}

// Release gives the session back. The lock's file goes with it.
func (l *Lock) Release() error {
	if l.file == nil {
		return nil
	}
	// Removed while it is held: who has opened it meanwhile finds that it is
	// not the one at the path any more, and opens again.
	return errors.Join(os.Remove(l.file.Name()), l.file.Close())
}

// busy reads what the holder of a session's lock has left there.
func (s *Store) busy(session string) error {
	e := &BusyError{Session: session}
	text, err := os.ReadFile(s.beside("lock", session))
	if err != nil {
		return e
	}
	var pid int
	var boot string
	var since int64
	// A line of another boot was left by a process that is gone: the holder has
	// not come to writing its own yet.
	if n, _ := fmt.Sscan(string(text), &pid, &boot, &since); n == 3 && boot == bootID() {
		e.PID, e.Since = pid, time.Unix(since, 0)
	}
	return e
}

// flock opens the file at path, which it makes with its folder, and locks it in
// the way that how says.
func flock(path string, how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lockFile(f, how); err != nil {
			f.Close()
			return nil, err
		}
		if same(f, path) {
			return f, nil
		}
		f.Close() // its last holder has just removed it
	}
}

func lockFile(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// same reports whether f is still the file at path.
func same(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(have, there)
}

// bootID is a word that is another one after the machine was started again.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(text) == 0 {
		return "-"
	}
	return strings.TrimSpace(string(text))
}

// beside is the path of a file of the state directory other than the database.
func (s *Store) beside(name ...string) string {
	return filepath.Join(append([]string{filepath.Dir(s.path)}, name...)...)
}

// holder names the process that has the database's write lock; "" if it cannot
// be known. SQLite's locks are looked up in the kernel's list: opening the file
// that they are on, and closing it again, would drop our own.
func (s *Store) holder() string {
	info, err := os.Lstat(s.path + "-shm")
	if err != nil {
		return ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	pid := lockHolder(string(locks), info)
	if pid <= 0 {
		return ""
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
}

// writeLock is the byte of the -shm file that a writer locks (sqlite.org/walformat.html, section 2.3.1).
const writeLock = 120

// lockHolder finds the process with a write lock on byte writeLock of a file,
// in the text of /proc/locks:
//
//	1: POSIX  ADVISORY  WRITE 4711 08:01:131 120 120
func lockHolder(locks string, info fs.FileInfo) int {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	for line := range strings.Lines(locks) {
		var id, kind, advisory, mode, file, end string
		var pid, start int64
		if n, _ := fmt.Sscan(line, &id, &kind, &advisory, &mode, &pid, &file, &start, &end); n != 8 || mode != "WRITE" {
			continue
		}
		_, inode, _ := strings.Cut(file[strings.IndexByte(file, ':')+1:], ":")
		var last int64
		if _, err := fmt.Sscan(end, &last); err != nil {
			last = start // "EOF"
		}
		if inode == fmt.Sprint(stat.Ino) && start <= writeLock && (last >= writeLock || end == "EOF") {
			return int(pid)
		}
	}
	return 0
}
