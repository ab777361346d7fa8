//go:build failpoint

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tether/memory"
)

func init() { programs["robust-worker"] = func() { os.Exit(robustWorker()) } }

// A historian writes down what a process does to a store.
type historian struct {
	file    *os.File
	process string
	n       int
}

// openHistory opens a history; a process that cannot write one is of no use.
func openHistory(file, process string) *historian {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	return &historian{file: f, process: process}
}

// note writes one line, in one write: it is there or it is not.
func (h *historian) note(o operation) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	o.At, o.Process, o.N = now.Nano(), h.process, h.n
	line, err := json.Marshal(o)
	if err == nil {
		_, err = h.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// do notes o before and after act, which returns what it read.
func (h *historian) do(o operation, act func() ([]string, error)) {
	h.n++
	o.Phase = "invoke"
	h.note(o)
	ids, err := act()
	o.Phase, o.IDs = "ok", ids
	if err != nil {
		o.Phase, o.IDs = "fail", nil
	}
	h.note(o)
}

// read reads a whole session.
func (h *historian) read(s *memory.Store, session string) {
	h.do(operation{Kind: "read", Session: session}, func() ([]string, error) {
		events, err := s.Events(context.Background(), session)
		var ids []string
		for _, e := range events {
			var o memory.Observation
			if e.Kind == memory.KindObservation && json.Unmarshal(e.Body, &o) == nil {
				ids = append(ids, session+"/"+o.ID)
			}
		}
		return ids, err
	})
}

// loadHistory reads the lines of a history. The last line of a process that was
// killed may be half a line; it says nothing.
func loadHistory(t *testing.T, files ...string) (history []operation) {
	t.Helper()
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var o operation
			if json.Unmarshal(lines.Bytes(), &o) == nil {
				history = append(history, o)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return history
}

// perSession is how many events a session of the job has, about: reads return
// whole sessions.
const perSession = 100

// robustWorker appends, reads and searches at random until it is killed, or has
// done enough. Its status is 1 if it could not open the store.
func robustWorker() int {
	ctx := context.Background()
	h := openHistory(os.Getenv("ROBUST_HISTORY"), os.Getenv("ROBUST_PROCESS"))
	seed, err := strconv.ParseUint(os.Getenv("ROBUST_SEED"), 10, 64)
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	s, err := memory.Open(ctx, os.Getenv("ROBUST_STORE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(50 * time.Millisecond) // the disk may be full: do not start again at once
		return 1
	}
	last := int64(rng.IntN(perSession))
	for range 10_000 {
		session := fmt.Sprint("s", cmp.Or(last, 1)/perSession)
		switch n := rng.IntN(8); {
		case n < 5:
			id := fmt.Sprintf("obs_%s%d", h.process[1:], 10_000+h.n)
			h.do(operation{Kind: "append", Session: session, ID: session + "/" + id}, func() ([]string, error) {
				e, err := s.Append(ctx, session, memory.KindObservation, memory.Observation{ID: id, Output: "what " + h.process + " saw"})
				if err == nil {
					last = e.Seq
				}
				return nil, err
			})
		case n < 7:
			h.read(s, session)
		default:
			h.do(operation{Kind: "search", Session: session}, func() ([]string, error) {
				hits, err := s.Search(ctx, session, "saw "+h.process, 5)
				var ids []string
				for _, hit := range hits {
					ids = append(ids, hit.Session+"/"+hit.ID)
				}
				return ids, err
			})
		}
	}
	return 0
}
