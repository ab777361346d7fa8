//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFindGroups(t *testing.T) {
	root := t.TempDir()
	for dir, handsOn := range map[string]string{
		"":                            "memory pids", // no process may be put there, but that is found out later
		"user.slice":                  "cpu memory",
		"user.slice/own.scope":        "",
		"app.slice":                   "cpu memory pids",
		"app.slice/term.scope":        "",
		"delegated":                   "memory pids",
		"delegated/x":                 "memory pids",
		"system.slice":                "memorypids",
		"system.slice/docker-1.scope": "",
	} {
		write(t, filepath.Join(root, dir, "cgroup.subtree_control"), handsOn+"\n")
		write(t, filepath.Join(root, dir, "cgroup.procs"), "")
	}
	for self, want := range map[string]string{
		"0::/app.slice/term.scope":                 "app.slice",
		"12:memory:/x\n0::/app.slice/term.scope\n": "app.slice",
		"0::/delegated/x":                          "delegated/x",
		"0::/user.slice/own.scope":                 "-",
		"0::/system.slice/docker-1.scope":          "-",
		"0::/nowhere/at/all":                       "-",
		"0::/":                                     "",
		"4:memory:/app.slice/term.scope":           "-",
		"":                                         "-",
	} {
		if want = filepath.Join(root, want); strings.HasSuffix(want, "-") {
			want = ""
		}
		if got := findGroups(root, self); got != want {
			t.Errorf("%q: %q, want %q", self, got, want)
		}
	}
}

// The files of a group, in a folder that stands in for the kernel's.
func TestGroupLimits(t *testing.T) {
	g := groups{dir: t.TempDir()}
	c, err := g.make(Policy{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "512"} {
		if got := read(t, filepath.Join(c.dir, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	d, err := g.make(Policy{Memory: 1})
	if err != nil || c.dir == d.dir {
		t.Errorf("the second: %v, %v", d, err)
	}
	for events, want := range map[string]bool{
		"low 0\noom 1\noom_kill 1\noom_group_kill 1\n": true,
		"low 0\noom 1\noom_kill 3\n":                   true,
		"low 7\nhigh 9\noom 0\noom_kill 0\n":           false,
		"":                                             false,
	} {
		c, err := g.make(Policy{})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(c.dir, "memory.events"), events)
		if got := c.end(); got != want {
			t.Errorf("%q: %v, want %v", events, got, want)
		}
		if got := read(t, filepath.Join(c.dir, "cgroup.kill")); got != "1" {
			t.Errorf("cgroup.kill: %q", got)
		}
	}
	var none groups
	c, err = none.make(Policy{})
	if c.kill(); c != nil || err != nil || c.end() {
		t.Errorf("without groups: %v, %v", c, err)
	}
}

func TestGroupCannotBeMade(t *testing.T) {
	g := groups{dir: filepath.Join(t.TempDir(), "missing")}
	if c, err := g.make(Policy{}); c != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, %v", c, err)
	}
}

func TestGroupsSwept(t *testing.T) {
	dir := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		fmt.Sprintf("%s%d-1", groupPrefix, dead.Process.Pid): false,
		fmt.Sprintf("%s%d-1", groupPrefix, os.Getpid()):      true,
		groupPrefix + "x-1": true,
		"other":             true,
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if exists(filepath.Join(dir, name)) != stays {
				t.Errorf("%s: is there: %v, want %v", name, !stays, stays)
			}
		}()
	}
	g := groups{dir: dir}
	g.sweep()
}

// The kernel's own groups, as far as this machine lets a process make any: a command is born in one, all of it ends by
// one word, and the folder goes.
func TestGroupOfTheKernel(t *testing.T) {
	dir := kernelGroups(t)
	if dir == "" {
		t.Log("this machine lets nobody make a control group; the watchdog takes its place")
		return
	}
	c := &group{dir: filepath.Join(dir, fmt.Sprintf("%s%d-test", groupPrefix, os.Getpid()))}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.fd, err = os.Open(c.dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "(setsid sleep 300 &) ; sleep 300")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(c.fd.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "both sleepers run", func() bool { return len(strings.Fields(read(t, filepath.Join(c.dir, "cgroup.procs")))) == 3 })
	c.kill()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
	until(t, "the one that left the session is gone", func() bool { return read(t, filepath.Join(c.dir, "cgroup.procs")) == "" })
	if c.end(); exists(c.dir) {
		t.Error("the group is left")
	}
}

// kernelGroups returns a folder in which this process may make groups, without regard to their controllers.
func kernelGroups(t *testing.T) string {
	t.Helper()
	for _, root := range []string{groupRoot, groupRoot + "/unified"} {
		dir := root
		for line := range strings.Lines(read(t, "/proc/self/cgroup")) {
			if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				dir = filepath.Join(root, own)
			}
		}
		if exists(filepath.Join(dir, "cgroup.procs")) && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil && unix.Access(dir, unix.W_OK) == nil {
			return dir
		}
	}
	return ""
}

// A command that the kernel ended for its memory is told so, and costs no more than its own group.
func TestBoxWithGroups(t *testing.T) {
	b := newBox(t, Policy{Memory: 100 << 20, Timeout: time.Minute})
	if b.groups.dir == "" {
		t.Log("no memory controller is handed to this process; TestMemoryLimit shows the watchdog that takes its place")
		return
	}
	o := shell(t, b, "echo begun; head -c 400M /dev/zero | tail | cat; sleep 60")
	if o.Killed != killedMemory || o.Status != 137 || o.Output != "begun\n" {
		t.Errorf("%+v", o)
	}
	if left, _ := filepath.Glob(filepath.Join(b.groups.dir, fmt.Sprintf("%s%d-*", groupPrefix, os.Getpid()))); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// A box whose groups cannot be used says so as a fault of its own, and the probe goes on without.
func TestGroupThatFails(t *testing.T) {
	b := newBox(t, Policy{})
	b.groups.dir = t.TempDir() // no group of the kernel: a process cannot be started in it
	var le *LaunchError
	if _, err := b.Run(t.Context(), Cmd{Shell: "true"}); !errors.As(err, &le) || le.Stage != stageStart {
		t.Errorf("error %v", err)
	}
	if _, err := b.try(t.Context()); err != nil {
		t.Errorf("the probe: %v", err)
	}
}
