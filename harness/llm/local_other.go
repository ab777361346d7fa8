//go:build !linux

package llm

import "syscall"

// serverAttributes makes the server the first of a group. If tether is killed it
// ends by itself, as far as it minds the end of its standard input: serve.py does.
func serverAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
