//go:build !linux

package memory

import (
	"errors"
	"os"
	"syscall"
)

// Holder returns the process that has the session's lock, as it has written
// itself into the lock's file; that somebody has it is the kernel's word. It is
// 0 if nobody has the lock, or nobody who has written.
func (s *Store) Holder(session string) int {
	if s.file == nil {
		return 0
	}
	f, err := os.Open(s.beside("lock", session))
	if err != nil {
		return 0
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0
	}
	var busy *BusyError
	if errors.As(s.busy(session), &busy) {
		return busy.PID
	}
	return 0
}
