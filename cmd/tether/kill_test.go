//go:build failpoint

package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var kills = flag.Int("kills", 60, "how often the kill loop kills")

// TestKillLoop kills tether at random moments while it works on tasks with a
// scripted model, and has it resume. Every event that it told of must be in the
// log, no act may be run twice, and every session must come to its end.
func TestKillLoop(t *testing.T) {
	if os.Getenv(confinedEnv) == "" {
		confine(t)
		return
	}
	j := newTrial(t, rand.Uint64(), sound)
	for n := 0; j.faults["kill"] < *kills; n++ {
		j.task(agentSession{slot: slotAgent, n: n, model: "script:" + script(t, n)})
	}
	j.finish()
	for _, v := range violations(j.history(), j.end) {
		t.Error(v)
	}
	t.Logf("%d kills; %s", j.faults["kill"], j.summary())
}

// task has one task killed until it is done.
func (j *trial) task(s agentSession) {
	for range 50 {
		limit := time.Duration(20+j.draw(150)) * time.Millisecond
		ctx, cancel := context.WithTimeout(j.t.Context(), limit)
		done := j.attempt(ctx, &s, nil)
		if ctx.Err() != nil {
			j.count("kill")
		}
		cancel()
		if done {
			j.done++
			return
		}
		if s.id == "" {
			s.n += 1000 // it was killed before it said its session's name: another task
			s.model = "script:" + script(j.t, s.n)
		}
	}
	j.sessions = append(j.sessions, s)
}

// script writes the replies for a task.
func script(t *testing.T, n int) string {
	var lines strings.Builder
	for i := range taskActs + 5 { // a done that was killed is asked for again
		fmt.Fprintln(&lines, reply(fmt.Sprintf("%d-%d", slotAgent, n), i+1))
	}
	file := filepath.Join(t.TempDir(), "model.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
