package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// A resultWriter is standard output, and remembers whether something could not be
// written there. Most of what prints does not look: main does, for all commands.
type resultWriter struct {
	io.Writer
	mu   sync.Mutex
	lost error // of the newest write that failed
}

// Write writes b. What comes after a failed write is tried all the same: the last
// line is the one that says how a run ended.
func (w *resultWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lost = err
	}
	return n, err
}

// tell returns err, which a command ended with, or that its result was lost: a
// script that reads a file cut short must not be told that all is well. An error of
// another kind keeps its status, and the loss is told on errs. A reader that has seen
// enough loses nothing.
func (w *resultWriter) tell(errs io.Writer, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == nil || errors.Is(w.lost, syscall.EPIPE) {
		return err
	}
	lost := fmt.Errorf("the result could not be written whole (%w)\nmake room or write it elsewhere, and try again", reason(w.lost))
	if err == nil || errors.Is(err, w.lost) {
		return lost
	}
	fmt.Fprintln(errs, "tether:", lost)
	return err
}

// bare is what is under a resultWriter: a program that is started gets the file
// itself, and a terminal is known by it.
func bare(w io.Writer) io.Writer {
	if r, ok := w.(*resultWriter); ok {
		return r.Writer
	}
	return w
}
