//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Arguments that no call accepts: they give an answer of the kernel that is not the filter's, and do nothing.
const (
	badPointer = 1
	badFile    = ^uintptr(0)
	badProcess = 0x7fffffff
)

// rawCalls are calls with their arguments, and the filter's answer in the profiles that isolate.
var rawCalls = []struct {
	name string
	args []uintptr
	want unix.Errno
	full bool // the full profile answers the same
}{
	{"mount", []uintptr{badPointer, badPointer, badPointer, 0, badPointer}, unix.EPERM, false},
	{"umount2", []uintptr{badPointer, 0}, unix.EPERM, false},
	{"chroot", []uintptr{badPointer}, unix.EPERM, false},
	{"unshare", []uintptr{unix.CLONE_PIDFD}, unix.EPERM, false}, // a flag of clone alone
	{"setns", []uintptr{badFile, 0}, unix.EPERM, false},
	{"clone", []uintptr{unix.CLONE_NEWUSER | unix.CLONE_THREAD}, unix.EPERM, false}, // a thread shares its namespaces
	{"clone3", []uintptr{0, 0}, unix.ENOSYS, false},
	{"open_tree", []uintptr{badFile, badPointer, 0}, unix.ENOSYS, false},
	{"fsopen", []uintptr{badPointer, 0}, unix.ENOSYS, false},
	{"io_uring_setup", []uintptr{0, badPointer}, unix.ENOSYS, false},
	{"io_uring_enter", []uintptr{badFile, 0, 0, 0}, unix.ENOSYS, false},
	{"openat2", []uintptr{badFile, badPointer, badPointer, 0}, unix.ENOSYS, false},
	{"ptrace", []uintptr{unix.PTRACE_SEIZE, badProcess}, unix.EPERM, false},
	{"process_vm_readv", []uintptr{badProcess, 0, 0, 0, 0, 0}, unix.EPERM, false},
	{"kcmp", []uintptr{badProcess, badProcess, 0, 0, 0}, unix.EPERM, false},
	{"perf_event_open", []uintptr{badPointer, 0, 0, badFile, 0}, unix.EPERM, false},
	{"name_to_handle_at", []uintptr{badFile, badPointer, badPointer, badPointer, 0}, unix.EPERM, false},
	{"quotactl", []uintptr{0xffff << 8, 0, 0, 0}, unix.EPERM, false},
	{"keyctl", []uintptr{9999}, unix.EPERM, true},
	{"add_key", []uintptr{badPointer, badPointer, 0, 0, 0}, unix.EPERM, true},
	{"settimeofday", []uintptr{badPointer, 0}, unix.EPERM, true},
	{"ioctl", []uintptr{badFile, unix.TIOCSTI | 1<<32}, unix.EPERM, true},
	{"ioctl", []uintptr{badFile, tiocLinux}, unix.EPERM, true},
	{"fchmod", []uintptr{badFile, 0o4755}, unix.EPERM, false},
	{"fchmodat", []uintptr{badFile, badPointer, 0o2755}, unix.EPERM, false},
	{"fchmodat2", []uintptr{badFile, badPointer, 0o4755, 0}, unix.EPERM, false},
	{"mknodat", []uintptr{badFile, badPointer, unix.S_IFREG | 0o4755, 0}, unix.EPERM, false},
	{"openat", []uintptr{badFile, badPointer, unix.O_CREAT | unix.O_WRONLY, 0o4755}, unix.EPERM, false},
	{"chmod", []uintptr{badPointer, 0o4755}, unix.EPERM, false},
	{"creat", []uintptr{badPointer, 0o2755}, unix.EPERM, false},
	{"open", []uintptr{badPointer, unix.O_CREAT, 0o6755}, unix.EPERM, false},
	{"socket", []uintptr{1000, unix.SOCK_STREAM, 0}, unix.EAFNOSUPPORT, true}, // beyond all families: the kernel's answer too
}

// answers makes the calls, and returns one line for each.
func answers() error {
	var b strings.Builder
	for _, c := range rawCalls {
		n, ok := native().numbers[c.name]
		if !ok {
			continue
		}
		var a [6]uintptr
		copy(a[:], c.args)
		_, _, e := unix.RawSyscall6(uintptr(n), a[0], a[1], a[2], a[3], a[4], a[5])
		fmt.Fprintf(&b, "%s %d\n", c.name, int(e))
	}
	return errors.New(b.String())
}

// What the program of the tests gets in a sandbox is what the filter says, and without the rule it would get something
// else: the full profile, which lacks most rules, shows it.
func TestFilterAnswers(t *testing.T) {
	root := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, self, filepath.Join(root, "self"))
	for _, p := range []Profile{WorkspaceWrite, ReadOnly, Full} {
		o := do(t, newBox(t, Policy{Root: root, Profile: p}), Cmd{Argv: []string{"./self", inside, "answers"}})
		lines := strings.Split(strings.TrimSpace(o.Output), "\n")
		for _, c := range rawCalls {
			if _, ok := native().numbers[c.name]; !ok {
				continue
			}
			if len(lines) == 0 {
				t.Fatalf("%s: no answer to %s: %+v", p, c.name, o)
			}
			filtered := lines[0] == fmt.Sprintf("%s %d", c.name, int(c.want))
			if want := p != Full || c.full; filtered != want {
				t.Errorf("%s, %s(%#x): %q; the filter's answer would be %d", p, c.name, c.args, lines[0], int(c.want))
			}
			lines = lines[1:]
		}
	}
}
