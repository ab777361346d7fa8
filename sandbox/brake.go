package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// brake holds a launcher that has mounted everything, so that the mounts can be looked at before the command begins.
// Descriptors make sure what is shown, but where it is shown the launcher decides by path, and another command may have
// put a link there at that moment. As its last step the launcher copies a file into nothing: a pipe that is given more
// than it holds. When all of it has gone in, the launcher has come to that step; it goes on when the pipe is closed.
type brake struct {
	ours, child *os.File
	size        int // bytes that the pipe holds
}

// comeUp is how long a launcher may take to mount everything. It takes 5 ms; a machine under full load is no reason to
// fail.
const comeUp = 20 * time.Second

// brake makes the pipe, as small as the system has them.
func (pl *plumbing) brake() *brake {
	child, ours := pl.pipe()
	if pl.err != nil {
		return nil
	}
	k := &brake{ours: ours, child: child}
	conn, err := ours.SyscallConn() // Fd would make the pipe a blocking one, which knows no deadline
	if err == nil {
		err = errors.Join(conn.Control(func(fd uintptr) {
			k.size, pl.err = shrinkPipe(fd)
		}), pl.err)
	}
	pl.err = err
	return k
}

// settled waits until the launcher has mounted everything, compares that with what it was asked for, and lets it go on.
// A launcher that failed meanwhile has told why, which is read later.
func (p *process) settled(policy Policy, t tree) error {
	if p.brake == nil {
		return nil
	}
	defer p.brake.ours.Close()
	if err := p.brake.ours.SetWriteDeadline(time.Now().Add(comeUp)); err != nil {
		return err
	}
	if _, err := p.brake.ours.Write(make([]byte, p.brake.size+1)); errors.Is(err, unix.EPIPE) {
		return nil
	} else if err != nil {
		return err
	}
	<-p.known
	info, err := os.ReadFile("/proc/" + strconv.Itoa(p.first()) + "/mountinfo")
	if err != nil {
		return err
	}
	return compareMounts(string(info), policy, t)
}

// compareMounts looks for each path that has to be a mount point. A launcher at work has what is to become the root in a
// folder of that name.
func compareMounts(mountinfo string, p Policy, t tree) error {
	const root = "/newroot"
	there := map[string]bool{}
	for line := range strings.Lines(mountinfo) {
		if words := strings.Fields(line); len(words) > 4 {
			there[octal.Replace(words[4])] = true
		}
	}
	want := append([]string{}, t.Hide...)
	if p.Profile != Full {
		want = append(append(want, p.Root), t.GitDirs...)
	}
	for _, rel := range slices.Concat(t.Protect, t.Deaf) {
		want = append(want, filepath.Join(p.Root, rel))
	}
	for _, path := range want {
		if !there[root+path] {
			return &RefusedError{p.Root, path + " was replaced while a command was set up", "run one command at a time in this workspace"}
		}
	}
	return nil
}

// octal undoes the escapes of the kernel's list of mounts.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")

// abandon ends a process that is not to become a command.
func (p *process) abandon() {
	p.kill()
	p.awaitLeader()
	out, collected := newOutput(DefaultOutput), make(chan struct{})
	go func() { defer close(collected); out.collect(p.out) }()
	_, _, _ = p.finish(collected) // there is an error to tell already
}
