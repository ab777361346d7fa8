package sandbox

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// shimmed reports whether commands under the policy start through the shim. The plain tools are faster where they do.
func shimmed(p Policy, h host) bool {
	return p.Network == NetProxy || p.Profile == Landlock || scoped(p, h)
}

// scoped reports whether Landlock is to close what a network of the host opens beside the network: the abstract sockets
// of the desktop and its services. Where the kernel cannot, NetHost means these too.
func scoped(p Policy, h host) bool {
	return p.Network == NetHost && p.Profile != Full && launched(p) && h.Landlock >= landlockABI
}

// shimArgs returns the shim with its order, in front of the command.
func shimArgs(p Policy, h host) []string {
	o := order{Limits: map[string]uint64{}, Listen: p.Network == NetProxy, Scope: scoped(p, h)}
	for _, l := range limits {
		o.Limits[l.name] = h.allowed(l.name, l.value)
		if l.name == "nproc" {
			o.Limits[l.name] = h.allowed(l.name, l.value+h.Tasks)
		}
	}
	path := shimPath
	if p.Profile == Landlock {
		path, o.Guard, o.Landlock, o.Private = shimName, true, fenceOf(p, h), privateDir(h.Private)
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return []string{path, string(text)}
}

// self returns the file of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

// still returns the path of this program's file, "" if another one lies there now: the program was updated meanwhile,
// or replaced by somebody.
func still(path string) string {
	there, err := os.Stat(path)
	if err != nil {
		return ""
	}
	here, err := os.Stat("/proc/self/exe")
	if err != nil || !os.SameFile(here, there) {
		return ""
	}
	return path
}

// fdSelf is this program's file, for the case that no path leads to it any more.
const fdSelf = 9

// shim shows this program inside.
func (v *vector) shim(p Policy, h host) {
	switch {
	case !shimmed(p, h):
	case h.Self != "":
		v.add("--ro-bind", h.Self, shimPath)
	default: // a copy, at 15 ms
		v.add("--perms", "0555", "--ro-bind-data", strconv.Itoa(fdSelf), shimPath)
	}
}

// leash is our end of the socket to a shim.
type leash struct {
	conn  *net.UnixConn
	proxy *proxy // serves the listener that the shim hands over; nil without one

	// To be read after end.
	ready  bool          // the command was begun
	failed string        // why not
	code   int           // what the guard reported, -1 if nothing
	heard  chan struct{} // closed by listen at its end
	over   chan struct{} // closed by end
}

// newLeash makes the socket and returns the shim's end of it too.
func newLeash(x *proxy) (*leash, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|closing, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "leash"), os.NewFile(uintptr(fds[1]), "shim")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return &leash{conn: conn.(*net.UnixConn), proxy: x, code: -1, heard: make(chan struct{}), over: make(chan struct{})}, theirs, nil
}

// listen hears the shim out, and serves its listener as long as the command runs. Of a shim only the first message
// counts, since what comes later may come from the command; a guard, which is outside, may send its status.
func (c *leash) listen() {
	defer close(c.heard)
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	text, l, err := c.receive()
	if err == nil && text == shimReady && c.proxy != nil && l == nil {
		text = "no listener came"
	}
	if c.ready = err == nil && text == shimReady; !c.ready {
		c.failed = text
	}
	if l != nil {
		defer l.Close()
	}
	if !c.ready {
		return
	}
	if c.proxy != nil {
		serving.Go(func() { c.proxy.serve(ctx, l) })
	}
	if _, err := c.conn.Write([]byte{'g'}); err != nil {
		return
	}
	text, _, err = c.receive() // nothing from a shim, which closed the socket when it became the command
	if n, aerr := strconv.Atoi(text); err == nil && aerr == nil && n >= 0 && n < 256 {
		c.code = n
	}
	<-c.over
}

// receive takes one message and the listener in it.
func (c *leash) receive() (string, net.Listener, error) {
	const most = 4096 // bytes of an error's text
	text, rights := make([]byte, most), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := c.conn.ReadMsgUnix(text, rights)
	if err != nil || m == 0 {
		return string(text[:n]), nil, err
	}
	list, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(list) != 1 {
		return string(text[:n]), nil, err
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		return string(text[:n]), nil, err
	}
	unix.CloseOnExec(fds[0])
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err == nil {
		if _, ok := l.(*net.TCPListener); !ok { // never anything but what listenInside makes
			l.Close()
			return string(text[:n]), nil, nil
		}
	}
	return string(text[:n]), l, err
}

// stop tells a guard to end its command.
func (c *leash) stop() { _ = c.conn.CloseWrite() }

// end waits until nothing of the socket and its listener is left. Call it when the processes are gone.
func (c *leash) end() {
	close(c.over)
	_ = c.conn.SetReadDeadline(time.Now().Add(patience / 50)) // the last message may still be on its way
	<-c.heard
	c.conn.Close()
}

// close gives up a shim that never started.
func (c *leash) close() {
	if c != nil {
		c.conn.Close()
	}
}

// leash makes the socket to a shim.
func (pl *plumbing) leash(x *proxy) (*leash, *os.File) {
	if pl.err != nil {
		return nil, nil
	}
	c, theirs, err := newLeash(x)
	if err != nil {
		pl.err = err
		return nil, nil
	}
	pl.child = append(pl.child, theirs)
	return c, theirs
}

// itself opens the file of this program, to be copied.
func (pl *plumbing) itself() *os.File {
	if pl.err != nil {
		return nil
	}
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		pl.err = err
		return nil
	}
	pl.child = append(pl.child, f)
	return f
}

// launched reports whether commands under the policy are started by bubblewrap.
func launched(p Policy) bool { return p.Profile != Off && p.Profile != Landlock }

// guarded reports whether a guard holds the process.
func (p *process) guarded() bool { return p.shim != nil && p.status == nil }

// await waits until the first process has ended, which was told to. For a guard that does not, its work is done here.
func (p *process) await(ended <-chan struct{}) {
	if p.guarded() {
		select {
		case <-ended:
		case <-time.After(6 * patience): // on a machine under load it may take its time with hundreds of processes
			endBelow(p.cmd.Process.Pid)
			_ = unix.Kill(p.cmd.Process.Pid, unix.SIGKILL) // gone already is fine
		}
	}
	<-ended
}
