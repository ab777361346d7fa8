package llm

import "syscall"

// serverAttributes makes the server the first of a group, which the kernel kills
// with the thread that started it.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
