package sandbox

import "golang.org/x/sys/unix"

// What is special about the calls of this architecture: nothing, the old forms were never there.
const (
	nativeArch = unix.AUDIT_ARCH_AARCH64
	nativeX32  = false
)

var nativeNumbers map[string]uint32
