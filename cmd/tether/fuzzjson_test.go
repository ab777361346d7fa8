//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/harness/llm"
	"tether/memory"
)

// fuzzed are scripts of a model that says anything. What is random is the same for the
// same seed.
type fuzzed struct{ *rand.Rand }

// pieces are texts of which some break a line, a string or an encoding of JSON.
var pieces = []string{
	"a", "x y", "\n", "\r\n", "\"", "\\", "{", "}", "</script>", "\x00", "\x1b[2J", "\u2028", "\u202e", "\ufffe", "é", "日本", "🙂", "\u0301",
	"{\"v\":1,\"type\":\"result\"}", "::error::x", "%s%d", "```json\n", "<tool_call>", strings.Repeat("long ", 900), "\\u0000", "\\ud800", "\t",
}

func (r fuzzed) text(n int) string {
	var b strings.Builder
	for range r.IntN(n) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// line is one reply, as a line of a script.
func (r fuzzed) line() string {
	v := map[string]any{}
	switch r.IntN(9) {
	case 0:
		v["text"] = r.text(6)
	case 1:
		v["cmd"] = "done " + r.text(3)
	case 2:
		v["cmd"], v["stdin"] = "write f"+fmt.Sprint(r.IntN(3)), r.text(8)
	case 3:
		v["cmd"], v["stdin"] = "sh printf '\\377\\033[1m\\0%s\\r\\n' x; cat; exit "+fmt.Sprint(r.IntN(3)), r.text(4)
	case 4:
		v["cmd"], v["stdin"] = "ask", "Which file? "+r.text(3)
	case 5:
		v["role"], v["content"] = "assistant", r.text(8)
	case 6:
		v["role"], v["tool_calls"] = "assistant", []any{map[string]any{"function": map[string]any{"name": "act", "arguments": map[string]any{"cmd": "read " + r.text(2)}}}}
	case 7:
		v["cmd"] = r.text(4) + "x"
	default:
		v["cmd"] = "read f0"
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of a map of strings
	}
	return string(text)
}

// checkLines checks what --events printed: every line is a JSON object with its version
// and type, and the result is the last one and the only one. whole false: it was cut by
// a kill, and only the last line may be in two.
func checkLines(text string, whole bool) error {
	lines := strings.SplitAfter(text, "\n")
	if last := lines[len(lines)-1]; last != "" && whole {
		return fmt.Errorf("the last line has no end: %.80q", last)
	}
	lines = lines[:len(lines)-1]
	for i, line := range lines {
		var e struct {
			V      int             `json:"v"`
			Type   string          `json:"type"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.V != 1 || e.Type == "" {
			return fmt.Errorf("line %d: %v in %.200q", i+1, err, line)
		}
		if strings.ContainsAny(line[:len(line)-1], "\x1b\r\x00\n\u2028\u202e") {
			return fmt.Errorf("line %d has a control character: %.200q", i+1, line)
		}
		if (e.Type == harness.EventResult) != (i == len(lines)-1) && whole {
			return fmt.Errorf("line %d of %d is the event %s", i+1, len(lines), e.Type)
		}
	}
	if whole && len(lines) == 0 {
		return errors.New("nothing was printed")
	}
	return nil
}

// TestFuzzedLines runs 1,000 scripts of anything. What --events and --json print is
// valid, whatever was said and however the run ended.
func TestFuzzedLines(t *testing.T) {
	const runs = 1000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := fuzzed{rand.New(rand.NewPCG(seed, 1))}
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "PATH": os.Getenv("PATH")}
	p := &program{In: strings.NewReader(""), Err: io.Discard, Getenv: func(k string) string { return env[k] }}
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Sandbox.Profile, c.Run.Steps = "off", 4 // a shell line takes a millisecond there
	c.Run.Tools = append(c.Run.Tools, "ask")
	store, err := memory.Open(t.Context(), ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	w, err := openFor(t.Context(), p, c, ws, store, func(w *workplace) (memory.Session, error) {
		return w.Store.NewSession(t.Context(), "Fuzz.", "script")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	stops := map[harness.Stop]int{}
	for n := range runs {
		var script strings.Builder
		for range 1 + r.IntN(6) {
			fmt.Fprintln(&script, r.line())
		}
		out, printed, err := r.run(t, p, w, script.String(), n%2 == 0)
		if err == nil {
			stops[out.Stop]++
			continue
		}
		t.Fatalf("run %d: %v\nscript:\n%.2000s\nprinted:\n%.2000s", n, err, script.String(), printed)
	}
	for _, stop := range []harness.Stop{harness.Done, harness.Steps, harness.Waiting, harness.Interrupted, harness.NoModel} {
		if stops[stop] == 0 {
			t.Errorf("no run ended with %s: %v", stop, stops)
		}
	}
	t.Logf("%d runs: %v", runs, stops)
}

// run runs one script, and interrupts every tenth one at any of its events.
func (r fuzzed) run(t *testing.T, p *program, w *workplace, script string, events bool) (harness.Outcome, string, error) {
	file := filepath.Join(t.TempDir(), "model.jsonl")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	model, err := llm.Open(t.Context(), llm.Config{Model: "script:" + file, Commands: w.Shell.Names()})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	task := "Fuzz. " + strings.ReplaceAll(r.text(3), "\x00", "")
	if w.Session, err = w.Store.NewSession(t.Context(), task, "script"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cut := -1
	if r.IntN(10) == 0 {
		cut = r.IntN(8)
	}
	var printed bytes.Buffer
	own := *p
	own.Out = &printed
	var f runFlags
	f.declare(pflag.NewFlagSet("run", pflag.ContinueOnError))
	f.events, f.json = events, !events
	a := w.agent(model, []harness.Gate{{Cmd: "test -s f0"}})
	told := f.reports.watch(f.notify(&own))
	a.Notify = func(e harness.Event) {
		if told(e); cut == 0 {
			cancel(harness.ErrInterrupted)
		}
		cut--
	}
	out, err := a.Do(ctx, task)
	_ = f.report(&own, out, err) // its status is that of out
	if events {
		return out, printed.String(), checkLines(printed.String(), true)
	}
	var got harness.Outcome
	d := json.NewDecoder(&printed)
	if err := d.Decode(&got); err != nil || got.Stop != out.Stop || got.Exit != out.Exit {
		return out, printed.String(), fmt.Errorf("%+v, %v", got, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return out, printed.String(), errors.New("more than one object")
	}
	return out, "", nil
}

// TestKilledLines ends real runs by each signal, after any number of lines. The result
// is the last line, but for kill -9: then all but the last line is whole.
func TestKilledLines(t *testing.T) {
	h := newDesk(t)
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("append a.txt < line %d \u2028 é", i))
	}
	model := h.script(lines...)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		for _, after := range []int{1, 2, 3 + rand.IntN(20), 20 + rand.IntN(20)} {
			cmd := h.command("run", "--events", "-m", model, "Write.")
			pipe, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			in := bufio.NewReader(pipe)
			var text strings.Builder
			for range after {
				line, err := in.ReadString('\n')
				if err != nil {
					t.Fatalf("%v after %q", err, text.String())
				}
				text.WriteString(line)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(rest)
			_ = cmd.Wait()
			timer.Stop()
			if err := checkLines(text.String(), sig != syscall.SIGKILL); err != nil {
				t.Errorf("%v after %d lines: %v", sig, after, err)
			}
			// A run that had come to its end before the signal ends as it would.
			if got := ended(cmd); got != 128+int(sig) && got != 1 {
				t.Errorf("%v after %d lines: status %d", sig, after, got)
			}
		}
	}
}
