package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tether/harness"
)

// TestInputThatNeverEnds: who presses Ctrl-C while tether waits for input, or for
// the other end of a FIFO, is rid of it.
func TestInputThatNeverEnds(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"act", "--stdin", "-", "cat"}, {"act", "--stdin", fifo, "cat"}, {"run", "-"}, {"import", "-"}, {"import", fifo}} {
		in, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		defer end.Close()
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(harness.ErrInterrupted)
		var out bytes.Buffer
		p := newPlace(t, "", "")
		if got := (&program{In: in, Out: &out, Err: &out, Getenv: p.env}).main(ctx, append(args, "-C", p.ws)); got != 130 {
			t.Errorf("%q: exit status %d, want 130: %s", args, got, out.String())
		}
	}
}
