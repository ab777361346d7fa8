package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// groupRoot is where distributions mount version 2 of the control groups.
const groupRoot = "/sys/fs/cgroup"

// maxTasks bounds the processes and threads of one command; it is the limit that prlimit sets, which does not hold for
// real root.
const maxTasks = 512

// groups makes a control group for each command. The kernel then counts the memory exactly and ends a command that takes
// too much, at once and as a whole; without groups the watchdog does it four times a second.
type groups struct {
	dir  string // where they are made, "" if this process may not make any
	next atomic.Int64
}

// findGroups returns the folder in which groups can be made: that of this process if it hands its controllers on, else
// its parent, the slice of the user's own service manager. Only the version 2 has what is needed.
func findGroups(root, self string) string {
	for line := range strings.Lines(self) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for _, at := range []string{own, path.Dir("/" + own)} {
			dir := filepath.Join(root, at)
			if handsOn(dir) && unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil {
				return dir
			}
		}
	}
	return ""
}

// handsOn reports whether the groups in a folder can be limited.
func handsOn(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	words := " " + strings.TrimSpace(string(data)) + " "
	return err == nil && strings.Contains(words, " memory ") && strings.Contains(words, " pids ")
}

// sweep removes the groups of processes that were killed. The kernel refuses for those that are in use.
func (g *groups) sweep() {
	stale, _ := filepath.Glob(filepath.Join(g.dir, groupPrefix+"*")) // the only error is a malformed pattern
	for _, dir := range stale {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && errors.Is(unix.Kill(n, 0), unix.ESRCH) {
			_ = unix.Rmdir(dir)
		}
	}
}

// groupPrefix begins the name of a group; the number of the process that made it and a count follow.
const groupPrefix = "tether-"

// group is the one of one command. The nil group does nothing.
type group struct {
	dir string
	fd  *os.File // the command is started in it
}

// make makes a group with the limits of a policy, nil if there are no groups.
func (g *groups) make(p Policy) (*group, error) {
	if g.dir == "" {
		return nil, nil
	}
	c := &group{dir: filepath.Join(g.dir, fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), g.next.Add(1)))}
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return nil, err
	}
	err := errors.Join(c.set("memory.max", p.Memory), c.set("memory.oom.group", 1), c.set("pids.max", maxTasks))
	if serr := c.set("memory.swap.max", 0); serr != nil && !errors.Is(serr, fs.ErrNotExist) && !errors.Is(serr, fs.ErrPermission) {
		err = errors.Join(err, serr) // a kernel without swap has no such file
	}
	if err == nil {
		c.fd, err = os.OpenFile(c.dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	}
	if err != nil {
		_ = unix.Rmdir(c.dir) // the first error is the one to tell
		return nil, err
	}
	return c, nil
}

func (c *group) set(name string, value int64) error {
	return os.WriteFile(filepath.Join(c.dir, name), []byte(strconv.FormatInt(value, 10)), 0o644)
}

// kill ends every process of the group.
func (c *group) kill() {
	if c != nil {
		_ = c.set("cgroup.kill", 1) // kernels before 5.14 have no such file, and the other ways of killing are enough
	}
}

// end removes the group, whose processes must be gone, and reports whether the kernel ended it for its memory.
func (c *group) end() (memory bool) {
	if c == nil {
		return false
	}
	c.kill()
	data, _ := os.ReadFile(filepath.Join(c.dir, "memory.events")) // missing is none
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		memory = memory || len(fields) == 2 && (string(fields[0]) == "oom_kill" || string(fields[0]) == "oom_group_kill") && string(fields[1]) != "0"
	}
	c.fd.Close()
	const tries = 50 // the last process may still be on its way out
	for range tries {
		if err := unix.Rmdir(c.dir); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	return memory
}

// expendable makes the kernel take a process, and all that it will start, before others when the machine runs out of
// memory: rather a command than the model's server or the editor.
func expendable(pid int) {
	const more = "500" // of 1000, added to the share of memory that it has
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(more), 0)
}
