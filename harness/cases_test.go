package harness_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	window "tether/context"
	"tether/harness"
)

// A reported case is a line of testdata/cases.jsonl, which was handed over: a loop,
// or an end that was claimed, and what is right. Endless text in one stream, d15, is
// the business of package llm.
type reported struct {
	ID    string
	Input struct {
		Type       string
		Turns      []struct{ Cmd, Out string }
		Verify     json.RawMessage
		Final      string
		Message    json.RawMessage
		Acceptance []string
	}
	Expect struct {
		Outcome string
		NudgeAt int `json:"nudge_at"`
		StopAt  int `json:"stop_at"`
	}
}

// TestReportedCases runs every handed case.
func TestReportedCases(t *testing.T) {
	f, err := os.Open("testdata/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, n := bufio.NewScanner(f), 0
	for ; lines.Scan(); n++ {
		var c reported
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		t.Run(c.ID, func(t *testing.T) {
			if c.Input.Type == "turns" {
				c.turns(t)
				return
			}
			c.session(t)
		})
	}
	if n != 9 {
		t.Errorf("%d cases, want 9", n)
	}
}

// turns plays the calls of a case against the guard. None of them changes
// anything, whatever time stands in what they print. The guard may be stricter
// than asked for, and never later.
func (c reported) turns(t *testing.T) {
	var g harness.Guard
	nudged, stopped := 0, 0
	for i, turn := range c.Input.Turns {
		call := window.Call{Cmd: turn.Cmd}
		refused := g.Refuse(call) != ""
		if !refused {
			g.Ran(call, false)
		}
		if nudged == 0 && (refused || g.Idle() >= idleNudge) {
			nudged = i + 1
		}
		if stopped == 0 && g.Stalled() {
			stopped = i + 1
		}
	}
	if nudged == 0 || nudged > c.Expect.NudgeAt {
		t.Errorf("a word about it at call %d, want it by %d", nudged, c.Expect.NudgeAt)
	}
	if c.Expect.StopAt > 0 && (stopped == 0 || stopped > c.Expect.StopAt) {
		t.Errorf("stopped at call %d, want it by %d", stopped, c.Expect.StopAt)
	}
}

// idleNudge is how many calls that change nothing bring another text; idle.txtar
// shows it.
const idleNudge = 4

// session plays a whole run. The gate of a case stands for its verify command.
func (c reported) session(t *testing.T) {
	run := map[string]struct {
		replies, gate string
		files         map[string]string
		stop          harness.Stop
		exit          int
	}{
		"d09": {replies: strings.Repeat(`{"text":"Sure. I'll read config.go and then update the parser. Let me start."}`+"\n", 8), stop: harness.Stalled, exit: 5},
		"d11": {
			replies: claims("done All done, tests pass.", "a.txt"),
			gate:    "echo '--- FAIL: TestX'; exit 1", stop: harness.GateFailed, exit: 3,
		},
		"d13": {
			replies: `{"cmd":"write todo.txt [x] done"}` + "\n" + claims("done", "todo.txt"),
			gate:    "! grep -q x todo.txt", stop: harness.GateFailed, exit: 3,
		},
		"d17": {
			replies: `{"cmd":"printf '#!/bin/sh\\nexit 0\\n' > verify.sh"}` + "\n" + claims("done", "a.txt"),
			gate:    "sh ./verify.sh", files: map[string]string{"verify.sh": "exit 1\n"}, stop: harness.GateError, exit: 3,
		},
		"d19": {
			replies: `{"cmd":"sh -c 'grep -q good main.go'"}` + "\n" + `{"cmd":"edit main.go 1:1","stdin":"bad\n"}` + "\n" + claims("done", "main.go"),
			gate:    "grep -q good main.go", files: map[string]string{"main.go": "good\n"}, stop: harness.GateFailed, exit: 3,
		},
	}
	r, ok := run[c.ID]
	if !ok {
		t.Fatalf("nothing plays %s", c.ID)
	}
	ws, script := t.TempDir(), filepath.Join(t.TempDir(), "model.jsonl")
	for name, text := range r.files {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(script, []byte(r.replies), 0o644); err != nil {
		t.Fatal(err)
	}
	a, seen := agent(t, ws, script)
	if r.gate != "" {
		a.Gates = []harness.Gate{{Cmd: r.gate}}
	}
	out, err := a.Do(context.Background(), "carry it out")
	if err != nil || out.Stop != r.stop || out.Exit != r.exit {
		t.Errorf("stop %s, exit %d, %v; want %s, %d\n%s", out.Stop, out.Exit, err, r.stop, r.exit, *seen)
	}
	if r.gate != "" && out.Gates[0].Status == 0 {
		t.Errorf("the gate counts as passed: %+v", out.Gates)
	}
}

// claims are replies that say again and again that all is done, and change a file
// between.
func claims(done, file string) string {
	var b strings.Builder
	for i := range harness.MaxTries + 1 {
		fmt.Fprintf(&b, "{\"cmd\":%q}\n{\"cmd\":\"append %s x%d\"}\n", done, file, i)
	}
	return b.String()
}
