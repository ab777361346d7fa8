//go:build !linux

package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What system_linux.go and the files of the sandbox have, as far as macOS has it. There is no sandbox: New refuses every
// profile but Off, so all that belongs to another is never reached, and fails if it is.

const (
	ownFiles = "/dev/fd/"
	pathOnly = unix.O_RDONLY | unix.O_NONBLOCK
	closing  = 0
)

// Folders of macOS that are no workspace.
func init() {
	sharedFolders = append(sharedFolders, "/Users", "/Users/Shared", "/Volumes", "/private", "/private/tmp", "/private/var", "/private/var/tmp")
	closedFolders = append(closedFolders, "/System", "/Library", "/Applications", "/private/etc", "/cores")
}

// seal keeps the files that tether inherited out of every command, as many as shells hand on.
func seal() {
	const most = 256 // what a process may have open by the default of macOS
	for fd := 3; fd < most; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags|unix.FD_CLOEXEC)
		}
	}
}

// attributes makes a process the first of a group. Nothing ends it if tether is killed.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitDead returns when a child has ended, and leaves it to be reaped.
func awaitDead(pid int) error {
	const byPID = 1 // P_PID of sys/wait.h
	var info [128]byte
	if _, _, e := unix.Syscall6(unix.SYS_WAITID, byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, 0, 0); e != 0 {
		return e
	}
	return nil
}

// sealed makes a file that has no name any more and that can only be read.
func sealed(name string, data []byte) (*os.File, error) {
	w, err := os.CreateTemp("", "tether-"+name)
	if err != nil {
		return nil, err
	}
	defer os.Remove(w.Name())
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return os.Open(w.Name())
}

// openUnlinked opens a folder by a path in which no part may be a link.
func openUnlinked(dir string) (int, error) {
	return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW_ANY, 0)
}

// resolve returns a path without links, and in the spelling of the disk, which takes "Src" and "src" for the same.
func resolve(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if real := realPath(f); real != "" {
		return real, nil
	}
	return path, nil
}

// realPath returns the path of an open file as the kernel knows it, "" if it has none.
func realPath(file *os.File) string {
	var path [unix.PathMax]byte
	if _, _, e := unix.Syscall(unix.SYS_FCNTL, file.Fd(), unix.F_GETPATH, uintptr(unsafe.Pointer(&path))); e != 0 {
		return ""
	}
	name, _, _ := bytes.Cut(path[:], []byte{0})
	return string(name)
}

// guardResources watches nothing, as on Linux without a sandbox.
func (b *Box) guardResources(*process) (<-chan string, func()) { return make(chan string), func() {} }

// hear and deaf keep no command off a socket: nothing can be covered.
func (s *scanner) hear(Finding) {}
func (b *Box) deaf() []string   { return nil }

// The rest belongs to the profiles that New refuses.

func (c *group) startIn(*syscall.SysProcAttr) {}
func openProcess(int) (int, error)            { return -1, errors.ErrUnsupported }
func killProcess(int)                         {}
func endBelow(int)                            {}
func tasks(int) uint64                        { return 0 }
func guard(order, []string) int               { return shimFailed }
func closeScope() error                       { return errors.ErrUnsupported }
func (*fence) close() error                   { return errors.ErrUnsupported }
func kernelABI() int                          { return 0 }
func shrinkPipe(uintptr) (int, error)         { return 0, errors.ErrUnsupported }
