//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Actions of the kernel on a system call (linux/seccomp.h).
const (
	actAllow  = 0x7fff0000
	actErrno  = 0x00050000
	actKill   = 0x80000000 // the whole process
	offNumber = 0          // offsets in struct seccomp_data
	offArch   = 4
	offArgs   = 16
)

// Bits and numbers that x/sys has no name for.
const (
	setID       = 0o6000     // S_ISUID | S_ISGID
	oTmpfile    = 0o20000000 // __O_TMPFILE without O_DIRECTORY
	tiocLinux   = 0x541c     // TIOCLINUX: pastes into a console
	newSpaces   = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	x32Bit      = 0x40000000
	domainUnix  = unix.AF_UNIX
	domainInet  = unix.AF_INET
	domainInet6 = unix.AF_INET6
)

// The calls that are answered with an error, by what they would open. A list of what is forbidden, as Flatpak has it:
// the namespaces are the fence, the filter takes away the ladders.
var (
	// An unknown call makes libc fall back to an older one that the filter can look into.
	callsUnknown = []uint32{unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR, unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
		unix.SYS_IO_URING_REGISTER, unix.SYS_OPENAT2}
	callsMount = []uint32{unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS}
	callsTrace = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF,
		unix.SYS_USERFAULTFD, unix.SYS_PIDFD_GETFD}
	callsKeys   = []uint32{unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY}
	callsKernel = []uint32{unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME}
	callsSystem = []uint32{unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
		unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_FANOTIFY_INIT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES}
)

// filter returns the program for a profile in the form that the kernel reads. The full profile keeps only what guards
// the terminal, the keyring and the kernel itself.
func filter(p Profile) ([]byte, error) {
	raw, err := bpf.Assemble(program64(p))
	if err != nil {
		return nil, fmt.Errorf("seccomp filter: %w", err)
	}
	const size = 8 // bytes of a struct sock_filter
	out := make([]byte, 0, len(raw)*size)
	for _, i := range raw {
		out = binary.NativeEndian.AppendUint16(out, i.Op)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out, nil
}

// program64 returns the filter as instructions. A foreign architecture is killed first: its call numbers mean other
// things, so every rule below would be wrong.
func program64(p Profile) []bpf.Instruction {
	f := rules{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: actKill},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	if nativeX32 {
		f = append(f, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1}, bpf.RetConstant{Val: errno(unix.ENOSYS)})
	}
	f.deny(unix.EPERM, callsKeys...)
	f.deny(unix.EPERM, callsKernel...)
	f.terminal()
	if p != Full {
		f.deny(unix.ENOSYS, callsUnknown...)
		f.deny(unix.EPERM, callsMount...)
		f.deny(unix.EPERM, callsTrace...)
		f.deny(unix.EPERM, callsSystem...)
		f.deny(unix.EPERM, callsNative...)
		f.namespaces()
		f.sockets(p)
		f.modes()
	}
	return append(f, bpf.RetConstant{Val: actAllow})
}

func errno(e unix.Errno) uint32 { return actErrno | uint32(e) }

// rules is a filter in the making. Between two rules the accumulator holds the call number.
type rules []bpf.Instruction

// deny answers calls with an error, whatever their arguments.
func (r *rules) deny(e unix.Errno, numbers ...uint32) {
	for _, n := range numbers {
		*r = append(*r, bpf.JumpIf{Cond: bpf.JumpEqual, Val: n, SkipFalse: 1}, bpf.RetConstant{Val: errno(e)})
	}
}

// when runs a block for one call. The block decides: what it does not answer is allowed.
func (r *rules) when(number uint32, block ...bpf.Instruction) {
	block = append(block, bpf.RetConstant{Val: actAllow})
	*r = append(*r, bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(block))})
	*r = append(*r, block...)
}

// arg loads the low half of an argument. The kernel ignores the upper half of these arguments, so a comparison of all
// 64 bits could be walked around by setting a bit there.
func arg(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offArgs + 8*n, Size: 4} }

// terminal forbids typing into the user's terminal.
func (r *rules) terminal() {
	r.when(unix.SYS_IOCTL, arg(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tiocLinux, SkipFalse: 1},
		bpf.RetConstant{Val: errno(unix.EPERM)})
}

// namespaces forbids making new ones, in which a command would be root.
func (r *rules) namespaces() {
	r.when(unix.SYS_CLONE, arg(0),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newSpaces, SkipFalse: 1},
		bpf.RetConstant{Val: errno(unix.EPERM)})
}

// sockets allows the four families that test suites need. AF_VSOCK, for one, is not covered by a network namespace.
func (r *rules) sockets(p Profile) {
	if p == Landlock { // no namespace is around it: neither the network nor the sockets of other programs are out of reach
		r.deny(unix.EACCES, unix.SYS_SOCKET)
		r.when(unix.SYS_SOCKETPAIR, arg(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainUnix, SkipTrue: 1},
			bpf.RetConstant{Val: errno(unix.EAFNOSUPPORT)})
		return
	}
	for _, n := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		r.when(n, arg(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainUnix, SkipTrue: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainInet, SkipTrue: 3},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainInet6, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 1},
			bpf.RetConstant{Val: errno(unix.EAFNOSUPPORT)})
	}
}

// modes forbids leaving set-id files in the workspace, where somebody may run them on the host.
func (r *rules) modes() {
	for _, m := range append([]argRule{{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2}}, modesNative...) {
		r.when(m.number, arg(m.arg), setIDSet(), bpf.RetConstant{Val: errno(unix.EPERM)})
	}
	for _, m := range append([]argRule{{unix.SYS_OPENAT, 2}}, opensNative...) {
		// The mode counts only when a file may be made; otherwise the argument is whatever the register held.
		r.when(m.number, arg(m.arg),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.O_CREAT | oTmpfile, SkipFalse: 3},
			arg(m.arg+1), setIDSet(), bpf.RetConstant{Val: errno(unix.EPERM)})
	}
}

// setIDSet skips the next instruction unless the mode has a set-id bit.
func setIDSet() bpf.Instruction {
	return bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: setID, SkipFalse: 1}
}

// argRule names a call and which of its arguments, from 0, is looked at.
type argRule struct{ number, arg uint32 }
