package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// File descriptors that the launcher and the shell inherit. They are fixed, so that the vector does not depend on what
// else is open.
const (
	fdArgs    = 3 // the options, NUL separated: hidden from /proc/1/cmdline
	fdSeccomp = 4 // the filter program
	fdStatus  = 5 // the launcher reports the exit status here; the command cannot write to it
	fdDir     = 6 // the shell reports its last working directory here
	fdShell   = 7 // the lines that make it do so
	// 8 and 9 are the shim's
	fdBrake   = 10 // the launcher waits here until its mounts were looked at
	fdRoot    = 11 // the workspace
	fdProtect = 12 // the first of the protected paths in it; the others follow, then the repositories outside
)

// Sizes in bytes of the private file systems. They are memory, so they are bounded.
const (
	sizeTemp  = 512 << 20 // compilers and test suites unpack here
	sizeHome  = 64 << 20
	sizeSmall = 64 << 20 // /dev/shm and /var/tmp
	sizeRun   = 16 << 20
	sizeEmpty = 4096 // one page: a cover that holds nothing
)

// options returns the launcher's options for one command, without the program. The order matters: a later mount covers
// an earlier one.
func options(p Policy, h host, t tree, dir string, shell bool) []string {
	var v vector
	v.namespaces(p, h)
	if shell {
		v.add("--sync-fd", strconv.Itoa(fdDir))
	}
	if p.Profile == Full {
		v.add("--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc")
		v.processOne()
		v.rootOnly(h)
		v.protect(p, h, t)
	} else {
		v.system(h)
		v.private(p, h)
		v.network(p, h)
		v.workspace(p, h, t)
	}
	for _, d := range t.Hide {
		v.add("--size", strconv.Itoa(sizeEmpty), "--tmpfs", d, "--remount-ro", d)
	}
	if h.Pins {
		v.add("--file", strconv.Itoa(fdBrake), "/dev/null")
	}
	if p.Profile != Full {
		v.add("--remount-ro", "/var", "--remount-ro", "/dev", "--remount-ro", "/")
	}
	v.add("--clearenv")
	for _, e := range environ(p, h, shell) {
		name, value, _ := strings.Cut(e, "=")
		v.add("--setenv", name, value)
	}
	v.add("--chdir", filepath.Join(p.Root, dir))
	return v
}

// vector is an argument list in the making.
type vector []string

func (v *vector) add(args ...string) { *v = append(*v, args...) }

// namespaces isolates processes, network and host name, and drops every capability. --unshare-user is spelled out: the
// "try" form goes on without, and then real root keeps the machine's clock and host name in reach.
func (v *vector) namespaces(p Policy, h host) {
	v.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
	if p.Network != NetHost {
		v.add("--unshare-net")
	}
	if p.Profile != Full {
		v.add("--disable-userns")
	}
	// --new-session takes the command out of the process group, so a kill needs --die-with-parent to reach it.
	v.add("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "tether")
	if h.EUID == 0 {
		v.add("--uid", "1000", "--gid", "1000")
	}
	v.add("--json-status-fd", strconv.Itoa(fdStatus), "--seccomp", strconv.Itoa(fdSeccomp))
}

// system shows programs, libraries and the harmless part of /etc. It is a list of what is allowed: a read-only bind of
// "/" would leave every UNIX socket below /run connectable.
func (v *vector) system(h host) {
	v.add("--ro-bind", "/usr", "/usr")
	for _, d := range topLevel {
		if target, ok := h.Links[d]; ok {
			v.add("--symlink", target, "/"+d)
		} else if slices.Contains(h.Dirs, d) {
			v.add("--ro-bind", "/"+d, "/"+d)
		}
	}
	v.add("--ro-bind", "/etc", "/etc")
	for _, f := range h.Files {
		v.add("--ro-bind", "/dev/null", f)
	}
	for _, d := range h.Folders {
		v.add("--size", strconv.Itoa(sizeEmpty), "--tmpfs", d)
	}
	v.add("--ro-bind-try", "/opt", "/opt", "--ro-bind-try", "/nix/store", "/nix/store", "--proc", "/proc")
	v.processOne()
	v.rootOnly(h)
	v.add("--dev", "/dev")
}

// processOne covers the memory of process 1. It is the launcher, of the same user as the command, and reports the exit
// status: what can be written there says how the command ended.
func (v *vector) processOne() {
	v.add("--ro-bind", "/dev/null", "/proc/1/mem", "--ro-bind", "/dev/null", "/proc/1/task/1/mem")
}

// rootOnly closes the door that a user namespace leaves open for real root: /proc/sys/kernel/core_pattern and its
// neighbours belong to uid 0 of the machine and would open for writing.
func (v *vector) rootOnly(h host) {
	if h.EUID == 0 {
		v.add("--ro-bind", "/proc/sys", "/proc/sys")
	}
}

// private mounts the folders that a command may fill and that vanish with it: temporary files and a home directory with
// nothing but tools and a cache in it. /var is sealed only at the end, since a workspace or a home may lie below it.
func (v *vector) private(p Policy, h host) {
	v.tmpfs("1777", sizeSmall, "/dev/shm")
	v.tmpfs("1777", sizeTemp, "/tmp")
	v.tmpfs("", sizeRun, "/run")
	v.add("--tmpfs", "/var", "--symlink", "../run", "/var/run")
	v.tmpfs("1777", sizeSmall, "/var/tmp")
	v.tmpfs("", sizeHome, h.Home)
	for _, t := range h.Tools {
		if !system(t.At) && !within(t.At, p.Root) {
			v.add("--ro-bind-try", t.From, t.At)
		}
	}
	cache := filepath.Join(h.Home, ".cache")
	if p.Cache != "" && p.Profile == WorkspaceWrite {
		v.add("--bind", p.Cache, cache)
	} else {
		v.tmpfs("", sizeTemp, cache) // what a compiler keeps there does not fit into the home
	}
}

// tmpfs mounts an empty file system of at most size bytes.
func (v *vector) tmpfs(perms string, size int, path string) {
	if perms != "" {
		v.add("--perms", perms)
	}
	v.add("--size", strconv.Itoa(size), "--tmpfs", path)
}

// workspace shows the workspace and covers what other programs would execute or believe. A mount point cannot be
// renamed away, which is why .git is one as a whole: with only its hooks covered, "mv .git x" and a new .git would do.
func (v *vector) workspace(p Policy, h host, t tree) {
	bind := "--bind"
	if p.Profile == ReadOnly {
		bind = "--ro-bind"
	}
	for i, d := range t.GitDirs {
		v.bind(h, "--ro-bind", fdProtect+len(t.Protect)+i, d)
	}
	v.bind(h, bind, fdRoot, p.Root)
	v.freeze(h)
	v.protect(p, h, t)
	for _, rel := range t.Deaf {
		v.add("--ro-bind", "/dev/null", filepath.Join(p.Root, rel))
	}
}

// freeze makes the host's file systems read-only for the launcher itself. One older than 0.12 follows a link that another
// command puts in the place of a folder of the workspace, and makes the missing end of a mount wherever the link leads
// (CVE-2026-87766). While it works it has the host at /oldroot, beside the new root. What is to be writable is bound
// already, and keeps its own flags.
func (v *vector) freeze(h host) {
	for _, place := range h.Freeze {
		v.add("--remount-ro", "/../oldroot"+strings.TrimSuffix(place, "/"))
	}
}

// protect makes the protected paths read-only.
func (v *vector) protect(p Policy, h host, t tree) {
	for i, name := range t.Protect {
		v.bind(h, "--ro-bind", fdProtect+i, filepath.Join(p.Root, name))
	}
}

// bind shows a path at its own place: by the descriptor through which it was checked, since another command may have
// put a link there meanwhile, or by name if the launcher is too old for that.
func (v *vector) bind(h host, option string, fd int, path string) {
	if h.Pins {
		v.add(option+"-fd", strconv.Itoa(fd), path)
	} else {
		v.add(option, path, path)
	}
}

// limits are those of one command, set inside the namespaces: outside, they would count the user's other processes. There
// is none on address space, which V8, the JVM and sanitizers reserve by the terabyte. One byte of core is no core file,
// and a word to the kernel (fs/coredump.c) not to start the host's collector of cores, which runs as root: with 0 it does.
var limits = []struct {
	name  string // as prlimit has it
	value uint64
	flags string // as the shell's ulimit has it; shells differ in the one for processes
	unit  uint64 // bytes in one of ulimit's
}{
	{"nproc", 512, "u p", 1},
	{"core", 1, "c", 512},
	{"nofile", 4096, "n", 1},
	{"fsize", 1 << 30, "f", 512},
	{"memlock", 64 << 10, "l", 1024},
}

// shim returns the program that sets the limits and then becomes the command. It also turns a program that is missing
// into status 127, which the launcher would report as 1.
func shim(p Policy, h host) []string {
	switch {
	case p.Profile == Off: // limits would count, and so hit, the user's other processes
		return []string{"/bin/sh", "-c", `exec "$@"`, "sh"}
	case shimmed(p, h):
		return shimArgs(p, h)
	}
	prlimit, ulimit := []string{h.Prlimit}, ""
	for _, l := range limits {
		value := h.allowed(l.name, l.value)
		prlimit = append(prlimit, fmt.Sprintf("--%s=%d", l.name, value))
		for i, flag := range strings.Fields(l.flags) {
			ulimit += []string{"", "|| "}[i] + fmt.Sprintf("ulimit -%s %d 2>/dev/null ", flag, value/l.unit)
		}
		ulimit += "; "
	}
	if h.Prlimit != "" {
		return append(prlimit, "--")
	}
	return []string{"/bin/sh", "-c", ulimit + `exec "$@"`, "sh"}
}

// reportTo is where a shell says at its end in which folder it stands. Inside a sandbox process 1 holds the pipe
// (--sync-fd), so that no program that the shell starts inherits it.
func reportTo(p Policy) string {
	if !launched(p) {
		return "&" + strconv.Itoa(fdDir)
	}
	return "/proc/1/fd/" + strconv.Itoa(fdDir)
}

// reportDir makes the shell report. What is read there is checked, since the line can write to it too.
func reportDir(p Policy, builtin string) string {
	return "trap '{ " + builtin + "pwd -P >" + reportTo(p) + "; } 2>/dev/null || :' EXIT\n"
}

// shellLines is read by bash before the line (BASH_ENV). The line itself stays an argument of its own, so its quotes
// cannot break anything and its errors are reported as bash words them.
func shellLines(p Policy) string {
	return "unset BASH_ENV\nexec " + strconv.Itoa(fdShell) + "<&-\n" + reportDir(p, "builtin ")
}

// plainLines does the same for a sh, which reads no such file.
func plainLines(p Policy) string {
	return "exec " + strconv.Itoa(fdShell) + "<&-\n" + reportDir(p, "") + `set -- "$1"; eval "$1"`
}

// program returns the command's own argument list.
func program(p Policy, h host, c Cmd) []string {
	switch {
	case c.Shell == "":
		return c.Argv
	case h.Bash != "":
		return []string{h.Bash, "--noprofile", "--norc", "-c", "--", c.Shell, "bash"} // the last is its name in messages
	}
	return []string{"/bin/sh", "-c", plainLines(p), "sh", c.Shell}
}
