package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long the kernel may take to end processes that were killed. Only one that hangs in a driver takes
// longer than a moment.
const patience = 5 * time.Second

// spawner returns a channel whose functions are called on one operating system thread that never ends. The kernel sends
// the parent-death signal when the thread that forked ends, not the process: a command started from any goroutine may
// be killed at any time, when its thread is retired.
var spawner = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range calls {
			f()
		}
	}()
	return calls
})

// spawn starts a command on the spawner's thread.
func spawn(cmd *exec.Cmd) error {
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

// process is a command that was started, and our ends of its pipes.
type process struct {
	cmd     *exec.Cmd
	out     *os.File   // what it prints
	status  *os.File   // what the launcher reports; nil without a launcher
	dir     *os.File   // where its shell ended
	stdin   *os.File   // nil if it has none
	shim    *leash     // nil without a shim
	private privateDir // "" without one

	group   *group
	mu      sync.Mutex
	pid     int  // the first process inside, 0 if unknown
	init    int  // pidfd of the first process inside, -1 if unknown
	starved bool // the kernel ended it for its memory; set by finish
	code    int  // exit status as reported by the launcher, -1 if it was not
	watched chan struct{}
	known   chan struct{} // closed when pid is known, or never will be
	brake   *brake        // nil if the launcher is not held
}

// start runs a command under the policy. The caller sees to its end.
func (b *Box) start(c Cmd, dir string, t tree) (*process, error) {
	p := &process{init: -1, code: -1, watched: make(chan struct{}), known: make(chan struct{})}
	var pl plumbing
	defer pl.closeChild()
	b.command(p, &pl, c, dir, t)
	b.confine(p, &pl, t)
	if pl.err == nil {
		pl.err = spawn(p.cmd)
	}
	if pl.err != nil {
		p.group.end()
		pl.closeOurs()
		p.shim.close()
		p.private.remove()
		return nil, pl.err
	}
	if p.stdin != nil {
		go func() {
			_, _ = io.Copy(p.stdin, c.Stdin) // a command need not read its input
			p.stdin.Close()
		}()
	}
	go p.watch()
	if p.shim != nil {
		go p.shim.listen()
	}
	pl.closeChild() // the launcher's end must be seen
	if err := p.settled(b.policy, t); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

// command prepares the process: its arguments, and the descriptors by their fixed numbers.
func (b *Box) command(p *process, pl *plumbing, c Cmd, dir string, t tree) {
	var stdin, out *os.File
	if c.Stdin != nil {
		stdin, p.stdin = pl.pipe()
	}
	p.out, out = pl.outPipe()
	var dirEnd, lines *os.File
	if c.Shell != "" {
		p.dir, dirEnd = pl.outPipe()
		lines = pl.file("shell", []byte(shellLines(b.policy)))
	}
	h := b.host
	var shimEnd, self *os.File
	if shimmed(b.policy, h) {
		p.shim, shimEnd = pl.leash(b.proxy)
		h.Self = still(h.Self)
	}
	if b.policy.Profile == Landlock && pl.err == nil {
		p.private, pl.err = h.makePrivate(b.policy)
	}
	argv := append(shim(b.policy, h), program(b.policy, h, c)...)
	if !launched(b.policy) {
		p.cmd = &exec.Cmd{Path: argv[0], Args: argv, Dir: filepath.Join(b.policy.Root, dir),
			Env: environ(b.policy, h, c.Shell != ""), ExtraFiles: []*os.File{nil, nil, nil, dirEnd, lines, shimEnd}}
		if p.shim != nil {
			p.cmd.Path = "/proc/self/exe" // whatever lies at its path by now
		}
	} else {
		if p.shim != nil && h.Self == "" {
			self = pl.itself()
		}
		var status *os.File
		p.status, status = pl.outPipe()
		opts := strings.Join(options(b.policy, h, t, dir, c.Shell != ""), "\x00") + "\x00"
		p.cmd = &exec.Cmd{Path: b.host.Bwrap, Args: append([]string{"bwrap", "--args", "3", "--"}, argv...), Dir: "/",
			// The launcher stays as process 1, whose environment can be read from inside.
			Env:        []string{"PATH=/usr/bin:/bin"},
			ExtraFiles: []*os.File{pl.file("args", []byte(opts)), pl.file("seccomp", b.filter), status, dirEnd, lines, shimEnd, self}}
	}
	if stdin != nil {
		p.cmd.Stdin = stdin
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = attributes(p.guarded())
}

// confine hands the launcher the files that it is to show, and puts the command into a control group where there are
// such.
func (b *Box) confine(p *process, pl *plumbing, t tree) {
	if pl.err != nil || p.status == nil {
		return
	}
	if b.host.Pins {
		var ps pins
		if ps, pl.err = b.pin(t); pl.err != nil {
			return
		}
		pl.child = append(pl.child, ps...)
		if p.brake = pl.brake(); pl.err != nil {
			return
		}
		for len(p.cmd.ExtraFiles) < fdBrake-3 {
			p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, nil)
		}
		p.cmd.ExtraFiles = append(append(p.cmd.ExtraFiles, p.brake.child, b.files.top), ps...)
	} else {
		pl.err = b.sameRoot() // as late as it can be
	}
	if pl.err != nil {
		return
	}
	if p.group, pl.err = b.groups.make(b.policy); p.group != nil {
		p.group.startIn(p.cmd.SysProcAttr)
	}
}

// watch reads what the launcher reports: first the process inside that all others hang on, at the end the status.
func (p *process) watch() {
	known := sync.OnceFunc(func() { close(p.known) })
	defer close(p.watched)
	defer known()
	if p.status == nil {
		return
	}
	lines := bufio.NewScanner(p.status)
	for lines.Scan() {
		var r struct {
			Child int  `json:"child-pid"`
			Code  *int `json:"exit-code"`
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		p.mu.Lock()
		if r.Child > 0 && p.init < 0 {
			if fd, err := openProcess(r.Child); err == nil {
				p.pid, p.init = r.Child, fd
				expendable(r.Child) // the command does not exist yet
			}
		}
		if r.Code != nil {
			p.code = *r.Code
		}
		p.mu.Unlock()
		known()
	}
}

// first returns the number of the first process inside, 0 if it is unknown.
func (p *process) first() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// awaitLeader returns when the launcher (without one, the command) has ended. It is not reaped yet, so that its process
// group cannot be somebody else's when it is killed.
func (p *process) awaitLeader() {
	for {
		err := awaitDead(p.cmd.Process.Pid)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// kill ends the launcher's group and everything inside. Process 1 of a namespace takes all others along, also stopped
// ones and those that left the group.
func (p *process) kill() {
	if p.guarded() {
		p.shim.stop() // killed itself, the guard could end nothing any more
		return
	}
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // gone already is fine
	p.group.kill()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.init >= 0 {
		killProcess(p.init)
	}
}

// finish waits until no process of the command is left and closes the pipes. It returns the status (-1 if the launcher
// reported none) and what the shell said about its folder. Call it after kill and after the leader's end.
func (p *process) finish(collected <-chan struct{}) (code int, dir string, err error) {
	deadline := time.Now().Add(patience)
	if p.status != nil {
		_ = p.status.SetReadDeadline(deadline)
	}
	<-p.watched
	p.kill() // the process inside may have become known only now
	left := !p.emptied(deadline)
	werr := p.cmd.Wait()
	grace := deadline
	if p.status == nil { // a child that left the group may hold the pipe for ever
		grace = time.Now().Add(patience / 50)
	}
	_ = p.out.SetReadDeadline(grace)
	<-collected
	p.starved = p.group.end()
	dir = p.lastDir()
	p.close()
	p.private.remove()
	if p.shim != nil {
		p.shim.end()
	}
	if left {
		return -1, "", &LaunchError{Stage: "end the command: a process does not die", Err: werr}
	}
	switch {
	case p.shim != nil && !p.shim.ready:
		return -1, dir, nil
	case p.guarded():
		return p.shim.code, dir, nil
	case p.status == nil:
		return exitStatus(p.cmd.ProcessState), dir, nil
	}
	return p.code, dir, nil
}

// emptied waits until the first process inside is gone. The kernel lets it go only after all others.
func (p *process) emptied(deadline time.Time) bool {
	if p.init < 0 {
		return true
	}
	fds := []unix.PollFd{{Fd: int32(p.init), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// lastDir returns the last line that the shell wrote about its folder, "" if there is none.
func (p *process) lastDir() string {
	if p.dir == nil {
		return ""
	}
	_ = p.dir.SetReadDeadline(time.Now().Add(patience / 50))
	const most = 3 * unix.PathMax // bytes: a command may write here too, but it is not listened to for long
	text, _ := io.ReadAll(io.LimitReader(p.dir, most))
	line := strings.TrimSuffix(string(text), "\n")
	return line[strings.LastIndexByte(line, '\n')+1:]
}

// close gives back the pipes. The one for input is closed so that the copying ends.
func (p *process) close() {
	for _, f := range []*os.File{p.out, p.status, p.dir, p.stdin} {
		if f != nil {
			f.Close()
		}
	}
	if p.init >= 0 {
		unix.Close(p.init)
	}
}

// exitStatus returns a status as a shell has it: 128+n after signal n.
func exitStatus(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

// plumbing makes the pipes of a process and remembers which ends are whose. After the first error it does nothing.
type plumbing struct {
	ours, child []*os.File
	err         error
}

// pipe makes a pipe from us to the child.
func (pl *plumbing) pipe() (child, ours *os.File) {
	if pl.err != nil {
		return nil, nil
	}
	child, ours, pl.err = os.Pipe()
	if pl.err == nil {
		pl.ours, pl.child = append(pl.ours, ours), append(pl.child, child)
	}
	return child, ours
}

// outPipe makes a pipe from the child to us.
func (pl *plumbing) outPipe() (ours, child *os.File) {
	if pl.err != nil {
		return nil, nil
	}
	ours, child, pl.err = os.Pipe()
	if pl.err == nil {
		pl.ours, pl.child = append(pl.ours, ours), append(pl.child, child)
	}
	return ours, child
}

// file makes a file without a name that the child reads from its beginning.
func (pl *plumbing) file(name string, data []byte) *os.File {
	if pl.err != nil {
		return nil
	}
	f, err := sealed(name, data)
	if f != nil {
		pl.child = append(pl.child, f)
	}
	pl.err = err
	return f
}

func (pl *plumbing) closeChild() {
	for _, f := range pl.child {
		f.Close()
	}
}

func (pl *plumbing) closeOurs() {
	for _, f := range pl.ours {
		f.Close()
	}
}
