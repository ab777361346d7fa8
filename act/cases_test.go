package act

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A reported case is a line of testdata/cases.jsonl, which was handed over, or of
// more_cases.jsonl: a command or an edit that went wrong somewhere, and what is right.
type reported struct {
	ID    string
	Kind  string
	Input struct {
		Type, Cmd, Stdin, Setup   string
		Cmds                      []string
		TimeoutMS                 int `json:"timeout_ms"`
		Env                       map[string]string
		Path, Before, Mode, Patch string
		Line                      string // edit: what stands behind "edit "; empty: the path
		Op                        struct{ Verb, Old, New string }
	}
	Expect struct {
		Outcome        string
		MaxMS          int      `json:"max_ms"`
		Exit           *int     `json:"exit"`
		ExitNot        *int     `json:"exit_not"`
		BothExit       *int     `json:"both_exit"`
		OutputContains string   `json:"output_contains"`
		NoteContains   string   `json:"note_contains"`
		HintContains   []string `json:"hint_contains"`
		StageExits     []int    `json:"stage_exits"`
		TimedOut       bool     `json:"timed_out"`
		NoProcessLeft  string   `json:"no_process_left"`
		MaxRSSGrowth   int      `json:"max_rss_growth_mb"`
		ValidUTF8      bool     `json:"valid_utf8"`
		File           map[string]string
		After          *string
		Unchanged      bool
		ModeAfter      string `json:"mode_after"`
	}
}

// ourWords are the words in which the product says what a case asks for.
var ourWords = map[string]string{
	"no file changed": "It changed no file.",
	"withheld":        "GH_TOKEN is kept from commands.",
}

func readCases(t *testing.T, name string) []reported {
	f, err := os.Open(name)
	check(t, err)
	defer f.Close()
	var all []reported
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c reported
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, c)
	}
	check(t, lines.Err())
	return all
}

// TestReportedCases runs every handed case and those of our own.
func TestReportedCases(t *testing.T) {
	all := append(readCases(t, "testdata/cases.jsonl"), readCases(t, "testdata/more_cases.jsonl")...)
	for _, c := range all {
		t.Run(c.ID, func(t *testing.T) {
			for name, value := range c.Input.Env {
				t.Setenv(name, value)
			}
			root := t.TempDir()
			s := NewShell(Env{Box: newBox(t, root, time.Duration(max(c.Input.TimeoutMS, 500))*time.Millisecond)}, Builtins())
			if c.Input.Type == "edit" {
				c.edit(t, root, s)
				return
			}
			c.run(t, root, s)
		})
	}
}

// run runs the commands of a case.
func (c reported) run(t *testing.T, root string, s *Shell) {
	if c.Input.Setup != "" {
		if r := s.Do(context.Background(), c.Input.Setup, ""); r.Status != OK {
			t.Fatalf("setup: %s", r.Output)
		}
	}
	before := residentMB(t)
	for _, line := range append(c.Input.Cmds, c.Input.Cmd) {
		if line == "" {
			continue
		}
		began := time.Now()
		r := s.Do(context.Background(), line, c.Input.Stdin)
		check(t, r.Err)
		// max_ms is for a quiet machine: five times as long is still far below a hang.
		if took := time.Since(began); c.Expect.MaxMS > 0 && took > 5*time.Duration(c.Expect.MaxMS)*time.Millisecond {
			t.Errorf("it took %v, want %d ms", took, c.Expect.MaxMS)
		}
		c.judge(t, root, r)
	}
	if grown := residentMB(t) - before; c.Expect.MaxRSSGrowth > 0 && grown > c.Expect.MaxRSSGrowth {
		t.Errorf("the process grew by %d MB", grown)
	}
}

// judge compares a result with what is right.
func (c reported) judge(t *testing.T, root string, r Result) {
	e := c.Expect
	for _, want := range []*int{e.Exit, e.BothExit} {
		if want != nil && r.Status != *want {
			t.Errorf("status %d, want %d:\n%s", r.Status, *want, clip(r.Output, maxEcho))
		}
	}
	// What prints without end may reach the bound of its output before that of its time.
	stopped := r.Status == TimedOut || strings.Contains(r.Output, "output limit")
	if e.ExitNot != nil && r.Status == *e.ExitNot || e.TimedOut && !stopped || !e.TimedOut && r.Status == TimedOut {
		t.Errorf("status %d:\n%s", r.Status, clip(r.Output, maxEcho))
	}
	want := append(slices.Clone(e.HintContains), e.OutputContains, e.NoteContains)
	if e.StageExits != nil {
		want = append(want, strings.Trim(strings.ReplaceAll(fmt.Sprint(e.StageExits), " ", "|"), "[]"))
	}
	for _, w := range want {
		if ours := ourWords[w]; ours != "" {
			w = ours
		}
		if !strings.Contains(r.Output, w) {
			t.Errorf("the result does not say %q:\n%s", w, clip(r.Output, maxEcho))
		}
	}
	if e.ValidUTF8 && !utf8.ValidString(r.Output) {
		t.Error("the output is no UTF-8")
	}
	for name, text := range e.File {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != text {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, text)
		}
	}
	if e.NoProcessLeft != "" && isRunning(t, e.NoProcessLeft) {
		t.Errorf("%s still runs", e.NoProcessLeft)
	}
}

// edit applies the edit of a case: as a block, as a unified diff, as apply_patch
// text, and as two words on the line. All must come to the same.
func (c reported) edit(t *testing.T, root string, s *Shell) {
	name := filepath.Join(root, c.Input.Path)
	mode, _ := strconv.ParseUint("0"+c.Input.Mode, 8, 32)
	if mode == 0 {
		mode = 0o644
	}
	for form, stdin := range c.forms() {
		check(t, os.WriteFile(name, []byte(c.Input.Before), os.FileMode(mode)))
		check(t, os.Chmod(name, os.FileMode(mode)))
		line := "edit " + c.Input.Path
		if c.Input.Line != "" {
			line = "edit " + c.Input.Line
		}
		r := s.Do(context.Background(), line, stdin)
		check(t, r.Err)
		if ok := c.Expect.Outcome == "ok"; ok != (r.Status == OK) {
			t.Errorf("%s: status %d:\n%s", form, r.Status, r.Output)
		}
		c.judge(t, root, r)
		after := c.Expect.After
		if c.Expect.Unchanged {
			after = &c.Input.Before
		}
		if got, err := os.ReadFile(name); err != nil || after != nil && string(got) != *after {
			t.Errorf("%s: the file holds %q, %v", form, got, err)
		}
		info, err := os.Stat(name)
		check(t, err)
		if uint64(info.Mode().Perm()) != mode {
			t.Errorf("%s: mode %v, want %o", form, info.Mode(), mode)
		}
	}
}

// forms are the ways to write the edit of a case.
func (c reported) forms() map[string]string {
	if c.Input.Patch != "" {
		return map[string]string{"as it stands": c.Input.Patch}
	}
	marked := func(mark, text string) string {
		return mark + strings.ReplaceAll(text, "\n", "\n"+mark) + "\n"
	}
	op := c.Input.Op
	hunk := marked("-", op.Old) + marked("+", op.New)
	return map[string]string{
		"block":        "<<<<<<< SEARCH\n" + op.Old + "\n=======\n" + op.New + "\n>>>>>>> REPLACE\n",
		"diff":         "--- a/" + c.Input.Path + "\n+++ b/" + c.Input.Path + "\n@@ -99,3 +99,3 @@\n" + hunk,
		"bare hunk":    "@@ @@\n" + hunk,
		"apply_patch":  "*** Begin Patch\n*** Update File: " + c.Input.Path + "\n@@\n" + hunk + "*** End Patch\n",
		"fenced diff":  "```diff\n" + hunk + "```\n",
		"CRLF in call": strings.ReplaceAll("<<<<<<< SEARCH\n"+op.Old+"\n=======\n"+op.New+"\n>>>>>>> REPLACE\n", "\n", "\r\n"),
	}
}

// residentMB is the resident memory of this process.
func residentMB(t *testing.T) int {
	runtime.GC()
	data, err := os.ReadFile("/proc/self/statm")
	check(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	check(t, err)
	return pages * os.Getpagesize() >> 20
}

// isRunning reports whether a process with these arguments runs below this one.
func isRunning(t *testing.T, args string) bool {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	check(t, err)
	want := strings.ReplaceAll(args, " ", "\x00") + "\x00"
	return slices.ContainsFunc(names, func(name string) bool {
		data, err := os.ReadFile(name)
		return err == nil && string(data) == want
	})
}
