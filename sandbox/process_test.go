//go:build linux

package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stubborn starts processes in every way that has been seen to survive a kill, and then waits.
const stubborn = `trap '' TERM INT HUP
setsid sh -c 'sleep 300; : %[1]s' &
( (sleep 300; : %[1]s) & )
sh -c 'trap "" TERM; sleep 300; : %[1]s' &
sh -c 'kill -STOP $$; : %[1]s' &
exec 1>&- 2>&-
sleep 300; : %[1]s`

func TestTimeLimit(t *testing.T) {
	b := newBox(t, Policy{Timeout: 300 * time.Millisecond})
	marker := rand.Text()
	o := shell(t, b, "echo begun; "+fmt.Sprintf(stubborn, marker))
	if o.Status != 124 || !o.TimedOut || o.Killed != "time limit" || o.Output != "begun\n" {
		t.Errorf("%+v", o)
	}
	if o.Elapsed > 10*time.Second {
		t.Errorf("it took %v", o.Elapsed)
	}
	if n := alive(t, marker); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestTimeLimitOff(t *testing.T) {
	b := newBox(t, Policy{Profile: Off, Timeout: 300 * time.Millisecond})
	marker := rand.Text()
	o := shell(t, b, "sh -c 'sleep 300; : "+marker+"' & sleep 300")
	if o.Status != 124 || !o.TimedOut {
		t.Errorf("%+v", o)
	}
	until(t, "the process group is gone", func() bool { return alive(t, marker) == 0 })
}

func TestCancel(t *testing.T) {
	b := newBox(t, Policy{})
	marker := rand.Text()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := b.Run(ctx, Cmd{Shell: fmt.Sprintf(stubborn, marker)})
		done <- err
	}()
	until(t, "the command runs", func() bool { return alive(t, marker) > 3 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if n := alive(t, marker); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := b.Run(ctx, Cmd{Shell: "true"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: error %v", err)
	}
}

func TestBackgroundDoesNotHold(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile})
		marker := rand.Text()
		o := shell(t, b, "sh -c 'sleep 300; : "+marker+"' & setsid sleep 30 & echo started")
		if o.Status != 0 || o.Output != "started\n" || o.Elapsed > 15*time.Second {
			t.Errorf("%s: %+v", profile, o)
		}
		until(t, "the background process is gone", func() bool { return alive(t, marker) == 0 })
	}
}

func TestOutputLimit(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile, Output: 1 << 20})
		o := shell(t, b, "yes abcdefg")
		if o.Status != 137 || o.Killed != "output limit" || o.TimedOut {
			t.Errorf("%s: status %d, killed %q", profile, o.Status, o.Killed)
		}
		if len(o.Output) > 2*keep+100 || o.Left < 1<<20-2*keep {
			t.Errorf("%s: %d bytes kept, %d left out", profile, len(o.Output), o.Left)
		}
	}
}

// A thread that ends must not take the command along: the parent-death signal follows the thread, not the process.
func TestThreadEnds(t *testing.T) {
	b := newBox(t, Policy{})
	r, w := io.Pipe()
	type result struct {
		p   *process
		err error
		tid int
	}
	started := make(chan result)
	endingThread(func() {
		p, err := b.start(Cmd{Shell: "read x; exit 7", Stdin: r}, "", tree{})
		started <- result{p, err, unix.Gettid()}
	})
	s := <-started
	if s.err != nil {
		t.Fatal(s.err)
	}
	until(t, "the thread is gone", func() bool { return !exists(fmt.Sprintf("/proc/self/task/%d", s.tid)) })
	go func() { io.WriteString(w, "go\n"); w.Close() }()
	if o, err := b.follow(t.Context(), s.p, Outcome{}); err != nil || o.Status != 7 {
		t.Errorf("%+v, %v; want status 7", o, err)
	}
}

// A launcher that dies is a fault of the sandbox, never a status of the command.
func TestLauncherKilled(t *testing.T) {
	b := newBox(t, Policy{})
	p, err := b.start(Cmd{Shell: "sleep 300"}, "", tree{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(p.cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o, err := b.follow(t.Context(), p, Outcome{})
	var le *LaunchError
	if !errors.As(err, &le) {
		t.Errorf("%+v, error %v; want a *LaunchError", o, err)
	}
}

func TestLauncherGone(t *testing.T) {
	b := newBox(t, Policy{})
	b.host.Bwrap = filepath.Join(t.TempDir(), "bwrap")
	_, err := b.Run(t.Context(), Cmd{Shell: "true"})
	var le *LaunchError
	if !errors.As(err, &le) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want a *LaunchError", err)
	}
	b.host.Bwrap = firstFile("/bin/false", "/usr/bin/false")
	if _, err := b.Run(t.Context(), Cmd{Shell: "true"}); !errors.As(err, &le) {
		t.Errorf("error %v, want a *LaunchError", err)
	}
}

func TestWorkspaceReplaced(t *testing.T) {
	b := newBox(t, Policy{Root: filepath.Join(t.TempDir(), "ws")}.made(t))
	root := b.Policy().Root
	if err := os.Rename(root, root+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	var le *LaunchError
	if _, err := b.Run(t.Context(), Cmd{Shell: "true"}); !errors.As(err, &le) {
		t.Errorf("error %v, want a *LaunchError", err)
	}
}

// made makes the workspace of a policy.
func (p Policy) made(t testing.TB) Policy {
	t.Helper()
	if err := os.MkdirAll(p.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestManyAtOnce(t *testing.T) {
	b := newBox(t, Policy{})
	const commands = 16
	errs := make(chan error, commands)
	for i := range commands {
		go func() {
			o, err := b.Run(t.Context(), Cmd{Shell: fmt.Sprintf("echo %d; ls -d .git .tether; exit %d", i, i)})
			if err == nil && (o.Status != i || o.Output != fmt.Sprintf("%d\n.git\n.tether\n", i)) {
				err = fmt.Errorf("%d: %+v", i, o)
			}
			errs <- err
		}()
	}
	for range commands {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{".git", ".tether"} {
		if exists(filepath.Join(b.Policy().Root, name)) {
			t.Errorf("%s was left behind", name)
		}
	}
	if fds, err := filepath.Glob("/proc/self/fd/*"); err != nil || len(fds) > 40 {
		t.Errorf("%d files are open (%v)", len(fds), err)
	}
}

// endingThread calls f on a thread that ends with it. The first thread of a process never does, so it is passed over.
func endingThread(f func()) {
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		passed := make(chan struct{})
		endingThread(func() { close(passed); f() })
		<-passed
	}()
}
