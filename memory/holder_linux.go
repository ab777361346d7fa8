package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Holder returns the process that has the session's lock, as the kernel knows
// it: neither a file that was left behind nor a process number that was given
// out again can deceive it. It is 0 if nobody has the lock, or nobody who can be
// seen from here.
func (s *Store) Holder(session string) int {
	if s.file == nil {
		return 0
	}
	info, err := os.Lstat(s.beside("lock", session))
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || !ok {
		return 0
	}
	for _, pid := range flockHolders(string(locks), stat.Ino) {
		if has(pid, info) {
			return pid
		}
	}
	return 0
}

// flockHolders are the processes with an exclusive flock on a file with that
// inode, in the text of /proc/locks:
//
//	1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF
//
// The device there is not always the one that stat names, and a file of another
// device may have the same inode.
func flockHolders(locks string, inode uint64) []int {
	var all []int
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) != 8 || f[1] != "FLOCK" || f[3] != "WRITE" || !strings.HasSuffix(f[5], fmt.Sprintf(":%d", inode)) {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			all = append(all, pid)
		}
	}
	return all
}

// has reports whether a process has that file open.
func has(pid int, file os.FileInfo) bool {
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, name := range open {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, file) {
			return true
		}
	}
	return false
}
