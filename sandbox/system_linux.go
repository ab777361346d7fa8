package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the kernel of Linux has for files and processes and others have not, or have by another name. system_other.go has
// the same for those.

const (
	ownFiles = "/proc/self/fd/"  // the open files of a process, by their numbers
	pathOnly = unix.O_PATH       // opens what a path names without touching it
	closing  = unix.SOCK_CLOEXEC // for a socket that no command inherits
)

// seal keeps files that tether inherited, or opened without the flag, out of every command: a folder that was open by
// chance could be walked from inside.
func seal() {
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // kernels before 5.11 lack it; Go's own files have the flag anyway
}

// attributes makes a process the first of a group. It dies with tether, unless it is a guard: that notices by the socket,
// and has work to do then.
func attributes(guard bool) *syscall.SysProcAttr {
	if guard {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startIn has a process begin in the group.
func (c *group) startIn(attr *syscall.SysProcAttr) {
	attr.UseCgroupFD, attr.CgroupFD = true, int(c.fd.Fd())
}

// openProcess returns a descriptor for a process, by which no other can be meant.
func openProcess(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

// killProcess kills the process of a descriptor.
func killProcess(fd int) {
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // gone already is fine
}

// awaitDead returns when a child has ended, and leaves it to be reaped.
func awaitDead(pid int) error {
	return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
}

// sealed makes a file in memory. The command holds it too, and the shell inside trusts it: nobody can change it.
func sealed(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.WriteAt(data, 0); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	return f, err
}

// shrinkPipe makes a pipe as small as the system has them, and returns how many bytes it holds.
func shrinkPipe(fd uintptr) (int, error) {
	return unix.FcntlInt(fd, unix.F_SETPIPE_SZ, os.Getpagesize())
}

// openUnlinked opens a folder by a path in which no part may be a link.
func openUnlinked(dir string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

// resolve returns a path without links.
func resolve(path string) (string, error) { return filepath.EvalSymlinks(path) }

// realPath returns the path of an open file as the kernel knows it, "" if it has none.
func realPath(file *os.File) string {
	real, err := os.Readlink(ownFiles + strconv.Itoa(int(file.Fd())))
	if err != nil {
		return ""
	}
	return real
}
