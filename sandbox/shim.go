package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The shim's name, and its place inside. The name is how Init knows it: the launcher hands over a path as the first
// argument and nothing else.
const (
	shimName = "tether-shim"
	shimPath = "/run/tether/" + shimName
)

// fdShim is the socket between a shim and the process that started it. The shim sends one message, "ready" with the
// listener if it made one, or what failed; it goes on when a byte comes back. It is closed when the command begins.
const fdShim = 8

// shimReady is that message. Any other is an error's text.
const shimReady = "ready"

// shimFailed is the status of a shim that could not become the command. What counts is the message.
const shimFailed = 125

// order is what a shim is to do before it becomes the command. It is its first argument, as JSON; the command follows.
type order struct {
	Listen   bool              `json:"listen,omitempty"`   // make a listener at proxyAddress and hand it over
	Scope    bool              `json:"scope,omitempty"`    // keep off abstract sockets of others
	Limits   map[string]uint64 `json:"limits,omitempty"`   // by prlimit's names
	Landlock *fence            `json:"landlock,omitempty"` // restrict files, sockets and signals
	Guard    bool              `json:"guard,omitempty"`    // stay, and end what the command leaves behind
	Private  privateDir        `json:"private,omitempty"`  // to be taken away by the guard, who may outlive tether
}

// Init turns this process into the shim when it was started as one (the base name of its first argument is
// tether-shim), and then never returns; else it returns at once. The shim is this very program: it prepares, inside the
// sandbox, what only code inside can, and becomes the command. Call it first in main and in the TestMain of every
// package that makes a Box with the network NetProxy or the profile Landlock, or that calls SelfTest.
func Init() {
	if len(os.Args) > 0 && filepath.Base(os.Args[0]) == trialName {
		os.Exit(try(os.Args[1:]))
	}
	if len(os.Args) == 0 || filepath.Base(os.Args[0]) != shimName {
		return
	}
	runtime.LockOSThread() // what is restricted is the thread on which the command is executed
	unix.CloseOnExec(fdShim)
	var o order
	if len(os.Args) < 3 {
		shimFail(errors.New("there is no command"))
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		shimFail(err)
	}
	if o.Guard {
		os.Exit(guard(o, os.Args[2:]))
	}
	ready, err := prepareInside(o)
	if err == nil {
		err = announce(ready)
	}
	if err != nil {
		shimFail(err)
	}
	os.Exit(become(os.Args[2:]))
}

// prepareInside does what an order says and returns the listener to hand over, if any.
func prepareInside(o order) (rights []byte, err error) {
	if o.Listen {
		if rights, err = listenInside(); err != nil {
			return nil, err
		}
	}
	for name, value := range o.Limits {
		// The hard limit as well: a command must not be able to raise it again.
		if err := syscall.Setrlimit(rlimits[name], &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return nil, fmt.Errorf("limit %s: %w", name, err)
		}
	}
	switch {
	case o.Landlock != nil:
		err = o.Landlock.close()
	case o.Scope:
		err = closeScope()
	}
	return rights, err
}

// listenInside opens the port of the proxy in this network namespace.
func listenInside() (rights []byte, err error) {
	l, err := net.Listen("tcp4", proxyAddress)
	if err != nil {
		return nil, err
	}
	f, err := l.(*net.TCPListener).File() // closed with this program, when the command begins
	if err != nil {
		return nil, err
	}
	return unix.UnixRights(int(f.Fd())), nil
}

// announce says that all is ready and waits for the answer.
func announce(rights []byte) error {
	if err := unix.Sendmsg(fdShim, []byte(shimReady), rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return err
	}
	var answer [1]byte
	for {
		n, err := unix.Read(fdShim, answer[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = errors.New("the sandbox was given up")
		}
		return err
	}
}

// shimFail reports an error of the shim's own.
func shimFail(err error) {
	_ = unix.Sendmsg(fdShim, []byte(err.Error()), nil, nil, unix.MSG_NOSIGNAL) // nobody listens: the missing "ready" says it
	os.Exit(shimFailed)
}

// become executes the command. It returns only if that is not possible, with the status that a shell would give.
func become(argv []string) int {
	path, err := exec.LookPath(argv[0])
	if err == nil || errors.Is(err, exec.ErrDot) {
		err = syscall.Exec(path, argv, os.Environ())
	}
	var ee *exec.Error
	if errors.As(err, &ee) {
		err = ee.Err
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", argv[0], plainError(err))
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusCannotRun
}

// statusNotFound is the status of a command that does not exist, as the shell has it.
const statusNotFound = 127

// rlimits are the limits by prlimit's names for them.
var rlimits = map[string]int{"nproc": unix.RLIMIT_NPROC, "core": unix.RLIMIT_CORE, "nofile": unix.RLIMIT_NOFILE, "fsize": unix.RLIMIT_FSIZE,
	"memlock": unix.RLIMIT_MEMLOCK}
