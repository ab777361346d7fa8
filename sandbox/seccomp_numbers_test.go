//go:build linux && (amd64 || arm64)

package sandbox

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// abis are both architectures, whatever the tests run on. The numbers are those of the kernel's tables: syscall_64.tbl of
// arch/x86 and unistd.h of asm-generic. Beside the calls of the filter there are some that must go through.
var abis = map[string]abi{
	"amd64": {arch: unix.AUDIT_ARCH_X86_64, x32: true, numbers: map[string]uint32{
		"mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "clone": 56,
		"open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
		"mount_setattr": 442, "open_tree_attr": 467, "clone3": 435, "io_uring_setup": 425, "io_uring_enter": 426,
		"io_uring_register": 427, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
		"perf_event_open": 298, "bpf": 321, "userfaultfd": 323, "pidfd_getfd": 438, "add_key": 248, "keyctl": 250, "request_key": 249,
		"syslog": 103, "acct": 163, "quotactl": 179, "quotactl_fd": 443, "reboot": 169, "swapon": 167, "swapoff": 168,
		"kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
		"settimeofday": 164, "clock_settime": 227, "iopl": 172, "ioperm": 173, "modify_ldt": 154, "vhangup": 153,
		"lookup_dcookie": 212, "fanotify_init": 300, "open_by_handle_at": 304, "name_to_handle_at": 303, "move_pages": 279,
		"migrate_pages": 256, "ioctl": 16, "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "mknod": 133,
		"mknodat": 259, "creat": 85, "open": 2, "openat": 257, "openat2": 437, "socket": 41, "socketpair": 53, "read": 0,
		"write": 1, "close": 3, "mmap": 9, "execve": 59, "fork": 57, "vfork": 58, "wait4": 61, "kill": 62, "connect": 42,
		"bind": 49, "sendmsg": 46, "mbind": 237, "set_mempolicy": 238, "memfd_create": 319, "prctl": 157, "seccomp": 317,
		"landlock_create_ruleset": 444, "pidfd_open": 434, "inotify_init1": 294,
		"prlimit64": 302, "shmget": 29, "shmat": 30, "shmctl": 31, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
		"semget": 64, "semop": 65, "semtimedop": 220, "semctl": 66, "mq_open": 240, "mq_unlink": 241,
	}},
	"arm64": {arch: unix.AUDIT_ARCH_AARCH64, numbers: map[string]uint32{
		"mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "clone": 220, "open_tree": 428,
		"move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
		"open_tree_attr": 467, "clone3": 435, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
		"ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "perf_event_open": 241, "bpf": 280,
		"userfaultfd": 282, "pidfd_getfd": 438, "add_key": 217, "keyctl": 219, "request_key": 218, "syslog": 116, "acct": 89, "quotactl": 60,
		"quotactl_fd": 443, "reboot": 142, "swapon": 224, "swapoff": 225, "kexec_load": 104, "kexec_file_load": 294,
		"init_module": 105, "finit_module": 273, "delete_module": 106, "settimeofday": 170, "clock_settime": 112, "vhangup": 58,
		"lookup_dcookie": 18, "fanotify_init": 262, "open_by_handle_at": 265, "name_to_handle_at": 264, "move_pages": 239,
		"migrate_pages": 238, "ioctl": 29, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "mknodat": 33, "openat": 56,
		"openat2": 437, "socket": 198, "socketpair": 199, "read": 63, "write": 64, "close": 57, "mmap": 222, "execve": 221,
		"wait4": 260, "kill": 129, "connect": 203, "bind": 200, "sendmsg": 211, "mbind": 235, "set_mempolicy": 237,
		"memfd_create": 279, "prctl": 167, "seccomp": 277, "landlock_create_ruleset": 444, "pidfd_open": 434,
		"inotify_init1": 26, "prlimit64": 261, "shmget": 194, "shmat": 196, "shmctl": 195, "msgget": 186, "msgsnd": 189,
		"msgrcv": 188, "msgctl": 187, "semget": 190, "semop": 193, "semtimedop": 192, "semctl": 191, "mq_open": 180, "mq_unlink": 181,
	}},
}

// oldForms are calls that arm64 never had: newer ones with "at" in their name do the same.
var oldForms = []string{"iopl", "ioperm", "modify_ldt", "chmod", "mknod", "creat", "open", "fork", "vfork"}

// The filter of this machine is made of the numbers that the tests are made of, and no name in a rule is misspelt.
func TestFilterNumbers(t *testing.T) {
	mine := abis[runtime.GOARCH]
	if got := native(); got.arch != mine.arch || got.x32 != mine.x32 {
		t.Errorf("architecture %#x (x32: %v), want %#x (%v)", got.arch, got.x32, mine.arch, mine.x32)
	}
	for name, n := range native().numbers {
		if mine.numbers[name] != n {
			t.Errorf("%s is %d, want %d", name, n, mine.numbers[name])
		}
	}
	for arch, a := range abis {
		for _, name := range filtered() {
			_, ok := a.numbers[name]
			if old := slices.Contains(oldForms, name); !ok && (arch != "arm64" || !old) {
				t.Errorf("%s has no number for %s", arch, name)
			}
			if _, ok := native().numbers[name]; arch == runtime.GOARCH && !ok && (arch != "arm64" || !slices.Contains(oldForms, name)) {
				t.Errorf("the filter has no number for %s", name)
			}
		}
		if n := slices.Sorted(maps.Values(a.numbers)); len(slices.Compact(n)) != len(a.numbers) {
			t.Errorf("%s has a number twice", arch)
		}
	}
}

// filtered returns the names of all calls that any rule is about.
func filtered() []string {
	names := slices.Concat(callsUnknown, callsMount, callsTrace, callsKeys, callsKernel, callsSystem, callsShared, []string{"ioctl", "clone", "socket", "socketpair", "prlimit64"})
	for _, r := range slices.Concat(callsMode, callsOpen) {
		names = append(names, r.call)
	}
	return names
}
