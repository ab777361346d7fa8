package sandbox

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxSockets bounds the sockets that are covered: each costs every command a mount.
const maxSockets = 32

// hear notes a socket at which a program of the host listens. Through it a command would reach that program, so it is
// covered from the next command on.
func (s *scanner) hear(found Finding) {
	if found.Why != whySocket || len(s.live) >= maxSockets {
		return
	}
	top, err := s.root.Open(".")
	if err != nil {
		return // the workspace is gone, and the next command says so
	}
	defer top.Close()
	if listens(top, found.Path) {
		s.live = append(s.live, found.Path)
	}
}

// listens reports whether a program listens at a socket, by knocking. One that a command made is dead: its program ended
// with the command.
func listens(top *os.File, rel string) bool {
	f, err := openBeneath(top, rel)
	if err != nil {
		return false
	}
	defer f.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return true // not known, so it is covered
	}
	defer unix.Close(fd)
	return !errors.Is(unix.Connect(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))}), unix.ECONNREFUSED)
}

// deaf returns the sockets that a command must not reach, as far as they are there.
func (b *Box) deaf() []string {
	if b.seen == nil || b.policy.Profile != WorkspaceWrite && b.policy.Profile != ReadOnly {
		return nil
	}
	b.seen.mu.Lock()
	live := b.seen.live
	b.seen.mu.Unlock()
	var paths []string
	for _, rel := range live {
		if fi, err := plain(b.policy.Root, rel); err == nil && fi != nil && fi.Mode()&os.ModeSocket != 0 {
			paths = append(paths, rel)
		}
	}
	return paths
}
