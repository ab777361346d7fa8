//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// silent are the commands that print no result: what they did is told beside it.
var silent = []string{"stop", "backup"}

// TestEveryResult: each command is in the script about a standard output that is
// full.
func TestEveryResult(t *testing.T) {
	text, err := os.ReadFile("testdata/script/full.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(text), "-- lines --\n")
	for _, name := range names() {
		if tried := strings.Contains(lines, "\n"+name+" ") || strings.Contains(lines, "\n"+name+"\n"); tried == slices.Contains(silent, name) {
			t.Errorf("%s: in the script %v", name, tried)
		}
	}
}

// A failing writer fails with err.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestLostResult: what a command ended with, and what is told of it, when its output
// was lost. Somebody who closed a pipe knows what they have.
func TestLostResult(t *testing.T) {
	other := errors.New("another error")
	for _, c := range []struct {
		write, err error
		want       string // of the error; empty: none
		told       bool
	}{
		{nil, nil, "", false},
		{nil, other, "another error", false},
		{syscall.ENOSPC, nil, "the result could not be written whole (no space left on device)\nmake room", false},
		{syscall.EIO, fmt.Errorf("write: %w", syscall.EIO), "the result could not be written whole (input/output error)", false},
		{syscall.ENOSPC, other, "another error", true},
		{syscall.EPIPE, nil, "", false},
		{syscall.EPIPE, syscall.EPIPE, "broken pipe", false},
	} {
		var errs bytes.Buffer
		w := &resultWriter{Writer: io.Discard}
		if c.write != nil {
			w.Writer = failing{&os.PathError{Op: "write", Path: "/dev/stdout", Err: c.write}}
		}
		fmt.Fprintln(w, "a result")
		if errors.Is(c.err, c.write) && c.err != nil {
			_, c.err = fmt.Fprintln(w, "a result")
		}
		err := w.tell(&errs, c.err)
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v, %v: %v, want %q", c.write, c.err, err, c.want)
		}
		if told := strings.Contains(errs.String(), "could not be written whole"); told != c.told {
			t.Errorf("%v, %v: told %q", c.write, c.err, errs.String())
		}
	}
}
