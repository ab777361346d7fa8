//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// drives are the attacks that take more than one command in one box. Each is given the line of its case.
var drives = map[string]func(*field, string) error{
	"leaky":    leaky,
	"killed":   killed,
	"terminal": terminal,
	"twice":    twice,
	"together": together,
	"swapped":  swapped,
	"small":    small,
	"gated":    gated,
	"selftest": selfTested,
}

// leaky attacks with a folder open that the harness happened to inherit.
func leaky(f *field, line string) error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0) // without O_CLOEXEC
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f.plain(line)
}

// killed ends the harness itself with SIGKILL while a command runs.
func killed(f *field, line string) error {
	cmd := exec.Command("/proc/self/exe", harness, f.ws, line)
	if f.Weak {
		argv := f.naive("/bin/sh", "-c", line)
		cmd = exec.Command(argv[0], argv[1:]...)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	sleeps := func() bool { n, _, _ := f.host(`pgrep -fc "^sleep 73$ID"`); return strings.HasSuffix(n, "2\n") }
	if !within20s(sleeps) {
		return errors.New("the command never ran")
	}
	_ = cmd.Process.Kill() // its end is seen below
	_ = cmd.Wait()
	began := time.Now()
	gone := func() bool {
		_, status, _ := f.host(f.Case.Check)
		return status == 0 || time.Since(began) > time.Second
	}
	within20s(gone)
	return os.WriteFile(f.log, nil, 0o644)
}

// within20s polls a real process until a deadline that only a broken machine misses.
func within20s(ok func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return true
		}
	}
	return false
}

// terminal attacks while the harness is on a terminal, and looks whether anything was typed into it.
func terminal(f *field, line string) error {
	signal.Ignore(unix.SIGHUP) // the terminal goes away before the harness does
	master, slave, err := onTerminal()
	if err != nil {
		return err
	}
	if err := f.plain(line); err != nil {
		return err
	}
	if end, text := waiting(master, slave); text != "" {
		return f.note(Outcome{Output: fmt.Sprintf("INJECTED at the %s: %q\n", end, text)})
	}
	return nil
}

// twice gives the same line to two calls of one session.
func twice(f *field, line string) error {
	if err := f.plain(line); err != nil {
		return err
	}
	return f.plain(line)
}

// together runs the line in a box while another box over the same workspace comes and goes. The line says "here" when
// it runs and goes on at "go".
func together(f *field, line string) error {
	done := make(chan error, 1)
	go func() { done <- f.plain(line) }()
	if !within20s(func() bool { return exists(filepath.Join(f.ws, "here")) }) {
		return errors.Join(errors.New("the command never ran"), <-done)
	}
	for range 3 {
		if err := f.other("true").plain("true"); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(f.ws, "go"), nil, 0o644); err != nil {
		return err
	}
	return <-done
}

// other is a second harness on the same field.
func (f *field) other(name string) *field {
	o := *f
	o.log = filepath.Join(f.Dir, name+".log")
	return &o
}

// exchanger swaps two names in the workspace as fast as it can, until there is a file "stop".
const exchanger = `exec /usr/bin/python3 -c '
import ctypes, os, sys
l = ctypes.CDLL(None)
name, link = sys.argv[1].encode(), b"swap"
os.makedirs(name, exist_ok=True)
os.symlink(sys.argv[2], link)
open("here", "w")
while not os.path.exists("stop"):
    for i in range(101):
        l.renameat2(-100, name, -100, link, 2)
' `

// swapped runs the line again and again while a command of another box swaps a folder for a link. The folder is the
// workspace of the line if it is none of the protected ones. Those the other command must have made itself, since what
// is there before is a mount point to it, and stays.
func swapped(f *field, line string) error {
	const long = 2 * time.Second // some 50 commands: by name, one in ten of them was a hit
	name, target, run := f.Case.Swap[0], *f, f.plain
	ours := func() (ok bool, err error) { // makes the box that is attacked
		b, err := New(context.Background(), target.policy())
		run = func(line string) error { return target.in(b, line) }
		return err == nil, err
	}
	if !slices.Contains(protected, name) {
		target.ws = filepath.Join(f.ws, name)
		run = target.plain
		if err := os.Mkdir(target.ws, 0o755); err != nil {
			return err
		}
		if !f.Weak {
			if _, err := ours(); err != nil {
				return err
			}
		}
	}
	done := make(chan error, 1)
	go func() { done <- f.other("swapper").plain(exchanger + name + " " + f.Case.Swap[1]) }()
	if !within20s(func() bool { return exists(filepath.Join(f.ws, "here")) }) {
		return errors.Join(errors.New("the command never ran"), <-done)
	}
	if slices.Contains(protected, name) && !f.Weak && !within20s(func() bool { ok, _ := ours(); return ok }) {
		return errors.New("no moment without the link")
	}
	var err error
	for began := time.Now(); time.Since(began) < long && err == nil; {
		err = run(line)
	}
	f.took = target.took
	return errors.Join(err, os.WriteFile(filepath.Join(f.ws, "stop"), nil, 0o644), <-done)
}

// small attacks in a workspace that may grow by 100 MB.
func small(f *field, line string) error {
	return f.under(line, func(p *Policy) { p.Growth = 100 << 20 })
}

// gated attacks a workspace with the files of a gate in it.
func gated(f *field, line string) error {
	return f.under(line, func(p *Policy) { p.Protect = []string{"tests/check", "verify.sh"} })
}

// under runs a line in a box with a policy that is a little different.
func (f *field) under(line string, change func(*Policy)) error {
	if f.Weak {
		return f.plain(line)
	}
	p := f.policy()
	change(&p)
	b, err := New(context.Background(), p)
	if err != nil {
		return err
	}
	defer b.Close()
	return f.in(b, line)
}

// selfTested makes the attempts of SelfTest; under the control all of them, without a sandbox.
func selfTested(f *field, _ string) error {
	p := f.policy()
	if f.Weak {
		p.Profile = Off
	}
	trials, err := selfTest(context.Background(), p, func(a attack, _ Policy) bool { return slices.Contains(a.in, f.Case.Profile) })
	var lines strings.Builder
	for _, t := range trials {
		fmt.Fprintf(&lines, "%t %s: %s\n", t.Held, t.Name, t.Seen)
	}
	return errors.Join(err, f.append([]byte(lines.String())))
}
