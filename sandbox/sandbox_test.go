package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inside is the first argument that makes the test binary a program to be run in a sandbox: it tries system calls that
// no ordinary tool offers, and prints what the kernel answered.
const inside = "-inside"

// harness is the first argument that makes it a process that runs one line in a box: to be killed by a test.
const harness = "-harness"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == inside {
		fmt.Println(attempt(os.Args[2]))
		return
	}
	if len(os.Args) == 4 && os.Args[1] == harness {
		b, err := New(context.Background(), Policy{Root: os.Args[2]})
		if err == nil {
			_, err = b.Run(context.Background(), Cmd{Shell: os.Args[3]})
		}
		fmt.Println(err)
		return
	}
	os.Exit(m.Run())
}

// attempt makes one system call that the filter should refuse. Each is harmless where it is allowed.
func attempt(name string) error {
	switch name {
	case "vsock":
		_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		return err
	case "tiocsti": // stdin is no terminal: without the filter this is ENOTTY
		var c byte
		_, _, err := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, uintptr(c))
		return err
	case "unshare":
		return unix.Unshare(unix.CLONE_NEWUTS)
	case "chmod":
		return unix.Chmod("victim", 0o4755)
	case "create":
		_, err := unix.Open("made", unix.O_CREAT|unix.O_WRONLY, 0o4755)
		return err
	case "plain":
		_, err := unix.Open("plain", unix.O_CREAT|unix.O_WRONLY, 0o755)
		return err
	}
	return errors.New("no such attempt")
}

// newBox makes a box over a fresh workspace. A machine without a sandbox fails the test: nothing here may be skipped.
func newBox(t testing.TB, p Policy) *Box {
	t.Helper()
	if p.Root == "" {
		p.Root = t.TempDir()
	}
	b, err := New(t.Context(), p)
	if err != nil {
		t.Fatalf("New(%+v): %v", p, err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// shell runs a line and fails the test on a fault of the launcher.
func shell(t testing.TB, b *Box, line string) Outcome {
	t.Helper()
	return do(t, b, Cmd{Shell: line})
}

func do(t testing.TB, b *Box, c Cmd) Outcome {
	t.Helper()
	o, err := b.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("Run(%+v): %v", c, err)
	}
	return o
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// alive counts the processes of the machine that have the marker in their command line.
func alive(t testing.TB, marker string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range lines {
		if data, err := os.ReadFile(l); err == nil && strings.Contains(string(data), marker) {
			n++
		}
	}
	return n
}

// until waits for a real process to show itself.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

func TestHello(t *testing.T) {
	for _, profile := range []Profile{"", WorkspaceWrite, ReadOnly, Full, Off} {
		b := newBox(t, Policy{Profile: profile})
		o := shell(t, b, `echo "hello  'world'"`)
		if o.Status != 0 || o.Output != "hello  'world'\n" || o.Killed != "" || o.Left != 0 || o.Elapsed <= 0 {
			t.Errorf("%q: %+v", profile, o)
		}
	}
}

func TestDefaults(t *testing.T) {
	p := newBox(t, Policy{}).Policy()
	if p.Profile != WorkspaceWrite || p.Timeout != DefaultTimeout || p.Output != DefaultOutput || !filepath.IsAbs(p.Root) {
		t.Errorf("defaults: %+v", p)
	}
}

func TestStatus(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile})
		for _, tt := range []struct {
			line   string
			want   int
			output string // contained
		}{
			{"true", 0, ""},
			{"exit 3", 3, ""},
			{"false", 1, ""},
			{"exit 125", 125, ""},
			{"nonesuch-program", 127, "bash: line 1: nonesuch-program: command not found"},
			{"./folder", 126, "folder"},
			{"if then", 2, "syntax error near unexpected token `then'"},
			{`echo "open`, 2, "unexpected EOF"},
			{"kill -9 $$", 137, ""},
			{"kill -SEGV $$", 139, ""},
			{"-x", 127, "-x: command not found"},
			{"set -e; false; true", 1, ""},
			{"trap 'exit 9' EXIT", 9, ""},
			{"exec sh -c 'exit 5'", 5, ""},
			{"echo out; echo err >&2; exit 4", 4, "out\nerr\n"},
		} {
			if err := os.MkdirAll(filepath.Join(b.Policy().Root, "folder"), 0o755); err != nil {
				t.Fatal(err)
			}
			o := shell(t, b, tt.line)
			if o.Status != tt.want || !strings.Contains(o.Output, tt.output) {
				t.Errorf("%s, %s: status %d, want %d; %q", profile, tt.line, o.Status, tt.want, o.Output)
			}
		}
	}
}

func TestArgvIsNotAShell(t *testing.T) {
	b := newBox(t, Policy{})
	args := []string{"", "a b", `"`, "'", "$(id)", "`id`", "\\", "*", "-n", "\n", "é"}
	o := do(t, b, Cmd{Argv: append([]string{"printf", "<%s>"}, args...)})
	if want := "<" + strings.Join(args, "><") + ">"; o.Output != want || o.Status != 0 {
		t.Errorf("got %q (status %d), want %q", o.Output, o.Status, want)
	}
}

func TestCannotStart(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile})
		for name, tt := range map[string]struct {
			c    Cmd
			want int
		}{
			"missing":  {Cmd{Argv: []string{"nonesuch-program"}}, 127},
			"nothing":  {Cmd{}, 126},
			"too long": {Cmd{Shell: "true " + strings.Repeat("x", 200_000)}, 126},
			"NUL":      {Cmd{Shell: "echo a\x00b"}, 126},
			"no dir":   {Cmd{Shell: "true", Dir: "gone"}, 126},
			"outside":  {Cmd{Shell: "true", Dir: "../.."}, 126},
		} {
			if o := do(t, b, tt.c); o.Status != tt.want || o.Output == "" {
				t.Errorf("%s, %s: %+v, want status %d and a reason", profile, name, o, tt.want)
			}
		}
	}
}

func TestStdin(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile})
		text := strings.Repeat("line\n", 100_000) // more than a pipe holds
		o := do(t, b, Cmd{Shell: "wc -l", Stdin: strings.NewReader(text)})
		if strings.TrimSpace(o.Output) != "100000" {
			t.Errorf("%s: counted %q", profile, o.Output)
		}
		if o := do(t, b, Cmd{Shell: "head -c 4", Stdin: strings.NewReader(text)}); o.Output != "line" || o.Status != 0 {
			t.Errorf("%s: input that is not read: %+v", profile, o)
		}
		if o := shell(t, b, "cat; [ -t 0 ] || [ -t 1 ] || echo none"); o.Output != "none\n" {
			t.Errorf("%s: closed input, no terminal: %+v", profile, o)
		}
		silent, w := io.Pipe()
		if o := do(t, b, Cmd{Shell: "exit 6", Stdin: silent}); o.Status != 6 {
			t.Errorf("%s: input that never comes: %+v", profile, o)
		}
		w.Close()
	}
}

func TestDir(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Full, Off} {
		b := newBox(t, Policy{Profile: profile})
		outside := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(b.Policy().Root, "out")); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			dir, line, want string
			status          int
		}{
			{"", "mkdir -p 'a b/c'; cd 'a b/c'", "a b/c", 0},
			{"a b/c", "cd ..; exit 3", "a b", 3},
			{"a b", "cd /", "a b", 0},
			{"a b", "cd ../..", "a b", 0},
			{"a b", "cd ../out; true", "a b", 0},
			{"a b", "(cd c)", "a b", 0},
			{"a b", "if then", "a b", 2},
			{"a b", "cd c; kill -9 $$", "a b", 137},
			{"a b", forge("/etc"), "a b", 137},
			{"a b", forge("$PWD/../../.."), "a b", 137},
			{"a b", forge("$PWD/nonesuch"), "a b", 137},
			{"a b", forge("c"), "a b", 137},
			{"a b", "set -eu; cd c; false", "a b/c", 1},
			{"a b/c", "cd ../..", "", 0},
			{"a b/c", "rmdir ../c; true", "a b/c", 0},
		} {
			o := do(t, b, Cmd{Shell: tt.line, Dir: tt.dir})
			if o.Dir != tt.want || o.Status != tt.status {
				t.Errorf("%s: %q in %q ended in %q with %d, want %q with %d (%s)", profile, tt.line, tt.dir, o.Dir, o.Status, tt.want, tt.status, o.Output)
			}
		}
		if o := do(t, b, Cmd{Argv: []string{"pwd"}, Dir: "a b"}); strings.TrimSpace(o.Output) != filepath.Join(b.Policy().Root, "a b") {
			t.Errorf("%s: pwd: %+v", profile, o)
		}
	}
}

// forge is a line that reports a folder itself and keeps the shell from doing so.
func forge(dir string) string {
	return `{ echo "` + dir + `" >/proc/1/fd/6 || echo "` + dir + `" >&6; } 2>/dev/null; kill -9 $$`
}

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
		o := shell(t, b, "sh -c 'sleep 300; : "+marker+"' & setsid sleep 2 & echo started")
		if o.Status != 0 || o.Output != "started\n" || o.Elapsed > 1500*time.Millisecond {
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

func TestHeadAndTail(t *testing.T) {
	b := newBox(t, Policy{})
	o := shell(t, b, "seq 1 100000")
	if !strings.HasPrefix(o.Output, "1\n2\n3\n") || !strings.HasSuffix(o.Output, "\n99999\n100000\n") || o.Killed != "" || o.Left == 0 {
		t.Errorf("kept %d bytes, left %d, killed %q", len(o.Output), o.Left, o.Killed)
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
	go func() { // unlocked by nobody: the thread ends with the goroutine
		lockThread()
		p, err := b.start(Cmd{Shell: "read x; exit 7", Stdin: r}, "", tree{})
		started <- result{p, err, unix.Gettid()}
	}()
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

func BenchmarkBoxRun(b *testing.B) {
	box := newBox(b, Policy{})
	for b.Loop() {
		if o := do(b, box, Cmd{Argv: []string{"true"}}); o.Status != 0 {
			b.Fatal(o)
		}
	}
}

func BenchmarkBoxRunShell(b *testing.B) {
	box := newBox(b, Policy{})
	for b.Loop() {
		if o := do(b, box, Cmd{Shell: "cd . && true"}); o.Status != 0 {
			b.Fatal(o)
		}
	}
}

// BenchmarkExec is the floor: the same command with no sandbox around it.
func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	root := b.TempDir()
	for b.Loop() {
		box, err := New(b.Context(), Policy{Root: root})
		if err != nil {
			b.Fatal(err)
		}
		box.Close()
	}
}
