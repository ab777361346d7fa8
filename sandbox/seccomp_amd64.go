package sandbox

import "golang.org/x/sys/unix"

// What is special about the calls of this architecture: it still has the old forms that newer ones left out, and x32,
// a second numbering of the same calls.
const (
	nativeArch = unix.AUDIT_ARCH_X86_64
	nativeX32  = true
)

var (
	callsNative = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT}
	modesNative = []argRule{{unix.SYS_CHMOD, 1}, {unix.SYS_MKNOD, 1}, {unix.SYS_CREAT, 1}}
	opensNative = []argRule{{unix.SYS_OPEN, 1}}
)
