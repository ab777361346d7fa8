package sandbox

import "golang.org/x/sys/unix"

// What is special about the calls of this architecture: it still has the old forms that newer ones left out, and x32,
// a second numbering of the same calls.
const (
	nativeArch = unix.AUDIT_ARCH_X86_64
	nativeX32  = true
)

var nativeNumbers = map[string]uint32{
	"iopl": unix.SYS_IOPL, "ioperm": unix.SYS_IOPERM, "modify_ldt": unix.SYS_MODIFY_LDT,
	"chmod": unix.SYS_CHMOD, "mknod": unix.SYS_MKNOD, "creat": unix.SYS_CREAT, "open": unix.SYS_OPEN,
}
