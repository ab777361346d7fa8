//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Answers, and a bit that the kernel ignores of the arguments that are looked at.
const (
	allow  = uint32(actAllow)
	perm   = uint32(actErrno | uint32(unix.EPERM))
	nosys  = uint32(actErrno | uint32(unix.ENOSYS))
	family = uint32(actErrno | uint32(unix.EAFNOSUPPORT))
	high   = uint64(1) << 32
)

// judge runs filters in the machine of x/net.
type judge struct {
	t  *testing.T
	vm *bpf.VM
	a  abi
}

func newJudge(t *testing.T, p Profile, a abi) judge {
	t.Helper()
	vm, err := bpf.NewVM(a.program(p))
	if err != nil {
		t.Fatal(err)
	}
	return judge{t, vm, a}
}

// number returns the filter's action on a call. The machine reads big-endian, word by word.
func (j judge) number(arch, number uint32, args ...uint64) uint32 {
	j.t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	n, err := j.vm.Run(data)
	if err != nil {
		j.t.Fatal(err)
	}
	return uint32(n)
}

// call is number for a call by its name; one that the architecture lacks is not asked for.
func (j judge) call(name string, args ...uint64) (action uint32, ok bool) {
	j.t.Helper()
	n, ok := j.a.numbers[name]
	if !ok {
		return 0, false
	}
	return j.number(j.a.arch, n, args...), true
}

// eachABI runs a test for both filters that there are, on both architectures.
func eachABI(t *testing.T, test func(t *testing.T, full bool, j judge)) {
	for name, a := range abis {
		if !slices.Equal(a.program(WorkspaceWrite), a.program(ReadOnly)) {
			t.Error("the filters of workspace-write and read-only differ")
		}
		for _, p := range []Profile{WorkspaceWrite, Full} {
			t.Run(fmt.Sprintf("%s %s", name, p), func(t *testing.T) { test(t, p == Full, newJudge(t, p, a)) })
		}
	}
}

// denied is what the specification says of calls whatever their arguments are, in its own words and order, so that a
// name missing from the filter is found. The full profile keeps only some.
var denied = []struct {
	names  []string
	action uint32
	full   bool // also there
}{
	{[]string{"mount", "umount2", "pivot_root", "chroot", "unshare", "setns"}, perm, false},
	{[]string{"open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr", "clone3"}, nosys, false},
	{[]string{"io_uring_setup", "io_uring_enter", "io_uring_register"}, nosys, false},
	{[]string{"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "perf_event_open", "bpf", "userfaultfd", "pidfd_getfd"}, perm, false},
	{[]string{"add_key", "keyctl", "request_key"}, perm, true},
	{[]string{"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "settimeofday", "clock_settime"}, perm, true},
	{[]string{"syslog", "acct", "quotactl", "quotactl_fd", "swapon", "swapoff", "iopl", "ioperm", "modify_ldt", "vhangup", "lookup_dcookie",
		"fanotify_init", "open_by_handle_at", "name_to_handle_at", "move_pages", "migrate_pages"}, perm, false},
	{[]string{"openat2"}, nosys, false},
}

// Every number that there may be, with no bit and with every bit of its arguments set.
func TestFilterEveryNumber(t *testing.T) {
	eachABI(t, func(t *testing.T, full bool, j judge) {
		zeros, ones := map[uint32]uint32{}, map[uint32]uint32{}
		for _, d := range denied {
			for _, name := range d.names {
				if n, ok := j.a.numbers[name]; ok && (d.full || !full) {
					zeros[n], ones[n] = d.action, d.action
				}
			}
		}
		for _, name := range []string{"clone", "chmod", "fchmod", "fchmodat", "fchmodat2", "mknod", "mknodat", "creat", "open", "openat"} {
			if n, ok := j.a.numbers[name]; ok && !full {
				ones[n] = perm
			}
		}
		for _, name := range []string{"socket", "socketpair"} {
			if !full { // family 0 is AF_UNSPEC
				zeros[j.a.numbers[name]], ones[j.a.numbers[name]] = family, family
			}
		}
		all := []uint64{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}
		for n := range uint32(2000) { // the highest is below 500
			if got, want := j.number(j.a.arch, n), orAllow(zeros, n); got != want {
				t.Errorf("call %d: %#x, want %#x", n, got, want)
			}
			if got, want := j.number(j.a.arch, n, all...), orAllow(ones, n); got != want {
				t.Errorf("call %d, all bits set: %#x, want %#x", n, got, want)
			}
		}
	})
}

func orAllow(m map[uint32]uint32, n uint32) uint32 {
	if a, ok := m[n]; ok {
		return a
	}
	return allow
}

// Rules that look at one argument: each value, with bits that the kernel ignores and with other arguments that mean
// nothing here.
func TestFilterArguments(t *testing.T) {
	type value struct {
		v      uint64
		action uint32
	}
	var families, modes, spaces, terminals []value
	for v := range uint64(64) {
		ok := slices.Contains([]uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}, v)
		families = append(families, value{v, map[bool]uint32{true: allow, false: family}[ok]})
	}
	for special := range uint64(8) { // set-uid, set-gid, sticky
		action := allow
		if special >= 2 {
			action = perm
		}
		for _, rest := range []uint64{0, 0o755, 0o777, unix.S_IFREG | 0o644, 1 << 31} {
			modes = append(modes, value{special<<9 | rest, action})
		}
	}
	for bit := range 32 {
		v, action := uint64(1)<<bit, allow
		if slices.Contains([]uint64{unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET}, v) {
			action = perm
		}
		const thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
		spaces = append(spaces, value{v, action}, value{v | thread, action}, value{v | uint64(unix.SIGCHLD), action})
	}
	for v := uint64(0x5400); v < 0x5500; v++ { // the terminal's own
		action := allow
		if v == 0x5412 || v == 0x541c { // TIOCSTI, TIOCLINUX
			action = perm
		}
		terminals = append(terminals, value{v, action})
	}
	eachABI(t, func(t *testing.T, full bool, j judge) {
		for _, r := range []struct {
			call   string
			arg    int
			full   bool
			values []value
		}{
			{"socket", 0, false, families}, {"socketpair", 0, false, families}, {"clone", 0, false, spaces}, {"ioctl", 1, true, terminals},
			{"chmod", 1, false, modes}, {"fchmod", 1, false, modes}, {"fchmodat", 2, false, modes}, {"fchmodat2", 2, false, modes},
			{"mknod", 1, false, modes}, {"mknodat", 2, false, modes}, {"creat", 1, false, modes},
		} {
			for _, v := range r.values {
				want := v.action
				if full && !r.full {
					want = allow
				}
				for _, other := range []uint64{0, 0x5412, 0o4755, unix.CLONE_NEWUSER, math.MaxUint64} {
					for _, upper := range []uint64{0, high, 1 << 63, math.MaxUint32 << 32} {
						args := []uint64{other, other, other, other, other, other}
						args[r.arg] = v.v | upper
						if got, ok := j.call(r.call, args...); ok && got != want {
							t.Fatalf("%s(%#x): %#x, want %#x", r.call, args, got, want)
						}
					}
				}
			}
		}
	})
}

// Where no namespace keeps the network away, there is no socket at all but a pair within the command.
func TestFilterLandlock(t *testing.T) {
	for _, a := range abis {
		j, like := newJudge(t, Landlock, a), newJudge(t, WorkspaceWrite, a)
		for v := range uint64(64) {
			if got, _ := j.call("socket", v); got != errno(unix.EACCES) {
				t.Errorf("socket of family %d: %#x", v, got)
			}
			want := family
			if v == unix.AF_UNIX {
				want = allow
			}
			if got, _ := j.call("socketpair", v); got != want {
				t.Errorf("pair of family %d: %#x, want %#x", v, got, want)
			}
		}
		for _, c := range callsShared {
			if got, _ := j.call(c); got != errno(unix.EACCES) {
				t.Errorf("%s: %#x", c, got)
			}
		}
		for pid, want := range map[uint64]uint32{0: allow, high: allow, 1: errno(unix.EPERM), high | 4711: errno(unix.EPERM)} {
			if got, _ := j.call("prlimit64", pid); got != want {
				t.Errorf("limits of process %#x: %#x, want %#x", pid, got, want)
			}
		}
		for n := range uint32(2000) {
			if n != a.numbers["socket"] && n != a.numbers["socketpair"] && !slices.ContainsFunc(callsShared, func(c string) bool { return a.numbers[c] == n }) &&
				j.number(a.arch, n) != like.number(a.arch, n) {
				t.Errorf("call %d is not answered as in workspace-write", n)
			}
		}
	}
}

// A mode counts only where a file may be made: else it is whatever the register held.
func TestFilterOpen(t *testing.T) {
	const directory = 0o200000 // O_DIRECTORY of amd64; that of arm64 is another bit, and neither is looked at
	eachABI(t, func(t *testing.T, full bool, j judge) {
		for _, tt := range []struct {
			flags, mode uint64
			want        uint32
		}{
			{unix.O_RDONLY, 0o6777, allow},
			{unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW, math.MaxUint64, allow},
			{directory, 0o4755, allow},
			{0o40000, 0o4755, allow},
			{unix.O_CREAT, 0o755, allow},
			{unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY, 0o1777, allow},
			{unix.O_CREAT, 0o4755, perm},
			{unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, 0o2755, perm},
			{unix.O_CREAT | high, 0o4000 | high, perm},
			{unix.O_CREAT, 0o4000 << 32, allow},
			{unix.O_CREAT << 32, 0o4755, allow},
			{0o20000000, 0o4755, perm}, // __O_TMPFILE alone, which the kernel refuses by itself
			{0o20000000 | directory | unix.O_RDWR, 0o2755, perm},
			{0o20000000 | 0o40000 | unix.O_RDWR, 0o2755, perm},
			{0o20000000 | directory | unix.O_RDWR, 0o600, allow},
		} {
			want := tt.want
			if full {
				want = allow
			}
			for call, args := range map[string][]uint64{"open": {0, tt.flags, tt.mode, 0o6777}, "openat": {math.MaxUint64, 0o4755, tt.flags, tt.mode}} {
				if got, ok := j.call(call, args...); ok && got != want {
					t.Errorf("%s(flags %#o, mode %#o): %#x, want %#x", call, tt.flags, tt.mode, got, want)
				}
			}
		}
	})
}

// Another architecture's calls have other numbers, so none of them is let through; nor is a second numbering.
func TestFilterForeign(t *testing.T) {
	eachABI(t, func(t *testing.T, _ bool, j judge) {
		for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_RISCV64, unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64,
			0, 1, math.MaxUint32, j.a.arch ^ 1<<31, j.a.arch ^ 1<<30} {
			if arch == j.a.arch {
				continue
			}
			for n := range uint32(600) {
				if got := j.number(arch, n); got != actKill {
					t.Fatalf("architecture %#x, call %d: %#x", arch, n, got)
				}
			}
		}
		for _, n := range []uint32{x32Bit, x32Bit + 1, x32Bit + 512, x32Bit | j.a.numbers["mount"], x32Bit | j.a.numbers["ioctl"], 1 << 31, math.MaxUint32} {
			want := allow // the kernel itself knows no such call
			if j.a.x32 {
				want = nosys
			}
			if got := j.number(j.a.arch, n, 0, unix.TIOCSTI); got != want {
				t.Errorf("call %#x: %#x, want %#x", n, got, want)
			}
		}
	})
}

// No call is in two lists: the second rule would never be reached.
func TestFilterListsAreDisjoint(t *testing.T) {
	names := slices.Sorted(slices.Values(filtered()))
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			t.Errorf("%s is listed twice", names[i])
		}
	}
}

func TestFilterSize(t *testing.T) {
	for _, p := range []Profile{WorkspaceWrite, ReadOnly, Full} {
		prog, err := filter(p)
		if err != nil {
			t.Fatal(err)
		}
		const most = 4096 // instructions that the kernel takes (BPF_MAXINSNS)
		if n := len(prog) / 8; len(prog)%8 != 0 || n > most || n != len(native().program(p)) {
			t.Errorf("%s: %d bytes", p, len(prog))
		}
	}
}
