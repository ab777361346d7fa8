//go:build linux

package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// escapeCase is one attack and the promise that it tests, a line of testdata/escape/*.jsonl. cases.jsonl was handed over
// and is never edited; checks.jsonl replaces what in it cannot fail; own.jsonl holds what it lacks.
type escapeCase struct {
	ID      string  `json:"id"`
	Kind    string  `json:"kind"`
	Profile Profile `json:"profile"`
	Setup   string  `json:"setup"`   // host shell, before
	Command string  `json:"command"` // the attack
	Must    string  `json:"must"`    // what has to hold, in words
	Check   string  `json:"check"`   // the same as host shell: status 0 is "holds"
	Timeout float64 `json:"timeout_s"`
	Control string  `json:"naive_control"` // what the control did; "violated…" is tested

	// In the files of our own.
	Drive   string   `json:"drive"`   // who attacks: "" a command in a box, "host" a line of host shell that calls $TETHER, else a function of drives
	Weak    string   `json:"weak"`    // the control: "" the naive vector, "bare" no sandbox at all, "host" a line of host shell
	Instead string   `json:"instead"` // the line of the control, where it is not the command
	Swap    []string `json:"swap"`    // a name in the workspace and the link that another command swaps it for
	Hide    string   `json:"hide"`    // a program of the machine that is not there
	Alone   bool     `json:"alone"`   // takes the whole machine, so nothing runs beside it
}

// violated reports whether the control has to fail the check.
func (c escapeCase) violated() bool { return strings.HasPrefix(c.Control, "violated") }

// readEscapes reads the lines of a file.
func readEscapes(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/escape", name))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(bytes.Lines(data))
}

// escapes returns all cases. A line of checks.jsonl replaces parts of the handed case that it names.
func escapes(t testing.TB) []escapeCase {
	t.Helper()
	var cases []escapeCase
	for _, line := range append(readEscapes(t, "cases.jsonl"), readEscapes(t, "own.jsonl")...) {
		var c escapeCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		cases = append(cases, c)
	}
	for _, line := range readEscapes(t, "checks.jsonl") {
		var r escapeCase
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		i := slices.IndexFunc(cases, func(c escapeCase) bool { return c.ID == r.ID })
		if i < 0 || json.Unmarshal(line, &cases[i]) != nil {
			t.Fatalf("checks.jsonl: there is no case %s", r.ID)
		}
	}
	return cases
}

// A check that cannot fail proves nothing: none is empty, and each of our own was seen to fail.
func TestEscapeChecks(t *testing.T) {
	const handed = 58
	seen := map[string]bool{}
	for i, c := range escapes(t) {
		if c.Check == "" || c.Check == "true" || c.Must == "" || seen[c.ID] {
			t.Errorf("%q: no check, no promise, or named twice: %+v", c.ID, c)
		}
		seen[c.ID] = true
		if i >= handed && !c.violated() {
			t.Errorf("%s: nothing has been seen to fail its check", c.ID)
		}
	}
	if own := len(seen) - handed; own < 20 {
		t.Errorf("%d cases of our own, want at least 20", own)
	}
}

// verdict is what a trial found.
type verdict struct {
	Held   bool
	Detail string // what the attack printed, and the check
	RC     int
	MS     int64
}

// TestEscape runs every attack as an unprivileged user in namespaces of its own (processes, network, mounts): once in
// the sandbox, where its check must hold, and once under the control, where it must fail if it is said to.
func TestEscape(t *testing.T) {
	lab := newLab(t)
	lab.build(t)
	var mu sync.Mutex
	rows := map[string]string{}
	cases := escapes(t)
	attempt := func(t *testing.T, c escapeCase, weak bool) {
		v := lab.try(t, c, weak)
		row := fmt.Sprintf("%-28s %-13s holds     %5d ms", c.ID, c.Kind, v.MS)
		switch {
		case weak && c.violated() && v.Held:
			row = "HOLDS, SO IT PROVES NOTHING"
			t.Errorf("the control passes the check, which therefore proves nothing\nmust: %s\n%s", c.Must, v.Detail)
		case weak:
			row = map[bool]string{true: "holds too", false: "violated"}[v.Held]
		case !v.Held:
			t.Errorf("must: %s\n%s", c.Must, v.Detail)
			row = strings.Replace(row, "holds   ", "VIOLATED", 1)
		}
		mu.Lock()
		defer mu.Unlock()
		rows[c.ID+fmt.Sprint(weak)] = row
	}
	t.Run("case", func(t *testing.T) {
		for _, c := range cases {
			for _, weak := range []bool{false, true} {
				if weak && c.Control == "not run" {
					continue
				}
				t.Run(c.ID+map[bool]string{true: "/control"}[weak], func(t *testing.T) {
					if !c.Alone {
						t.Parallel()
					}
					attempt(t, c, weak)
				})
			}
		}
	})
	report(t, cases, rows)
}

// report prints one line a case and a total.
func report(t *testing.T, cases []escapeCase, rows map[string]string) {
	var table strings.Builder
	held, bites := 0, 0
	for _, c := range cases {
		row, ok := rows[c.ID+"false"]
		if !ok { // not chosen by -run
			continue
		}
		control := rows[c.ID+"true"]
		if control == "violated" {
			bites++
		}
		if !strings.Contains(row, "VIOLATED") {
			held++
		}
		fmt.Fprintf(&table, "%s   control: %s\n", row, cmp.Or(control, "not run"))
	}
	t.Logf("escape cases\n%s%d of %d held; the control violates %d", table.String(), held, len(cases), bites)
}

// lab is where trials run: a folder that an unprivileged user may enter, with the test binary and tether in it.
type lab struct {
	dir, self, tether string
	uid               int
}

// labUser is nobody's number: it owns no file of the machine. As an ordinary user, the tests use his own.
const labUser = 64_123

func newLab(t *testing.T) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "escape")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeLab(t, dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	l := &lab{dir: dir, self: filepath.Join(dir, "sandbox.test"), tether: filepath.Join(dir, "tether"), uid: os.Getuid()}
	if l.uid == 0 {
		l.uid = labUser
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, self, l.self)
	for _, path := range []string{dir, l.self} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// build makes the product itself, as make does, so that what was compiled for it is used again.
func (l *lab) build(t *testing.T) {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -funcalign=16", "-tags", "nethttpomithttp2", "-o", l.tether, "tether/cmd/tether")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}

// removeLab removes what trials left. Some of it may have been made unreadable.
func removeLab(t *testing.T, dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // what cannot be removed is told below
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// trial is what the process of a trial is told, on its standard input.
type trial struct {
	Case   escapeCase
	Weak   bool
	Dir    string // of this trial alone
	Lab    string
	Tether string
	UID    int
}

// try runs one attack in a process of its own and returns its verdict.
func (l *lab) try(t *testing.T, c escapeCase, weak bool) verdict {
	t.Helper()
	dir, err := os.MkdirTemp(l.dir, "t")
	if err != nil {
		t.Fatal(err)
	}
	defer removeLab(t, dir)
	if err := os.Chown(dir, l.uid, l.uid); os.Getuid() == 0 && err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(trial{Case: c, Weak: weak, Dir: dir, Lab: l.dir, Tether: l.tether, UID: l.uid})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(l.self, stageApart)
	cmd.Dir, cmd.Stdin, cmd.SysProcAttr = "/", strings.NewReader(string(data)), apart(l.uid)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "GORACE=atexit_sleep_ms=0"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	v := verdict{Detail: "the process of the trial died"}
	if i := strings.LastIndex(string(out), verdictMark); i >= 0 {
		if err := json.Unmarshal(out[i+len(verdictMark):], &v); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return v
	}
	if !weak {
		t.Fatalf("no verdict: %v\n%s\n%s", err, out, stderr.String())
	}
	return v
}

// verdictMark stands before the verdict, so that nothing an attack prints is taken for it.
const verdictMark = "\x00verdict\x00"
