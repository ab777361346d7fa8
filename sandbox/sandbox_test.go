//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"
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
	Init()
	if len(os.Args) == 2 && os.Args[1] == stageApart {
		os.Exit(runApart())
	}
	if len(os.Args) == 2 && os.Args[1] == stageTrial {
		os.Exit(runTrial())
	}
	if len(os.Args) == 3 && os.Args[1] == inside {
		fmt.Println(attempt(os.Args[2]))
		return
	}
	if len(os.Args) == 4 && os.Args[1] == harness {
		b, err := New(context.Background(), Policy{Root: os.Args[2], Profile: Profile(os.Getenv("PROFILE"))})
		if err == nil {
			_, err = b.Run(context.Background(), Cmd{Shell: os.Args[3]})
		}
		fmt.Println(err)
		return
	}
	if len(os.Args) == 3 && os.Args[1] == writer {
		writeForEver(os.Args[2])
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
	case "answers":
		return answers()
	case "plain":
		_, err := unix.Open("plain", unix.O_CREAT|unix.O_WRONLY, 0o755)
		return err
	}
	return attemptSocket(name)
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
