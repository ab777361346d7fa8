//go:build linux && (amd64 || arm64)

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

// Bits that rules look for. These have the same value on all architectures here, unlike O_DIRECTORY and its kin.
const (
	oTmpfile    = 0o20000000 // __O_TMPFILE without O_DIRECTORY; x/sys has no name for it
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
	callsUnknown = []string{"open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr", "clone3",
		"io_uring_setup", "io_uring_enter", "io_uring_register", "openat2"}
	callsMount  = []string{"mount", "umount2", "pivot_root", "chroot", "unshare", "setns"}
	callsTrace  = []string{"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "perf_event_open", "bpf", "userfaultfd", "pidfd_getfd"}
	callsKeys   = []string{"add_key", "keyctl", "request_key"}
	callsKernel = []string{"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "settimeofday", "clock_settime"}
	callsSystem = []string{"syslog", "acct", "quotactl", "quotactl_fd", "swapon", "swapoff", "vhangup", "lookup_dcookie", "fanotify_init",
		"open_by_handle_at", "name_to_handle_at", "move_pages", "migrate_pages", "iopl", "ioperm", "modify_ldt"}
	// What the IPC namespace of the other profiles takes care of.
	callsShared = []string{"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl",
		"mq_open", "mq_unlink"}
	// Calls that set a mode, and which argument it is, from 0.
	callsMode = []argRule{{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}, {"mknod", 1}, {"mknodat", 2}, {"creat", 1}}
	// Calls that make a file if their flags say so; the mode follows the flags.
	callsOpen = []argRule{{"open", 1}, {"openat", 2}}
)

// argRule names a call and which of its arguments, from 0, is looked at.
type argRule struct {
	call string
	arg  uint32
}

// abi is how programs of one architecture call the kernel.
type abi struct {
	arch    uint32            // AUDIT_ARCH_*
	x32     bool              // it has a second numbering of the same calls
	numbers map[string]uint32 // by name; a call that is not in it does not exist there
}

// filter returns the program for a profile in the form that the kernel reads. The full profile keeps only what guards
// the terminal, the keyring and the kernel itself.
func filter(p Profile) ([]byte, error) {
	raw, err := bpf.Assemble(native().program(p))
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

// program returns the filter as instructions. A foreign architecture is killed first: its call numbers mean other
// things, so every rule below would be wrong.
func (a abi) program(p Profile) []bpf.Instruction {
	r := rules{abi: a, code: []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: a.arch, SkipTrue: 1},
		bpf.RetConstant{Val: actKill},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}}
	if a.x32 {
		r.add(bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32Bit, SkipFalse: 1}, bpf.RetConstant{Val: errno(unix.ENOSYS)})
	}
	r.deny(unix.EPERM, callsKeys)
	r.deny(unix.EPERM, callsKernel)
	r.terminal()
	if p != Full {
		r.deny(unix.ENOSYS, callsUnknown)
		r.deny(unix.EPERM, callsMount)
		r.deny(unix.EPERM, callsTrace)
		r.deny(unix.EPERM, callsSystem)
		r.namespaces()
		r.sockets(p)
		r.modes()
	}
	if p == Landlock {
		r.shared()
	}
	r.add(bpf.RetConstant{Val: actAllow})
	return r.code
}

func errno(e unix.Errno) uint32 { return actErrno | uint32(e) }

// rules is a filter in the making. Between two rules the accumulator holds the call number.
type rules struct {
	abi  abi
	code []bpf.Instruction
}

func (r *rules) add(code ...bpf.Instruction) { r.code = append(r.code, code...) }

// deny answers calls with an error, whatever their arguments.
func (r *rules) deny(e unix.Errno, calls []string) {
	for _, c := range calls {
		if n, ok := r.abi.numbers[c]; ok {
			r.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: n, SkipFalse: 1}, bpf.RetConstant{Val: errno(e)})
		}
	}
}

// when runs a block for one call. The block decides: what it does not answer is allowed.
func (r *rules) when(call string, block ...bpf.Instruction) {
	n, ok := r.abi.numbers[call]
	if !ok {
		return
	}
	block = append(block, bpf.RetConstant{Val: actAllow})
	r.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: n, SkipFalse: uint8(len(block))})
	r.add(block...)
}

// arg loads the low half of an argument. The kernel ignores the upper half of these arguments, so a comparison of all
// 64 bits could be walked around by setting a bit there.
func arg(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offArgs + 8*n, Size: 4} }

// terminal forbids typing into the user's terminal.
func (r *rules) terminal() {
	r.when("ioctl", arg(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tiocLinux, SkipFalse: 1},
		bpf.RetConstant{Val: errno(unix.EPERM)})
}

// namespaces forbids making new ones, in which a command would be root.
func (r *rules) namespaces() {
	r.when("clone", arg(0),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newSpaces, SkipFalse: 1},
		bpf.RetConstant{Val: errno(unix.EPERM)})
}

// sockets allows the four families that test suites need. AF_VSOCK, for one, is not covered by a network namespace.
func (r *rules) sockets(p Profile) {
	if p == Landlock { // no namespace is around it: neither the network nor the sockets of other programs are out of reach
		r.deny(unix.EACCES, []string{"socket"})
		r.when("socketpair", arg(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainUnix, SkipTrue: 1},
			bpf.RetConstant{Val: errno(unix.EAFNOSUPPORT)})
		return
	}
	for _, n := range []string{"socket", "socketpair"} {
		r.when(n, arg(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainUnix, SkipTrue: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainInet, SkipTrue: 3},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: domainInet6, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 1},
			bpf.RetConstant{Val: errno(unix.EAFNOSUPPORT)})
	}
}

// shared forbids what the namespaces of the other profiles give to a command alone: memory, queues and semaphores by
// number, and the limits of other processes, of which the one on processor time would end them.
func (r *rules) shared() {
	r.deny(unix.EACCES, callsShared)
	r.when("prlimit64", arg(0),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: errno(unix.EPERM)})
}

// modes forbids leaving set-id files in the workspace, where somebody may run them on the host.
func (r *rules) modes() {
	for _, m := range callsMode {
		r.when(m.call, arg(m.arg), setIDSet(), bpf.RetConstant{Val: errno(unix.EPERM)})
	}
	for _, m := range callsOpen {
		// The mode counts only when a file may be made; otherwise the argument is whatever the register held.
		r.when(m.call, arg(m.arg),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.O_CREAT | oTmpfile, SkipFalse: 3},
			arg(m.arg+1), setIDSet(), bpf.RetConstant{Val: errno(unix.EPERM)})
	}
}

// setIDSet skips the next instruction unless the mode has a set-id bit.
func setIDSet() bpf.Instruction {
	return bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: setID, SkipFalse: 1}
}
