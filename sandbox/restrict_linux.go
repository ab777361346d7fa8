package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a process can do to itself, and to the program that it becomes. All of it concerns the calling thread alone, on
// which the command is executed; the numbers and structures are those of x/sys, which lacks the calls.

// Rights of Landlock over a path and all below it.
const (
	mayRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayUse  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// All but devices. Moving between folders (refer) is a right of its own, since it can change what a file may be used for.
	mayWrite = mayRead | mayUse | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER
	// Those that a rule may speak of when the path is no folder.
	onFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | mayUse | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// Everything that version 6 of the interface can forbid.
	handled = mayWrite | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// ruleset is a set of Landlock rules in the making. After the first error it takes no more.
type ruleset struct {
	fd  int
	err error
}

// newRuleset begins with nothing allowed of what paths and ports speak of; signals and abstract sockets stay inside.
func newRuleset(paths, ports uint64) (*ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: paths, Handled_access_net: ports,
		Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	// The size says which version is meant: up to Scoped. A kernel that knows less refuses (E2BIG, EINVAL).
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
	if e != 0 {
		return nil, e
	}
	return &ruleset{fd: int(fd)}, nil
}

// allow adds rights over a path, if it exists.
func (r *ruleset) allow(path string, rights uint64) {
	if r.err != nil {
		return
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return // not on this machine: there is nothing to allow
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if r.err = unix.Fstat(fd, &st); r.err != nil {
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= onFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if e != 0 {
		r.err = e
	}
}

// enforce puts the rules on this thread. It gives up new rights through set-id programs first, which the kernel demands.
func (r *ruleset) enforce() error {
	if r.err != nil {
		return r.err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); e != 0 {
		return e
	}
	return nil
}

func (r *ruleset) close() { unix.Close(r.fd) }

// kernelABI asks the kernel for its version, 0 if Landlock is missing or switched off.
func kernelABI() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// close restricts this thread for good, and the command that it becomes.
func (f *fence) close() error {
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	rs, err := newRuleset(handled, unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	defer rs.close()
	for _, path := range f.Read {
		for _, r := range without(path, f.Omit) {
			rights := uint64(mayRead)
			if r.list {
				rights = unix.LANDLOCK_ACCESS_FS_READ_DIR
			}
			rs.allow(r.path, rights)
		}
	}
	for _, path := range f.Write {
		rs.allow(path, mayWrite)
	}
	for _, path := range f.Devices {
		rs.allow(path, mayUse)
	}
	if err := rs.enforce(); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if err := loadFilter(Landlock); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// reading is one thing that may be read: all of a path, or only the names in it.
type reading struct {
	path string
	list bool
}

// without returns what may be read of a path when something below it may not: Landlock has no exceptions, so what lies
// beside is named one by one. Links are left out: their targets count.
func without(path string, omit []string) []reading {
	inner := slices.ContainsFunc(omit, func(o string) bool { return within(o, path) })
	if !inner {
		return []reading{{path: path}}
	}
	entries, err := os.ReadDir(path)
	if slices.Contains(omit, path) || err != nil {
		return nil
	}
	found := []reading{{path, true}}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			found = append(found, without(filepath.Join(path, e.Name()), omit)...)
		}
	}
	return found
}

// closeScope forbids this thread nothing but signals and abstract sockets to the outside.
func closeScope() error {
	rs, err := newRuleset(0, 0)
	if err != nil {
		return err
	}
	defer rs.close()
	return rs.enforce()
}

// dropCapabilities takes every right of root beyond its files. They do not come back with the next program: enforce gives
// up new rights.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// loadFilter puts the seccomp filter of a profile on this thread.
func loadFilter(p Profile) error {
	program, err := filter(p)
	if err != nil {
		return err
	}
	const size = int(unsafe.Sizeof(unix.SockFilter{}))
	prog := unix.SockFprog{Len: uint16(len(program) / size), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return e
	}
	return nil
}
