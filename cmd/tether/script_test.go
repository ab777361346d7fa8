//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"tether/sandbox"
)

// TestMain lets the test binary stand in for tether: a script that runs tether
// runs this package's main in a process of its own.
func TestMain(m *testing.M) {
	sandbox.Init()
	testscript.Main(m, programs)
}

// programs are what the test binary can be, by name.
var programs = map[string]func(){"tether": main}

// TestScript runs testdata/script/*.txtar, whole command lines against the real
// sandbox and the real store. Besides the commands of testscript there are:
//
//	status N program args…          run it; exit status N, and no escape byte in what it prints
//	terminal N program args…        the same on a terminal, where escape bytes may be
//	json FILE SHAPE                 the JSON values in FILE have that shape (see shapes)
//	field FILE PATH VALUE           in the last of them; PATH such as gates.0.status
//	typed N LINE program args…      and with somebody there who types LINE
//	during FIFO SIG N program args… send it SIG when FIFO has a writer; exit status N, nothing is left behind
//	model                           serve model.jsonl at OPENAI_BASE_URL, and keep each request as sent/N
//	windows                         the newest session's windows are sent/1, sent/2, …
//	newest                          ID is the newest session's id, PREFIX all but its last character
//	ollama NAME…                    serve the list of these models at OLLAMA_HOST
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": cmdStatus, "terminal": cmdTerminal, "json": cmdJSON, "field": cmdField, "during": cmdDuring,
			"model": cmdModel, "windows": cmdWindows, "newest": cmdNewest, "ollama": cmdOllama,
			"typed": cmdTyped,
		},
	})
}

// TestScriptsUseStatus: only status looks for escape bytes and at the number.
func TestScriptsUseStatus(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "exec tether") {
			t.Errorf("%s runs tether with exec; want status", file)
		}
	}
}

// setUp gives a script a home of its own, no model server, and the workspace
// ws to stand in. Nothing of tether's environment comes in: testscript starts
// with an empty one.
func setUp(e *testscript.Env) error {
	dir := func(name string) string { return filepath.Join(e.WorkDir, name) }
	for name, value := range map[string]string{
		"HOME": dir("home"), "XDG_CONFIG_HOME": dir("xdg/config"), "XDG_STATE_HOME": dir("xdg/state"),
		"XDG_CACHE_HOME": dir("xdg/cache"), "XDG_DATA_HOME": dir("xdg/data"),
		"OLLAMA_HOST": "http://127.0.0.1:1", "TETHER_LLAMA_URL": "http://127.0.0.1:1",
		"GORACE": "atexit_sleep_ms=0", // else each process of a test with -race sleeps for a second at its end
		"M":      "script:" + dir("model.jsonl"),
	} {
		e.Setenv(name, value)
	}
	e.Cd = dir("ws")
	return errors.Join(os.MkdirAll(dir("home"), 0o755), os.MkdirAll(e.Cd, 0o755))
}

// cmdStatus runs a program and looks at how it ended.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := exitStatus(ts, ts.Exec(args[1], args[2:]...))
	noEscape(ts, "stdout", ts.ReadFile("stdout"))
	noEscape(ts, "stderr", ts.ReadFile("stderr"))
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// exitStatus is the status in err, which exec returned.
func exitStatus(ts *testscript.TestScript, err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// noEscape: off a terminal nothing that could move a cursor is printed.
func noEscape(ts *testscript.TestScript, name, text string) {
	if i := strings.IndexAny(text, "\x1b\r\x07\x08"); i >= 0 {
		ts.Fatalf("%s has a control byte: %q", name, text[max(i-20, 0):min(i+20, len(text))])
	}
}

// cmdTerminal runs a program whose output is a terminal. What it shows there is
// the stdout of the script.
func cmdTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal N program args…")
	}
	screen, tty := openTerminal(ts)
	defer screen.Close()
	name, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(name, args[2:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	cmd.Stdout, cmd.Stderr = tty, tty
	err = cmd.Start()
	tty.Close()
	ts.Check(err)
	ts.Check(screen.SetReadDeadline(time.Now().Add(patience)))
	shown, err := io.ReadAll(screen)
	if !errors.Is(err, syscall.EIO) { // the terminal was hung up: its end
		ts.Check(err)
	}
	got := exitStatus(ts, cmd.Wait())
	fmt.Fprint(ts.Stdout(), string(shown))
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// openTerminal makes a terminal and returns both of its ends.
func openTerminal(ts *testscript.TestScript) (screen, tty *os.File) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	ts.Check(err)
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	ts.Check(err)
	ts.Check(unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	ts.Check(unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60}))
	ts.Check(unix.SetNonblock(int(screen.Fd()), true)) // Fd has made it wait
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	ts.Check(err)
	return screen, tty
}

// patience is how long a script waits for something that takes milliseconds.
const patience = 30 * time.Second

// cmdDuring runs a program whose command opens FIFO for writing, writes and
// keeps it open; sends SIG then; and waits for the end of the program and of
// everything that holds FIFO: of the whole process tree.
func cmdDuring(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: during FIFO SIG N program args…")
	}
	fifo := ts.MkAbs(args[0])
	ts.Check(syscall.Mkfifo(fifo, 0o600))
	sig, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP}[args[1]]
	want, err := strconv.Atoi(args[2])
	if err != nil || !ok {
		ts.Fatalf("during: a signal and a number, not %s %s", args[1], args[2])
	}
	name, err := exec.LookPath(args[3])
	ts.Check(err)
	cmd := exec.Command(name, args[4:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	held := openFIFO(fifo, ended)
	if held == nil {
		_ = cmd.Process.Kill()
		ts.Fatalf("nothing opened %s\n%s%s", args[0], stdout.String(), stderr.String())
	}
	defer held.Close()
	ts.Check(held.SetReadDeadline(time.Now().Add(patience)))
	_, err = held.Read(make([]byte, 1))
	ts.Check(err)
	ts.Check(cmd.Process.Signal(sig))
	if _, err := io.Copy(io.Discard, held); err != nil {
		ts.Fatalf("something of it still runs: %v", err)
	}
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](<-ended); ok {
		if got = exit.ExitCode(); exit.Sys().(syscall.WaitStatus).Signaled() {
			got = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
		}
	}
	noEscape(ts, "stdout", stdout.String())
	noEscape(ts, "stderr", stderr.String())
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// openFIFO opens a FIFO for reading, which waits for its writer. It gives up,
// with nil, when ended is ready or patience is over, and leaves ended filled.
func openFIFO(path string, ended chan error) *os.File {
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(path)
		opened <- f
	}()
	select {
	case f := <-opened:
		return f
	case err := <-ended:
		ended <- err
	case <-time.After(patience):
	}
	if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		w.Close() // the other end of the Open that waits
	}
	if f := <-opened; f != nil {
		f.Close()
	}
	return nil
}

// environment is the script's, for a process that this file starts itself.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
		"OLLAMA_HOST", "OPENAI_BASE_URL", "TETHER_LLAMA_URL", "TERM", "NO_COLOR", "GORACE", "GOCOVERDIR"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// cmdNewest sets ID and PREFIX.
func cmdNewest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: newest")
	}
	ts.Check(ts.Exec("tether", "ls", "-n", "1", "--json"))
	id := lines(ts, "stdout")[0].(map[string]any)["session"].(string)
	ts.Setenv("ID", id)
	ts.Setenv("PREFIX", id[:len(id)-1])
}
