package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// machine are the checks of what the sandbox is made of. It needs all of them in
// its usual profile, and says so itself: they tell why.
func (d *diagnosis) machine(ctx context.Context) []check {
	return []check{checkBwrap(ctx), checkNamespaces(ctx), checkSeccomp(), checkLandlock()}
}

func checkBwrap(ctx context.Context) check {
	c := check{Name: "bwrap", Repair: "apt install bubblewrap (0.4 or newer)"}
	path, err := exec.LookPath("bwrap")
	if err != nil {
		c.Found = "not on PATH"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, aMoment)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		c.Found = fmt.Sprintf("%s does not start (%v)", path, err)
		return c
	}
	c.OK, c.Found = true, fmt.Sprintf("%s, %s", path, strings.TrimSpace(string(out)))
	return c
}

// checkNamespaces makes a user namespace, as the sandbox does.
func checkNamespaces(ctx context.Context) check {
	c := check{Name: "namespaces", Repair: "sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000; with AppArmor: kernel.apparmor_restrict_unprivileged_userns=0; in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined"}
	ctx, cancel := context.WithTimeout(ctx, aMoment)
	defer cancel()
	out, err := exec.CommandContext(ctx, "bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true").CombinedOutput()
	if err != nil {
		c.Found = fmt.Sprintf("a user namespace cannot be made: %s (%v)", firstLine(strings.TrimSpace(string(out))), err)
		return c
	}
	c.OK, c.Found = true, "user namespaces can be made"
	return c
}

// checkSeccomp asks the kernel which answers its filters can give.
func checkSeccomp() check {
	c := check{Name: "seccomp", Repair: "a kernel with CONFIG_SECCOMP_FILTER; inside gVisor and the like choose --sandbox landlock"}
	text, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil {
		c.Found = fmt.Sprintf("this kernel does not filter system calls (%v)", reason(err))
		return c
	}
	c.OK, c.Found = strings.Contains(string(text), "errno"), "filters of system calls: "+strings.TrimSpace(string(text))
	return c
}

// newestLandlock is what the profile landlock needs: version 6 keeps signals in
// (Linux 6.12).
const newestLandlock = 6

// checkLandlock asks the kernel for the version of Landlock.
func checkLandlock() check {
	c := check{Name: "landlock", Repair: "only the profile landlock needs it: Linux 6.12, with lsm=landlock,… on the kernel's command line"}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		c.Found = fmt.Sprintf("this kernel has none (%v)", errno)
		return c
	}
	c.OK, c.Found = version >= newestLandlock, fmt.Sprintf("version %d, and the profile landlock needs %d", version, newestLandlock)
	return c
}
