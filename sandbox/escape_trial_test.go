//go:build linux

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// field is where one attack happens: a home with a workspace and secrets in it, and the host around it.
type field struct {
	trial
	home, ws, out, run, bak, sock, id string
	sleeper                           *exec.Cmd
	log                               string // file with what the attack printed
	rc                                int
	took                              time.Duration
	timedOut, cut                     bool
	found                             []string // what the box reported as planted
}

// runTrial is the harness of one attack. It has no right, and everything around it is there to be attacked.
func runTrial() int {
	var f field
	data, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(data, &f.trial)
	}
	var v verdict
	if err == nil {
		v, err = f.play()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "trial:", err)
		v.Held, v.Detail = false, v.Detail+"\nthe trial itself failed: "+err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return 1
	}
	fmt.Print(verdictMark + string(text))
	return 0
}

// play prepares the field, attacks and looks at what is left.
func (f *field) play() (verdict, error) {
	if err := f.prepare(); err != nil {
		return verdict{}, err
	}
	defer f.sleeper.Process.Kill()
	if out, status, err := f.host(f.Case.Setup); err != nil || status != 0 {
		return verdict{}, fmt.Errorf("set-up: status %d, %v: %s", status, err, out)
	}
	if err := f.attack(); err != nil {
		return verdict{}, err
	}
	said, status, err := f.host(f.Case.Check)
	text, _ := os.ReadFile(f.log)
	const most = 3000 // bytes of detail
	detail := string(text)
	if len(detail) > most {
		detail = detail[:most] + "…"
	}
	return verdict{Held: status == 0, RC: f.rc, MS: f.took.Milliseconds(),
		Detail: fmt.Sprintf("status %d, printed:\n%s\nchecked with status %d:\n%s", f.rc, detail, status, said)}, err
}

// attack plays the case's command, in the box or under the control.
func (f *field) attack() error {
	c := f.Case
	line := f.text(c.Command)
	if f.Weak && c.Instead != "" {
		line = f.text(c.Instead)
	}
	began := time.Now()
	defer func() {
		if f.took == 0 {
			f.took = time.Since(began)
		}
	}()
	if drive, special := drives[c.Drive]; special {
		return drive(f, line)
	}
	return f.plain(line)
}

// plain runs a line once: in a box, by the host, or under the control.
func (f *field) plain(line string) error {
	c := f.Case
	switch {
	case f.Weak && c.Weak == "host" || !f.Weak && c.Drive == "host":
		out, status, err := f.host(line)
		f.rc = status
		return errors.Join(err, f.append([]byte(out)))
	case f.Weak && c.Weak == "bare":
		return f.confine([]string{"/bin/bash", "--noprofile", "--norc", "-c", line})
	case f.Weak:
		return f.confine(f.naive("/bin/sh", "-c", line))
	}
	return f.box(line)
}

// limit is the time of one command.
func (f *field) limit() time.Duration {
	if f.Case.Timeout == 0 {
		return 10 * time.Second
	}
	return time.Duration(f.Case.Timeout * float64(time.Second))
}

// policy is the one that tether would use here.
func (f *field) policy() Policy {
	return Policy{Profile: f.Case.Profile, Root: f.ws, State: filepath.Join(f.ws, ".tether"), Cache: filepath.Join(f.Dir, "cache"), Timeout: f.limit()}
}

// box runs a line in the sandbox. A refusal is an outcome too: nothing ran.
func (f *field) box(line string) error {
	b, err := New(context.Background(), f.policy())
	if err != nil {
		return f.note(Outcome{Status: 78, Output: err.Error() + "\n"})
	}
	defer b.Close()
	return f.in(b, line)
}

// in runs a line in a box.
func (f *field) in(b *Box, line string) error {
	o, err := b.Run(context.Background(), Cmd{Shell: line})
	if err != nil {
		o.Output += err.Error() + "\n"
	}
	return f.note(o)
}

// note keeps an outcome for the check.
func (f *field) note(o Outcome) error {
	for _, found := range o.Planted {
		f.found = append(f.found, found.Path+": "+found.Why)
	}
	f.rc, f.took, f.timedOut = o.Status, o.Elapsed, f.timedOut || o.TimedOut
	f.cut = f.cut || o.Left > 0 || o.Killed == killedOutput
	return f.append([]byte(o.Output))
}

// append adds to what the check will find in $LOG.
func (f *field) append(data []byte) error {
	log, err := os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = log.Write(data)
	return errors.Join(err, log.Close())
}

// naive is the control: a read-only root, a writable workspace, hooks and settings of git read-only, a process
// namespace, and nothing else.
func (f *field) naive(argv ...string) []string {
	v := []string{"bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--unshare-pid", "--proc", "/proc", "--bind", f.ws, f.ws}
	for _, name := range []string{".git/hooks", ".git/config"} {
		if path := filepath.Join(f.ws, name); exists(path) {
			v = append(v, "--ro-bind", path, path)
		}
	}
	return append(append(v, "--chdir", f.ws, "--"), argv...)
}

// confine runs a program as a simple harness would: a time limit and an output limit, and a kill of the process group.
func (f *field) confine(argv []string) error {
	const most = 1 << 20 // bytes, as the check of the output flood has it
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = f.ws, w, w, &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Close()
	out, ended, collected := newOutput(most), make(chan error, 1), make(chan struct{})
	go func() { defer close(collected); out.collect(r) }()
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-out.full:
		f.cut = true
	case <-time.After(f.limit()):
		f.timedOut = true
	}
	if f.cut || f.timedOut {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // it may have ended
		<-ended
	}
	_ = r.SetReadDeadline(time.Now().Add(patience / 50)) // what left the group may hold the pipe
	<-collected
	f.rc, f.took = exitStatus(cmd.ProcessState), time.Since(began)
	return f.append(append(out.head, out.tail...))
}

// host runs a line of shell on the host side, in the workspace.
func (f *field) host(line string) (string, int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "--noprofile", "--norc", "-c", f.text(line))
	cmd.Dir, cmd.WaitDelay = f.ws, time.Second
	if !exists(f.ws) {
		cmd.Dir = f.Dir
	}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "LD_PRELOAD=") }), "LOG="+f.log, "RC="+strconv.Itoa(f.rc), "MS="+strconv.FormatInt(f.took.Milliseconds(), 10),
		"TIMEDOUT="+asFlag(f.timedOut), "TRUNC="+asFlag(f.cut), "FOUND="+strings.Join(f.found, "\n"))
	out, err := cmd.CombinedOutput()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		return string(out), exitStatus(ee.ProcessState), nil
	}
	return string(out), 0, err
}

func asFlag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// text replaces the variables of a case.
func (f *field) text(line string) string {
	return strings.NewReplacer("$WS", f.ws, "$OUT", f.out, "$HOME", f.home, "$RUN", f.run, "$BAK", f.bak, "$DSOCK", f.sock,
		"$AGENT", f.sock+".agent", "$HOSTPID", strconv.Itoa(f.sleeper.Process.Pid), "$ID", f.id, "$TETHER", f.Tether, "$LAB", f.Dir).Replace(line)
}
