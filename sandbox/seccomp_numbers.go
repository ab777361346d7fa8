//go:build linux && (amd64 || arm64)

package sandbox

import (
	"maps"

	"golang.org/x/sys/unix"
)

// commonNumbers are the calls of the filter that every architecture has, each with its own number.
var commonNumbers = map[string]uint32{
	"open_tree": unix.SYS_OPEN_TREE, "move_mount": unix.SYS_MOVE_MOUNT, "fsopen": unix.SYS_FSOPEN, "fsconfig": unix.SYS_FSCONFIG,
	"fsmount": unix.SYS_FSMOUNT, "fspick": unix.SYS_FSPICK, "mount_setattr": unix.SYS_MOUNT_SETATTR,
	"open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "clone3": unix.SYS_CLONE3, "io_uring_setup": unix.SYS_IO_URING_SETUP,
	"io_uring_enter": unix.SYS_IO_URING_ENTER, "io_uring_register": unix.SYS_IO_URING_REGISTER, "openat2": unix.SYS_OPENAT2,
	"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "chroot": unix.SYS_CHROOT,
	"unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV,
	"process_vm_writev": unix.SYS_PROCESS_VM_WRITEV, "kcmp": unix.SYS_KCMP, "perf_event_open": unix.SYS_PERF_EVENT_OPEN,
	"bpf": unix.SYS_BPF, "userfaultfd": unix.SYS_USERFAULTFD, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "add_key": unix.SYS_ADD_KEY, "keyctl": unix.SYS_KEYCTL,
	"request_key": unix.SYS_REQUEST_KEY, "reboot": unix.SYS_REBOOT, "kexec_load": unix.SYS_KEXEC_LOAD,
	"kexec_file_load": unix.SYS_KEXEC_FILE_LOAD, "init_module": unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE,
	"delete_module": unix.SYS_DELETE_MODULE, "settimeofday": unix.SYS_SETTIMEOFDAY, "clock_settime": unix.SYS_CLOCK_SETTIME,
	"syslog": unix.SYS_SYSLOG, "acct": unix.SYS_ACCT, "quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD,
	"swapon": unix.SYS_SWAPON, "swapoff": unix.SYS_SWAPOFF, "vhangup": unix.SYS_VHANGUP, "lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE,
	"fanotify_init": unix.SYS_FANOTIFY_INIT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
	"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "move_pages": unix.SYS_MOVE_PAGES, "migrate_pages": unix.SYS_MIGRATE_PAGES,
	"ioctl": unix.SYS_IOCTL, "clone": unix.SYS_CLONE, "socket": unix.SYS_SOCKET, "socketpair": unix.SYS_SOCKETPAIR,
	"fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT, "fchmodat2": unix.SYS_FCHMODAT2, "mknodat": unix.SYS_MKNODAT,
	"openat": unix.SYS_OPENAT, "prlimit64": unix.SYS_PRLIMIT64,
	"shmget": unix.SYS_SHMGET, "shmat": unix.SYS_SHMAT, "shmctl": unix.SYS_SHMCTL, "msgget": unix.SYS_MSGGET, "msgsnd": unix.SYS_MSGSND,
	"msgrcv": unix.SYS_MSGRCV, "msgctl": unix.SYS_MSGCTL, "semget": unix.SYS_SEMGET, "semop": unix.SYS_SEMOP, "semtimedop": unix.SYS_SEMTIMEDOP,
	"semctl": unix.SYS_SEMCTL, "mq_open": unix.SYS_MQ_OPEN, "mq_unlink": unix.SYS_MQ_UNLINK,
}

// native returns the architecture that this program was compiled for.
func native() abi {
	a := abi{arch: nativeArch, x32: nativeX32, numbers: maps.Clone(commonNumbers)}
	maps.Copy(a.numbers, nativeNumbers)
	return a
}
