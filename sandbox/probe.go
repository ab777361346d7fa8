package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// standardBwrap comes before any other: distributions tie the right to make user namespaces to this path (AppArmor).
const standardBwrap = "/usr/bin/bwrap"

// standardName is how texts call it.
const standardName = "bubblewrap"

// textOff names the way out that is always there, and what it means.
const textOff = "or run without a sandbox, at your own risk: --sandbox off"

// textElsewhere names the ways out of a machine that is not Linux.
const textElsewhere = "run tether in a Linux virtual machine or container, or this once without a sandbox, at your own risk: --sandbox off"

// supported is the error of every profile but Off on a system other than Linux.
func supported(system string) error {
	if system == "linux" {
		return nil
	}
	return &UnavailableError{Cause: "it is made of namespaces, seccomp and Landlock, which only Linux has", Repair: textElsewhere, system: system}
}

// textWeaker names both ways out of a machine on which bubblewrap cannot run.
const textWeaker = "or take the weaker promise of --sandbox landlock; " + textOff

// errProbe tells the probe's own time limit from the caller's.
var errProbe = errors.New("the probe did not end")

// prepare finds the launcher, makes the filter and runs "true" once in the very sandbox that commands will get.
func (b *Box) prepare(ctx context.Context) error {
	if err := supported(runtime.GOOS); err != nil {
		return err
	}
	if b.policy.Profile == Landlock {
		return b.prepareLandlock(ctx)
	}
	var err error
	if b.filter, err = filter(b.policy.Profile); err != nil {
		return &UnavailableError{Cause: err.Error(), Repair: textOff}
	}
	if b.host.Bwrap, err = findBwrap(standardBwrap, exec.LookPath); err != nil {
		return err
	}
	return b.probe(ctx, standardName)
}

// probe runs "true" and says what a failure means. By is the name of what confines.
func (b *Box) probe(ctx context.Context, by string) error {
	const limit = 20 * time.Second // it takes about 15 ms; a machine under full load is no reason to refuse
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errProbe)
	defer cancel()
	o, err := b.try(ctx)
	var le *LaunchError
	var re *RefusedError
	switch {
	case errors.As(err, &re): // the workspace is at fault, not the machine
		return re
	case errors.As(err, &le):
		return explain(le, b.host.Nested, by)
	case ctx.Err() != nil && context.Cause(ctx) == errProbe:
		return &UnavailableError{Cause: by + " did not run a command within " + limit.String(), Repair: "try again when the machine is less busy; " + textOff}
	case err != nil:
		return err
	case o.Status != 0:
		return explain(&LaunchError{Stderr: fmt.Sprintf("status %d: %s", o.Status, strings.TrimSpace(o.Output))}, b.host.Nested, by)
	}
	return nil
}

// try runs the probe with all that the machine may offer and takes back what it does not: an older launcher does not
// know descriptors in place of paths, and the kernel may forbid to start a program in a control group.
func (b *Box) try(ctx context.Context) (Outcome, error) {
	b.host.Pins, b.groups.dir = true, findGroups(groupRoot, smallFile("/proc/self/cgroup"))
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // without it, nothing is frozen
	b.host.Freeze = writableMounts(string(mounts))
	if b.groups.dir != "" {
		b.groups.sweep()
	}
	for {
		o, err := b.Run(ctx, Cmd{Argv: []string{"true"}})
		var le *LaunchError
		switch {
		case !errors.As(err, &le):
			return o, err
		case b.groups.dir != "" && le.Err != nil && le.Stage == stageStart:
			b.groups.dir = ""
		case b.host.Pins && strings.Contains(le.Stderr, "Unknown option") && strings.Contains(le.Stderr, "bind-fd"):
			b.host.Pins = false
		case b.host.Freeze != nil && strings.Contains(le.Stderr, "oldroot"): // one that follows no links needs it not
			b.host.Freeze = nil
		default:
			return o, err
		}
	}
}

// findBwrap returns the launcher: the one of the distribution, else an absolute one on PATH that only root can change.
func findBwrap(standard string, lookPath func(string) (string, error)) (string, error) {
	if firstFile(standard) != "" {
		return standard, nil
	}
	missing := &UnavailableError{Cause: "bubblewrap is not installed", Repair: "apt install bubblewrap (dnf, pacman, apk: the same name); " + textWeaker}
	found, err := lookPath("bwrap")
	if err != nil || !filepath.IsAbs(found) {
		return "", missing
	}
	if found, err = filepath.EvalSymlinks(found); err != nil {
		return "", missing
	}
	fi, err := os.Stat(found)
	if err != nil {
		return "", missing
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 || fi.Mode().Perm()&0o022 != 0 {
		return "", &UnavailableError{Cause: found + " is not root's own file, so anyone could replace the sandbox",
			Repair: "apt install bubblewrap (dnf, pacman, apk: the same name)"}
	}
	return found, nil
}

// causes tells apart why bubblewrap failed, by its own words. The first match counts.
var causes = []struct{ seen, cause, repair string }{
	{"Unknown option", "bubblewrap is older than 0.8", "update the package bubblewrap; " + textWeaker},
	{"max_*_namespaces exceeded", "this system allows no more user namespaces",
		"as root: sysctl -w user.max_user_namespaces=15000; " + textWeaker},
	{"does not support user namespaces", "this kernel has no user namespaces",
		"start it with user_namespace.enable=1, or take one with CONFIG_USER_NS; " + textWeaker},
	{"cannot open /proc/sys/user/", "the container keeps /proc/sys read-only, so more user namespaces inside cannot be forbidden",
		"run tether outside of the container, or start it with: --security-opt systempaths=unconfined; " + textWeaker},
	{"No permissions to create new namespace", "this system does not let you make user namespaces (a container, or kernel.unprivileged_userns_clone=0)",
		"in a container: run tether outside of it, or give it user namespaces (docker run --security-opt seccomp=unconfined); else as root: sysctl -w kernel.unprivileged_userns_clone=1; " + textWeaker},
	{"setting up uid map: Permission denied", causeAppArmor, repairAppArmor},
	{"Failed RTM_NEWADDR", causeAppArmor, repairAppArmor},
	{"Can't mount proc", "the container hides parts of /proc, so a private one cannot be mounted",
		"run tether outside of the container, or start it with: --security-opt systempaths=unconfined; " + textWeaker},
	{"Resource temporarily unavailable", "the limit on your processes is too low", "raise it: ulimit -u; " + textWeaker},
}

// What to say on Ubuntu 23.10 and later. The profile is for one path; the sysctl would open the door to every program.
const (
	causeAppArmor  = "AppArmor keeps bubblewrap from making user namespaces (Ubuntu 23.10 and later)"
	repairAppArmor = "as root, allow it for this one program: printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bwrap " +
		standardBwrap + " flags=(unconfined) {\\n  userns,\\n}\\n' > /etc/apparmor.d/bwrap && apparmor_parser -r /etc/apparmor.d/bwrap; " + textWeaker
)

// explain turns the launcher's failure into its cause and the repair.
func explain(le *LaunchError, nested bool, by string) *UnavailableError {
	said := le.Stderr
	if le.Err != nil {
		said = strings.TrimSpace(said + " " + le.Err.Error())
	}
	if nested {
		return &UnavailableError{Cause: "this is the inside of a tether sandbox, and one in another is not supported",
			Repair: "run tether outside", Stderr: said}
	}
	for _, c := range causes {
		if strings.Contains(said, c.seen) {
			return &UnavailableError{Cause: c.cause, Repair: c.repair, Stderr: said}
		}
	}
	if by != standardName {
		return &UnavailableError{Cause: by + " failed: " + said, Repair: textOff, Stderr: said}
	}
	return &UnavailableError{Cause: by + " failed: " + said, Repair: "update the package bubblewrap; " + textWeaker, Stderr: said}
}
