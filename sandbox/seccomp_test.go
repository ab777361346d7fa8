//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"math"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	high   = uint64(1) << 32 // what the kernel ignores of these arguments
	foreig = unix.AUDIT_ARCH_I386
)

// judge runs the filter on one call and returns the action. The machine of x/net reads big-endian, word by word.
func judge(t *testing.T, p Profile, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(program64(p))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	n, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func TestFilterCalls(t *testing.T) {
	perm, nosys, family := errno(unix.EPERM), errno(unix.ENOSYS), errno(unix.EAFNOSUPPORT)
	for _, tt := range []struct {
		name   string
		number uint32
		args   []uint64
		want   uint32
		full   uint32 // in the full profile
	}{
		{"read", unix.SYS_READ, nil, actAllow, actAllow},
		{"execve", unix.SYS_EXECVE, nil, actAllow, actAllow},
		{"mount", unix.SYS_MOUNT, nil, perm, actAllow},
		{"unshare", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER}, perm, actAllow},
		{"clone thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, actAllow, actAllow},
		{"clone user", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, perm, actAllow},
		{"clone net, high bits", unix.SYS_CLONE, []uint64{high | unix.CLONE_NEWNET}, perm, actAllow},
		{"clone3", unix.SYS_CLONE3, nil, nosys, actAllow},
		{"io_uring", unix.SYS_IO_URING_SETUP, nil, nosys, actAllow},
		{"open_tree", unix.SYS_OPEN_TREE, nil, nosys, actAllow},
		{"ptrace", unix.SYS_PTRACE, nil, perm, actAllow},
		{"bpf", unix.SYS_BPF, nil, perm, actAllow},
		{"keyctl", unix.SYS_KEYCTL, nil, perm, perm},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, nil, perm, perm},
		{"init_module", unix.SYS_INIT_MODULE, nil, perm, perm},
		{"syslog", unix.SYS_SYSLOG, nil, perm, actAllow},
		{"TIOCSTI", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, perm, perm},
		{"TIOCSTI, high bits", unix.SYS_IOCTL, []uint64{0, high | unix.TIOCSTI}, perm, perm},
		{"TIOCLINUX", unix.SYS_IOCTL, []uint64{0, tiocLinux}, perm, perm},
		{"TIOCSTI as descriptor", unix.SYS_IOCTL, []uint64{unix.TIOCSTI, unix.TIOCGWINSZ}, actAllow, actAllow},
		{"socket unix", unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, actAllow, actAllow},
		{"socket inet", unix.SYS_SOCKET, []uint64{unix.AF_INET}, actAllow, actAllow},
		{"socket inet6", unix.SYS_SOCKET, []uint64{unix.AF_INET6}, actAllow, actAllow},
		{"socket netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK}, actAllow, actAllow},
		{"socket vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK}, family, actAllow},
		{"socket vsock, high bits", unix.SYS_SOCKET, []uint64{high | unix.AF_VSOCK}, family, actAllow},
		{"socket unix, high bits", unix.SYS_SOCKET, []uint64{high | unix.AF_UNIX}, actAllow, actAllow},
		{"socketpair packet", unix.SYS_SOCKETPAIR, []uint64{unix.AF_PACKET}, family, actAllow},
		{"fchmod 755", unix.SYS_FCHMOD, []uint64{3, 0o755}, actAllow, actAllow},
		{"fchmod 4755", unix.SYS_FCHMOD, []uint64{3, 0o4755}, perm, actAllow},
		{"fchmodat 2755, high bits", unix.SYS_FCHMODAT, []uint64{0, 0, high | 0o2755}, perm, actAllow},
		{"fchmodat2 4755", unix.SYS_FCHMODAT2, []uint64{0, 0, 0o4755}, perm, actAllow},
		{"mknodat 4755", unix.SYS_MKNODAT, []uint64{0, 0, unix.S_IFREG | 0o4755}, perm, actAllow},
		{"openat read, stray mode", unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY, 0o6777}, actAllow, actAllow},
		{"openat create 644", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT, 0o644}, actAllow, actAllow},
		{"openat create 4755", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT, 0o4755}, perm, actAllow},
		{"openat tmpfile 2755", unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o2755}, perm, actAllow},
		{"openat directory, stray mode", unix.SYS_OPENAT, []uint64{0, 0, unix.O_DIRECTORY, 0o4755}, actAllow, actAllow},
		{"openat2", unix.SYS_OPENAT2, nil, nosys, actAllow},
	} {
		for profile, want := range map[Profile]uint32{WorkspaceWrite: tt.want, ReadOnly: tt.want, Full: tt.full} {
			if got := judge(t, profile, nativeArch, tt.number, tt.args...); got != want {
				t.Errorf("%s, %s: %#x, want %#x", profile, tt.name, got, want)
			}
			if got := judge(t, profile, foreig, tt.number, tt.args...); got != actKill {
				t.Errorf("%s, %s, foreign architecture: %#x, want %#x", profile, tt.name, got, uint32(actKill))
			}
		}
	}
}

func TestFilterForeign(t *testing.T) {
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_RISCV64, 0, math.MaxUint32} {
		if got := judge(t, Full, arch, unix.SYS_READ); got != actKill {
			t.Errorf("architecture %#x: %#x", arch, got)
		}
	}
	if nativeX32 {
		for _, number := range []uint32{x32Bit, x32Bit + unix.SYS_READ, math.MaxUint32} {
			if got := judge(t, WorkspaceWrite, nativeArch, number); got != errno(unix.ENOSYS) {
				t.Errorf("x32 call %#x: %#x", number, got)
			}
		}
	}
}

// Every number is either on a list or allowed, and no list has a number twice: a second rule would never be reached.
func TestFilterListsAreDisjoint(t *testing.T) {
	seen := map[uint32]bool{unix.SYS_IOCTL: true, unix.SYS_CLONE: true, unix.SYS_SOCKET: true, unix.SYS_SOCKETPAIR: true, unix.SYS_OPENAT: true}
	for _, list := range [][]uint32{callsUnknown, callsMount, callsTrace, callsKeys, callsKernel, callsSystem, callsNative} {
		for _, n := range list {
			if seen[n] {
				t.Errorf("call %d is listed twice", n)
			}
			seen[n] = true
		}
	}
	for n := range uint32(1000) {
		got := judge(t, WorkspaceWrite, nativeArch, n)
		if !seen[n] && got != actAllow {
			t.Errorf("call %d is on no list and gets %#x", n, got)
		}
	}
}

func TestFilterSize(t *testing.T) {
	prog, err := filter(WorkspaceWrite)
	if err != nil {
		t.Fatal(err)
	}
	const most = 4096 // instructions that the kernel takes (BPF_MAXINSNS)
	if n := len(prog) / 8; len(prog)%8 != 0 || n > most || n < 100 {
		t.Errorf("%d bytes", len(prog))
	}
}
