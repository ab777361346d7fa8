//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A desk is a workspace with everything of its own, in which several tethers
// run as processes.
type desk struct {
	t   *testing.T
	dir string
	env []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &desk{t, dir, []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CONFIG_HOME=" + dir + "/config", "XDG_STATE_HOME=" + dir + "/state",
		"XDG_CACHE_HOME=" + dir + "/cache", "OLLAMA_HOST=http://127.0.0.1:1", "TETHER_LLAMA_URL=http://127.0.0.1:1", "GORACE=atexit_sleep_ms=0",
	}}
}

// script writes a script of command lines and returns its model.
func (h *desk) script(lines ...string) string {
	h.t.Helper()
	var b bytes.Buffer
	for _, line := range lines {
		cmd, stdin, _ := strings.Cut(line, " < ")
		if err := json.NewEncoder(&b).Encode(map[string]string{"cmd": cmd, "stdin": stdin}); err != nil {
			h.t.Fatal(err)
		}
	}
	file, err := os.CreateTemp(h.dir, "*.jsonl")
	if err == nil {
		_, err = file.Write(b.Bytes())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	file.Close()
	return "script:" + file.Name()
}

// command is a tether in the workspace.
func (h *desk) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), "tether", args...)
	cmd.Dir, cmd.Env = filepath.Join(h.dir, "ws"), h.env
	return cmd
}

// do runs a tether to its end.
func (h *desk) do(args ...string) (out, errs string, status int) {
	h.t.Helper()
	cmd := h.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		h.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), ended(cmd)
}

// ended is the status with which cmd ended, 128 and the signal if it was one.
func ended(cmd *exec.Cmd) int {
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// busy is a command line that tells that it runs, and then goes on until it is
// killed.
const busy = "exec 9>begun; echo >&9; sleep 60"

// begin starts a tether and waits until its command busy runs. What reads from
// held ends when nothing of the command is left.
func (h *desk) begin(cmd *exec.Cmd) (held *os.File) {
	h.t.Helper()
	fifo := filepath.Join(h.dir, "ws", "begun")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), cmd.Start()); err != nil {
		h.t.Fatal(err)
	}
	gone := make(chan error, 1)
	exit, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	go func() {
		defer unix.Close(exit)
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(exit), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		gone <- err
	}()
	if held = openFIFO(fifo, gone); held == nil {
		h.t.Fatalf("%s: nothing opened the FIFO", cmd)
	}
	h.t.Cleanup(func() { held.Close() })
	err = held.SetReadDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = held.Read(make([]byte, 1))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return held
}

// left reads held to its end, and fails if something of the command runs on.
func (h *desk) left(held *os.File) {
	h.t.Helper()
	if _, err := io.Copy(io.Discard, held); err != nil {
		h.t.Errorf("something of the command still runs: %v", err)
	}
	held.Close()
	if err := os.Remove(filepath.Join(h.dir, "ws", "begun")); err != nil {
		h.t.Error(err)
	}
}

// newest is the session that ls lists first.
func (h *desk) newest() listed {
	h.t.Helper()
	out, errs, _ := h.do("ls", "-n", "1", "--json")
	var l listed
	if err := json.Unmarshal([]byte(out), &l); err != nil {
		h.t.Fatalf("ls: %v\n%s%s", err, out, errs)
	}
	return l
}

// TestOneOwner: of two processes that want one session the second says at once
// who has it, and reads along. Ended from there, in order, the session is free at
// once; after kill -9 too.
func TestOneOwner(t *testing.T) {
	h := newDesk(t)
	first := h.command("run", "-q", "-m", h.script("write a.txt < a", busy), "Wait")
	held := h.begin(first)
	s := h.newest()
	if s.State != "running" || s.PID != first.Process.Pid {
		t.Errorf("ls says %+v, and process %d runs it", s, first.Process.Pid)
	}
	for _, args := range [][]string{{"resume", s.Session}, {"send", s.Session, "Hello"}, {"send", "--no-run", s.Session, "Hello"}} {
		out, errs, status := h.do(args...)
		if status != 1 || out != "" || !strings.Contains(errs, fmt.Sprintf("session %s is being run by process %d", s.Session, first.Process.Pid)) || !strings.Contains(errs, "tether show "+s.Session) {
			t.Errorf("%v: status %d\n%s%s", args, status, out, errs)
		}
	}
	if out, errs, status := h.do("show", s.Session); status != 0 || !strings.Contains(out, "1 $ write a.txt") {
		t.Errorf("show: status %d\n%s%s", status, out, errs)
	}
	if _, errs, status := h.do("resume"); status != 2 || !strings.Contains(errs, "no session here is unfinished") {
		t.Errorf("resume takes what another one runs: status %d\n%s", status, errs)
	}
	if _, errs, status := h.do("stop", s.Session[:len(s.Session)-1]); status != 0 || !strings.Contains(errs, "has ended: interrupted; go on with: tether resume "+s.Session) {
		t.Errorf("stop: status %d\n%s", status, errs)
	}
	_ = first.Wait()
	if status := ended(first); status != 130 {
		t.Errorf("the one that was stopped ended with %d, want 130", status)
	}
	h.left(held)
	if _, errs, status := h.do("stop", s.Session); status != 1 || !strings.Contains(errs, "does not run") {
		t.Errorf("stop again: status %d\n%s", status, errs)
	}

	second := h.command("resume", "-q", "-m", h.script(busy), s.Session)
	held = h.begin(second)
	if err := second.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = second.Wait()
	h.left(held)
	if out, errs, status := h.do("resume", "-m", h.script("read a.txt", "done Read."), s.Session); status != 0 || out != "Read.\n" {
		t.Errorf("after kill -9: status %d\n%s%s", status, out, errs)
	}
}

// TestSideBySide: two tethers in one workspace and one store do not disturb each
// other.
func TestSideBySide(t *testing.T) {
	h := newDesk(t)
	var all []*exec.Cmd
	var said []*bytes.Buffer
	const steps = 12
	for i := range 2 {
		var lines []string
		for n := range steps {
			lines = append(lines, fmt.Sprintf("append %d.txt < line %d", i, n))
		}
		cmd := h.command("run", "-q", "-m", h.script(append(lines, "done")...), "--verify", fmt.Sprintf("test $(wc -l < %d.txt) = %d", i, steps), fmt.Sprint("Task ", i))
		said = append(said, new(bytes.Buffer))
		cmd.Stdout, cmd.Stderr = said[i], said[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil || strings.Contains(said[i].String(), "locked") {
			t.Errorf("%d: %v\n%s", i, err, said[i])
		}
	}
	out, _, _ := h.do("ls", "--json")
	if n := strings.Count(out, fmt.Sprintf(`"steps":%d`, steps+1)); n != 2 {
		t.Errorf("%d sessions have all steps:\n%s", n, out)
	}
	if out, errs, status := h.do("fsck"); status != 0 {
		t.Errorf("fsck: %s%s", out, errs)
	}
}

// TestSignals: every signal that means "end" ends a run within 2 s in order, with
// its own status; the second one at once.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		signals []syscall.Signal
		status  int
		stop    string
	}{
		{[]syscall.Signal{syscall.SIGINT}, 130, "interrupted"},
		{[]syscall.Signal{syscall.SIGTERM}, 143, "terminated"},
		{[]syscall.Signal{syscall.SIGHUP}, 129, "hangup"},
		{[]syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, 143, ""},
		{[]syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 130, "interrupted"}, // as timeout(1) does
		{[]syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGINT}, 130, "interrupted"},
	} {
		h := newDesk(t)
		cmd := h.command("run", "-q", "-m", h.script("write a.txt < a", busy), "Wait")
		held := h.begin(cmd)
		began := time.Now()
		for _, s := range c.signals {
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		took := time.Since(began)
		// Of two signals the first may have ended it already.
		if got := ended(cmd); took > 2*time.Second || got != c.status && (c.stop != "" || got != 130) {
			t.Errorf("%v: status %d after %s, want %d within 2 s", c.signals, got, took, c.status)
		}
		h.left(held)
		if s := h.newest(); c.stop != "" && string(s.Stop) != c.stop || s.Steps < 1 || s.State != "interrupted" {
			t.Errorf("%v: %+v, want the stop %s", c.signals, s, c.stop)
		}
	}
}

// TestTerminalGone: a terminal that is closed ends the run as its signal does.
func TestTerminalGone(t *testing.T) {
	h := newDesk(t)
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	tty, err2 := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	cmd := h.command("run", "-m", h.script("write a.txt < a", busy), "Wait")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	held := h.begin(cmd)
	tty.Close()
	screen.Close()
	_ = cmd.Wait()
	if got := ended(cmd); got != 129 {
		t.Errorf("status %d, want 129", got)
	}
	h.left(held)
	if s := h.newest(); s.Stop != "hangup" {
		t.Errorf("%+v", s)
	}
}

// TestReaderGone: whoever reads what a run prints may go away; the run goes on,
// and nothing of it is lost.
func TestReaderGone(t *testing.T) {
	h := newDesk(t)
	cmd := h.command("run", "--events", "-m", h.script("write a.txt < a", "read a.txt", "write b.txt < b", "done"), "Write")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(out, 16).ReadSlice('\n'); len(line) == 0 {
		t.Fatal(err)
	}
	out.Close()
	_ = cmd.Wait()
	if s := h.newest(); s.Stop != "done" || s.Steps != 4 {
		t.Errorf("ended with %d: %+v", ended(cmd), s)
	}
	if out, errs, status := h.do("show"); status != 0 || !strings.Contains(out, "3 $ write b.txt") {
		t.Errorf("show: status %d\n%s%s", status, out, errs)
	}
}

// TestSuspended: a run that is suspended for a while goes on as if nothing had
// been, with all of its output.
func TestSuspended(t *testing.T) {
	h := newDesk(t)
	line := "exec 9>begun; echo >&9; exec 9>&-; until test -f go.txt; do :; done; seq 1 2000 | tail -1"
	cmd := h.command("run", "-q", "--timeout", "2m", "-m", h.script(line, "done"), "Wait")
	held := h.begin(cmd)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var state unix.Siginfo
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &state, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "ws", "go.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if s := h.newest(); s.State != "running" {
		t.Errorf("while it is suspended: %+v", s)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	h.left(held)
	out, _, _ := h.do("show", "--json")
	if !strings.Contains(out, `"output":"2000\n`) || strings.Count(out, `"cmd":"exec 9`) != 1 {
		t.Errorf("%s", out)
	}
}
