//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdTyped is cmdTerminal with somebody at the keyboard, who types a line.
func cmdTyped(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: typed N LINE program args…")
	}
	screen, tty := openTerminal(ts)
	defer screen.Close()
	name, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(name, args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	err = cmd.Start()
	tty.Close()
	ts.Check(err)
	_, err = io.WriteString(screen, args[1]+"\n") // the terminal keeps it until it is read
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
