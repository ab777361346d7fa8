//go:build linux

package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLandlockMissing(t *testing.T) {
	for abi, want := range map[int]string{0: "no Landlock", 1: "version 1", 5: "version 5", 6: "", 7: "", 20: ""} {
		err := landlockMissing(abi)
		var missing *UnavailableError
		if want == "" && err != nil || want != "" && (!errors.As(err, &missing) || !strings.Contains(missing.Cause, want)) {
			t.Errorf("version %d: %v, want %q", abi, err, want)
		}
	}
}

// asNobody runs a test as a user without rights when this is the machine's root, and reports that it did: what the test
// tries must do no harm if the fence has a hole. Root of a user namespace is not the machine's.
func asNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 || strings.Join(strings.Fields(read(t, "/proc/self/uid_map")), " ") != "0 0 4294967295" {
		return false
	}
	again(t, t.Name(), &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
	return true
}

// again runs a test in a process of its own, with a home and temporary folder for nobody.
func again(t *testing.T, test string, attr *syscall.SysProcAttr) {
	t.Helper()
	home, err := os.MkdirTemp("", "again") // not t.TempDir: its parent is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	program := filepath.Join(home, "program")
	copyFile(t, self(), program)
	if os.Geteuid() == 0 {
		giveTo(t, home, nobody)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$", "-test.v")
	cmd.Dir, cmd.SysProcAttr = home, attr
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/local/bin:/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+test+" ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Root without capabilities is held like anybody; here it is root of a user namespace.
func TestLandlockRoot(t *testing.T) {
	if asNobody(t) {
		return
	}
	for _, test := range []string{"TestLandlockFiles", "TestLandlockSockets"} {
		again(t, test, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}})
	}
}

// landlockBox makes a box with that profile. A kernel without Landlock must refuse; then there is no box, and the fence
// is tested only by what it would consist of.
func landlockBox(t *testing.T, p Policy) *Box {
	t.Helper()
	p.Profile = Landlock
	if kernelABI() >= landlockABI {
		return newBox(t, p)
	}
	if p.Root == "" {
		p.Root = t.TempDir()
	}
	var missing *UnavailableError
	if b, err := New(t.Context(), p); !errors.As(err, &missing) {
		t.Fatalf("a kernel with Landlock %d: %v, %v", kernelABI(), b, err)
	}
	return nil
}

func TestLandlockFiles(t *testing.T) {
	if asNobody(t) {
		return
	}
	secret := rand.Text()
	home, outside, cache := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	write(t, filepath.Join(home, ".ssh/id_rsa"), secret)
	write(t, filepath.Join(home, ".cargo/bin/tool"), "#!/bin/sh\necho the tool\n")
	write(t, filepath.Join(outside, "victim"), secret)
	if err := os.Chmod(filepath.Join(home, ".cargo/bin/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := landlockBox(t, Policy{Cache: cache})
	if b == nil {
		return
	}
	for _, line := range []string{
		"cat VICTIM", "echo evil > VICTIM", "echo evil >> VICTIM", "truncate -s 0 VICTIM", "rm VICTIM", "mv VICTIM x", "mv VICTIM OUTSIDE/x",
		"ln VICTIM x", "ln -s VICTIM x; cat x", "ln -sf VICTIM x; echo evil > x", "mkdir OUTSIDE/d", "mkfifo OUTSIDE/f", "ls OUTSIDE", "find OUTSIDE -name 'v*' | grep .",
		"cat HOME/.ssh/id_rsa", "ls HOME", "cat /proc/self/root/VICTIM", "cat /proc/1/cmdline", "cat /proc/$PPID/environ", "ls /proc", "ls /tmp", "echo x > /tmp/evil-$$",
		"echo x > /dev/shm/evil-$$", "cat /etc/shadow", "cat /etc/ssl/private/*", "ls /root", "ls /run", "echo x > /etc/evil", "cat /dev/mem", "cat /dev/kmsg",
		"bash -c 'exec 3<>/dev/tcp/127.0.0.1/1'", "touch file && ln file OUTSIDE/file", "cp /bin/true t && ./t && mv t OUTSIDE/t", "ipcmk -M 4096", "ipcmk -Q", "ipcmk -S 1",
		"prlimit --pid $PPID --nofile=1",
	} {
		line = strings.NewReplacer("VICTIM", filepath.Join(outside, "victim"), "OUTSIDE", outside, "HOME", home).Replace(line)
		if o := shell(t, b, line); o.Status == 0 || strings.Contains(o.Output, secret) {
			t.Errorf("%s: %+v", line, o)
		}
	}
	if got := read(t, filepath.Join(outside, "victim")); got != secret {
		t.Errorf("the file outside is now %q", got)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
	o := shell(t, b, "echo text > a && mkdir d && mv a d/b && cat d/b && echo kept > ~/.cache/kept && echo $$ > $TMPDIR/x && tool && cat /etc/passwd >/dev/null && cd d")
	if o.Status != 0 || o.Output != "text\nthe tool\n" || o.Dir != "d" {
		t.Errorf("what is allowed: %+v", o)
	}
	if got := read(t, filepath.Join(cache, "kept")); got != "kept\n" {
		t.Errorf("the cache has %q", got)
	}
}

func TestLandlockSockets(t *testing.T) {
	if asNobody(t) {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := landlockBox(t, Policy{})
	if b == nil {
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.host.Tools = append(b.host.Tools, tool{exe, exe}) // the attempts are this program's
	for name, want := range map[string]syscall.Errno{"vsock": unix.EACCES, "unix": unix.EACCES, "udp": unix.EACCES, "mptcp": unix.EACCES, "socketpair": 0,
		"packet pair": unix.EAFNOSUPPORT,
		"tiocsti":     unix.EPERM, "unshare": unix.EPERM, "create": unix.EPERM, "plain": 0, "capabilities": 0} {
		o := do(t, b, Cmd{Argv: []string{exe, inside, name}})
		text := "<nil>"
		if want != 0 {
			text = want.Error()
		}
		if o.Status != 0 || strings.TrimSpace(o.Output) != text {
			t.Errorf("%s: %+v, want %s", name, o, text)
		}
	}
	if o := shell(t, b, fmt.Sprintf("exec 9<>/dev/tcp/127.0.0.1/%d", l.Addr().(*net.TCPAddr).Port)); o.Status == 0 {
		t.Errorf("a connection: %+v", o)
	}
}

// attemptSocket makes a socket that Landlock itself would let through.
func attemptSocket(name string) error {
	var err error
	if strings.HasPrefix(name, "@") { // connect to an abstract one
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
	}
	switch name {
	case "unix":
		_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	case "udp":
		_, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	case "mptcp":
		_, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	case "packet pair":
		_, err = unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM, 0)
	case "capabilities":
		header, have := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err = unix.Capget(&header, &have[0]); err == nil && have != [2]unix.CapUserData{} {
			err = fmt.Errorf("%+v", have)
		}
	case "socketpair":
		_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	default:
		err = errors.New("no such attempt")
	}
	return err
}

func TestLandlockSignals(t *testing.T) {
	if asNobody(t) {
		return
	}
	b := landlockBox(t, Policy{})
	if b == nil {
		return
	}
	bystander := exec.Command("sleep", "300")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = bystander.Process.Kill() // it is ours
		_ = bystander.Wait()
	}()
	// The bystander, the guard, and this process, by every way there is; its own children it may signal.
	o := shell(t, b, fmt.Sprintf(`for p in %d $PPID %d; do kill -9 $p; kill -STOP $p; kill -0 $p; done; sleep 300 & kill $! && echo own`, bystander.Process.Pid, os.Getpid()))
	if strings.Count(o.Output, "not permitted") != 9 || !strings.HasSuffix(o.Output, "own\n") {
		t.Errorf("%+v", o)
	}
}

// Whatever the command starts: nothing is left when it returns, also not of what left its session or ignores signals.
func TestLandlockLeavesNothing(t *testing.T) {
	if asNobody(t) {
		return
	}
	t.Setenv("TMPDIR", t.TempDir()) // nobody else's files come and go there
	b := landlockBox(t, Policy{})
	if b == nil {
		return
	}
	marker := "marker-" + rand.Text()
	line := fmt.Sprintf(stubborn, marker)
	left := func(how string) {
		t.Helper()
		if n := alive(t, marker); n != 0 {
			t.Errorf("%s: %d processes are left", how, n)
		}
	}
	ended := strings.TrimSuffix(line, fmt.Sprintf("\nsleep 300; : %s", marker))
	if o := shell(t, b, ended+"\nexit 7"); o.Status != 7 {
		t.Errorf("the shell ended: %+v", o)
	}
	left("the shell ended")
	if o := shell(t, b, line[:strings.LastIndex(line, "exec")]+"kill -9 $$"); o.Status != 137 || o.Killed != "" {
		t.Errorf("the shell killed itself: %+v", o)
	}
	left("the shell killed itself")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Run(ctx, Cmd{Shell: line})
		done <- err
	}()
	until(t, "the command runs", func() bool { return alive(t, marker) > 4 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	left("cancelled")
	b.policy.Timeout = 300 * time.Millisecond
	if o := shell(t, b, line); o.Status != 124 || o.Elapsed > 10*time.Second {
		t.Errorf("time limit: %+v", o)
	}
	left("time limit")
	if rest, err := filepath.Glob(filepath.Join(b.host.Temp, "tether-*", "home")); err != nil || len(rest) > 0 {
		t.Errorf("private folders are left: %q, %v", rest, err)
	}
}

// A bomb of processes is held to a number, and ended.
func TestLandlockForkBomb(t *testing.T) {
	if asNobody(t) {
		return
	}
	b := landlockBox(t, Policy{})
	if b == nil {
		return
	}
	b.policy.Timeout = time.Second
	marker := "marker-" + rand.Text()
	// Each process starts two more, at most 7 deep: bounded also where the limit does not count, as for root.
	const bomb = `f() { : %s; [ $1 -gt 6 ] && exec sleep 300; f $(($1+1)) & f $(($1+1)) & wait; }; f 0`
	if o := shell(t, b, fmt.Sprintf(bomb, marker)); o.Status != 124 {
		t.Errorf("%+v", o)
	}
	if n := alive(t, marker); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestLandlockMemory(t *testing.T) {
	if asNobody(t) {
		return
	}
	b := landlockBox(t, Policy{Memory: 64 << 20})
	if b == nil {
		return
	}
	// Two processes, each below the limit, one of them in a session of its own.
	const eat = `head -c 45M /dev/zero | tail -c 45M | sleep 300`
	o := shell(t, b, "setsid sh -c '"+eat+"' & "+eat)
	if o.Killed != killedMemory || o.Status != statusKilled {
		t.Errorf("%+v", o)
	}
}

func TestLandlockSurvivesNoKill(t *testing.T) {
	if asNobody(t) {
		return
	}
	if landlockBox(t, Policy{}) == nil {
		return
	}
	marker := "marker-" + rand.Text()
	cmd := exec.Command("/proc/self/exe", harness, t.TempDir(), fmt.Sprintf(stubborn, marker))
	temp := t.TempDir()
	cmd.Env = append(os.Environ(), "PROFILE="+string(Landlock), "TMPDIR="+temp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the command runs", func() bool { return alive(t, marker) > 5 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	until(t, "all is gone", func() bool { return alive(t, marker) == 0 })
	if rest, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || len(rest) > 0 {
		t.Errorf("left in the temporary folder: %q, %v", rest, err)
	}
}

func TestLandlockRefusesStateInside(t *testing.T) {
	root := t.TempDir()
	_, err := New(t.Context(), Policy{Root: root, Profile: Landlock, State: filepath.Join(root, ".tether")})
	var refused *RefusedError
	var missing *UnavailableError
	if !errors.As(err, &refused) && (kernelABI() >= landlockABI || !errors.As(err, &missing)) {
		t.Errorf("%v, want a refusal", err)
	}
}

// What a command closed to its owner is taken away too.
func TestPrivateDirIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	write(t, filepath.Join(dir, "a/b/c/file"), "x")
	for _, d := range []string{"a/b/c", "a/b", "a"} {
		if err := os.Chmod(filepath.Join(dir, d), 0); err != nil {
			t.Fatal(err)
		}
	}
	if privateDir(dir).remove(); exists(dir) {
		t.Error("it is still there")
	}
	privateDir("").remove()
}

func TestFence(t *testing.T) {
	h := machine()
	h.Temp, h.Private, h.Home = "/tmp/tether-1/tmp", "/tmp/tether-1", "/tmp/tether-1/home"
	f := fenceOf(Policy{Profile: Landlock, Root: "/srv/p", Cache: "/home/ada/.cache/tether/1"}, h)
	if want := []string{"/srv/p", "/home/ada/.cache/tether/1", "/tmp/tether-1"}; !slices.Equal(f.Write, want) {
		t.Errorf("writes %q, want %q", f.Write, want)
	}
	if !slices.Equal(f.Omit, []string{"/etc/shadow", "/etc/ssh/ssh_host_rsa_key", "/etc/ssl/private"}) {
		t.Errorf("omits %q", f.Omit)
	}
	for _, path := range f.Read {
		if path == "/" || path == "/proc" || path == "/home/ada" || within("/tmp", path) || within("/run", path) || within("/dev", path) {
			t.Errorf("reads %q", path)
		}
	}
}

func TestWithout(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"hosts", "shadow", "ssh/config", "ssh/key", "ssl/private/key", "ssl/certs/a", "plain/x"} {
		write(t, filepath.Join(root, f), "x")
	}
	if err := os.Symlink("shadow", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range without(root, []string{root + "/shadow", root + "/ssh/key", root + "/ssl/private"}) {
		got = append(got, fmt.Sprintf("%s %v", strings.TrimPrefix(r.path, root), r.list))
	}
	want := []string{" true", "/hosts false", "/plain false", "/ssh true", "/ssh/config false", "/ssl true", "/ssl/certs false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
