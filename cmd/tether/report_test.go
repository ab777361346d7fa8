package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/harness"
)

// reports are tasks that ended in every way that a report tells apart.
func reports() []reported {
	out := func(stop harness.Stop) harness.Outcome {
		return harness.Outcome{Stop: stop, Exit: stop.Exit(), Session: "s", Model: "m", Steps: 2, Seconds: 1.5, Report: "Said."}
	}
	failed := out(harness.GateFailed)
	failed.Gates = []harness.GateResult{{Cmd: "make test", Status: 2, Tries: 3}, {Cmd: "make lint"}}
	dead := out(harness.Unreachable)
	dead.Error = "no model server at http://127.0.0.1:1\nstart one"
	odd := out(harness.Stalled)
	odd.Report = "</system-out>]]>&\x00\x1b[31mred\x1b[0m\ufffe\u2028 `code` ``` |"
	return []reported{
		{Name: "good", Outcome: out(harness.Done)},
		{Name: "gate", Outcome: failed, Folder: "sub", Gates: true, Failed: []failedGate{{Cmd: "make test", Status: 2, Output: "a.go:3:7: wrong, 100%\nb\n", At: []codePlace{{"a.go", 3, 7, "wrong, 100%"}, {"b,c.go", 4, 0, "x\ny"}}}}},
		{Name: "dead", Outcome: dead},
		{Name: "odd \"<&>' | `x` \x01\xff", Outcome: odd},
		{Name: "wait", Outcome: out(harness.Waiting)},
	}
}

// A junitFile is what programs read of JUnit's XML.
type junitFile struct {
	Suites []struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Cases    []struct {
			Class   string     `xml:"classname,attr"`
			Name    string     `xml:"name,attr"`
			Failure *junitText `xml:"failure"`
			Error   *junitText `xml:"error"`
			Skipped *junitText `xml:"skipped"`
			Out     string     `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type junitText struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// readJUnit reads a report strictly: what is no XML fails.
func readJUnit(t *testing.T, text []byte) junitFile {
	t.Helper()
	var f junitFile
	d := xml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&f); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for {
		if token, err := d.Token(); errors.Is(err, io.EOF) {
			return f
		} else if _, space := token.(xml.CharData); err != nil || !space {
			t.Fatalf("after the end: %v, %v", token, err)
		}
	}
}

// TestJUnit: one testcase a task and one a gate; a failure where the model had its try,
// an error where it had none; and valid XML whatever was said.
func TestJUnit(t *testing.T) {
	suite := readJUnit(t, junitReport(reports())).Suites[0]
	if suite.Tests != 7 || suite.Failures != 4 || suite.Errors != 1 || suite.Skipped != 1 || len(suite.Cases) != 7 {
		t.Errorf("%+v", suite)
	}
	if c := suite.Cases[0]; c.Name != "good" || c.Failure != nil || c.Error != nil || c.Out != "Said.\n\nsession s, model m, 2 steps" {
		t.Errorf("done: %+v", c)
	}
	if c := suite.Cases[1]; c.Failure == nil || c.Failure.Type != "gate_failed" || c.Failure.Message != "a gate failed, and the tries are spent: make test (status 2)" || !strings.Contains(c.Failure.Text, "$ make test\na.go:3:7: wrong, 100%\nb\nstatus 2\n") {
		t.Errorf("a failed gate: %+v", c.Failure)
	}
	if c := suite.Cases[2]; c.Class != "tether.gates" || c.Name != "make test" || c.Failure == nil || c.Failure.Text != "a.go:3:7: wrong, 100%\nb\n" {
		t.Errorf("the gate itself: %+v", c)
	}
	if c := suite.Cases[3]; c.Name != "make lint" || c.Skipped == nil {
		t.Errorf("a gate that was not run: %+v", c)
	}
	if c := suite.Cases[4]; c.Error == nil || c.Error.Type != "unreachable" || !strings.Contains(c.Error.Message, "127.0.0.1:1; start one") {
		t.Errorf("no server: %+v", c.Error)
	}
	if c := suite.Cases[5]; c.Name != "odd \"<&>' | `x` \ufffd\ufffd" || !strings.HasPrefix(c.Out, "</system-out>]]>&\ufffdred\ufffd\u2028 `code`") {
		t.Errorf("odd characters: %q, %q", c.Name, c.Out)
	}
}

// FuzzJUnit: no text makes the report something else than XML with the same cases.
func FuzzJUnit(f *testing.F) {
	f.Add("a", "b")
	f.Add("\x00\x1b[0m]]>", "<!-- -- \xff\xfe")
	f.Fuzz(func(t *testing.T, name, said string) {
		out := harness.Outcome{Stop: harness.GateFailed, Report: said, Model: said, Gates: []harness.GateResult{{Cmd: name, Status: 1, Tries: 1}}}
		text := junitReport([]reported{{Name: name, Outcome: out, Gates: true, Failed: []failedGate{{Cmd: name, Output: said}}}})
		if cases := readJUnit(t, text).Suites[0].Cases; len(cases) != 2 || !utf8.Valid(text) {
			t.Errorf("%d cases", len(cases))
		}
	})
}

// TestGitHub: annotations by the rules for workflow commands.
func TestGitHub(t *testing.T) {
	want := []string{
		"::error file=sub/a.go,line=3,col=7,title=gate%3A make test::wrong, 100%25",
		"::error file=sub/b%2Cc.go,line=4,title=gate%3A make test::x%0Ay",
		"::error title=dead::the model server is not to be reached: no model server at http://127.0.0.1:1; start one",
		"::error title=odd \"<&>' | `x` \ufffd::stalled: the model repeated itself",
		"::error title=wait::waiting for an answer",
	}
	if got := githubReport(reports()); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	var many []reported
	for range 30 {
		many = append(many, reports()[4])
	}
	if got := githubReport(many); strings.Count(got, "\n") != maxAnnotations || !strings.HasSuffix(got, "::error::21 more errors are in the log and in the job's summary\n") {
		t.Errorf("many: %s", got)
	}
	elsewhere := reports()[1]
	elsewhere.Folder = ""
	if got := githubReport([]reported{elsewhere}); got != "::error title=gate::a gate failed, and the tries are spent: make test (status 2)%0A$ make test%0Aa.go:3:7: wrong, 100%25%0Ab\n" {
		t.Errorf("a folder that is not in the checkout: %s", got)
	}
	planted := reported{Name: "p", Outcome: harness.Outcome{Stop: harness.Done, Planted: []string{"Makefile"}}}
	if got := githubReport([]reported{planted}); got != "::warning title=p::look at what is new: Makefile\n" {
		t.Errorf("planted: %s", got)
	}
}

// FuzzGitHub: whatever is said, each line is one command of ours, and the properties
// are those that were given.
func FuzzGitHub(f *testing.F) {
	f.Add("a.go", "x\n::set-env name=PATH::evil\r::y")
	f.Fuzz(func(t *testing.T, name, said string) {
		task := reported{Name: said, Folder: ".", Outcome: harness.Outcome{Stop: harness.GateFailed, Error: said}, Failed: []failedGate{{Cmd: said, Output: said, At: []codePlace{{name, 1, 2, said}}}}}
		for _, line := range strings.SplitAfter(githubReport([]reported{task, {Name: name, Outcome: task.Outcome}}), "\n") {
			m := regexp.MustCompile(`^::error (?:file=[^:,\r]*,line=1,col=2,)?title=[^:,\r]*::[^\r]*\n$`).MatchString(line)
			if line != "" && !m {
				t.Errorf("%q", line)
			}
		}
	})
}

// TestMarkdown: a table of all tasks, and what their gates printed. What was said
// stands in code and ends no cell.
func TestMarkdown(t *testing.T) {
	got := string(markdownReport(reports()))
	for _, want := range []string{
		"## tether: 1 of 5 done\n",
		"| `good` | done | 2 | 1.5 | 0 | 0 |  |\n",
		"| `gate` | gate_failed | 2 | 1.5 | 0 | 0 | `a gate failed, and the tries are spent: make test (status 2)` |\n",
		"| ``odd \"<&>' \\| `x` \ufffd`` | stalled |",
		"\n- gate `failed with status 2`: `make test`\n- gate `not run`: `make lint`\n",
		"`make test` ended with status 2:\n\n```\na.go:3:7: wrong, 100%\nb\n```\n",
		"\n````\n</system-out>]]>&red\ufffe `code` ``` |\n````\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	var many []reported
	for range 5000 {
		many = append(many, reports()[1])
	}
	big := string(markdownReport(many))
	if !strings.Contains(big, "\n4000 more tasks are in the results.\n") || len(big) > 1<<20 || strings.Count(big, "\n### ") != maxDetails {
		t.Errorf("5000 tasks are %d bytes", len(big))
	}
	if !strings.HasSuffix(big, "\n4980 more that are not done are in the results.\n") {
		t.Errorf("the page ends with %q", big[len(big)-200:])
	}
}

// TestMarkdownBound: a page of which GitHub would take nothing is not made, however much
// models, checks and servers say, in letters of four bytes.
func TestMarkdownBound(t *testing.T) {
	loud := reports()[1]
	loud.Name, loud.Outcome.Report, loud.Outcome.Error = strings.Repeat("𝕏", 80), strings.Repeat("𝕏", 50_000), strings.Repeat("𝕏", 50_000)
	loud.Failed = []failedGate{{Cmd: "make test", Status: 2, Output: strings.Repeat("𝕏", gateLimit)}, {Cmd: "make lint", Status: 2, Output: strings.Repeat("𝕏", gateLimit)}}
	page := string(markdownReport(slices.Repeat([]reported{loud}, 5000)))
	if len(page) > 1<<20 || len(page) < maxSummary/2 {
		t.Errorf("the page is %d bytes", len(page))
	}
	if !utf8.ValidString(page) || strings.Count(page, "```")%2 != 0 || !strings.HasSuffix(page, " more that are not done are in the results.\n") {
		t.Errorf("the page is cut: it ends with %q", page[len(page)-200:])
	}
}

// TestPlaces: where compilers, linters and test programs say that something is wrong.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"main.go", "pkg/a_test.go", "src/app.ts", "src/main.rs", "tests/test_a.py", "x/same.c", "y/same.c", ".git/config", "C.cs"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		said string
		want []codePlace
	}{
		{"./main.go:3:7: undefined: x", []codePlace{{"main.go", 3, 7, "undefined: x"}}},
		{"vet: main.go:3: bad", []codePlace{{"main.go", 3, 0, "bad"}}},
		{"--- FAIL: TestA (0.00s)\n    a_test.go:12: got 1, want 2\nFAIL", []codePlace{{"pkg/a_test.go", 12, 0, "got 1, want 2"}}},
		{dir + "/main.go:3:7: x\n" + dir + "/main.go:3:9: y", []codePlace{{"main.go", 3, 7, "x"}}},
		{"src/app.ts(3,5): error TS2304: Cannot find name 'x'.", []codePlace{{"src/app.ts", 3, 5, "error TS2304: Cannot find name 'x'."}}},
		{"error[E0425]: cannot find value `x`\n --> src/main.rs:3:5\n  |", []codePlace{{"src/main.rs", 3, 5, "error[E0425]: cannot find value `x`"}}},
		{"Traceback:\n  File \"tests/test_a.py\", line 4, in f\n    g()\nNameError: name 'g'", []codePlace{{"tests/test_a.py", 4, 0, "NameError: name 'g'"}}},
		{"tests/test_a.py:4: AssertionError", []codePlace{{"tests/test_a.py", 4, 0, "AssertionError"}}},
		{"    at f (src/app.ts:8:3)\nError", []codePlace{{"src/app.ts", 8, 3, "Error"}}},
		{"\x1b[31msrc/app.ts:8:3\x1b[0m - \x1b[31merror\x1b[0m", []codePlace{{"src/app.ts", 8, 3, "- error"}}},
		{"C.cs(4): warning CS1", []codePlace{{"C.cs", 4, 0, "warning CS1"}}},
		{"same.c:1:1: which", nil},
		{"../main.go:1: out\n/etc/passwd:1: out\nlink.go:1: out\nconfig:1: hidden\nnothing.go:1:1: x", nil},
		{"12:30:45 http://main.go:80 main.go:0: zero main.go:99999999999999999999: large", nil},
		{strings.Repeat("x", 3000) + " main.go:1: x", nil},
	} {
		if got := placesIn(c.said, dir); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v, want %+v", c.said, got, c.want)
		}
	}
	var many strings.Builder
	for i := range 30 {
		many.WriteString("main.go:" + strings.Repeat("1", 1+i%9) + strings.Repeat("2", i/9) + ": x\n")
	}
	if got := placesIn(many.String(), dir); len(got) != maxPlaces {
		t.Errorf("%d places of 30", len(got))
	}
}

// TestPatch: what a patch tells of, and what it leaves to the workspace.
func TestPatch(t *testing.T) {
	old, now := t.TempDir(), t.TempDir()
	write := func(dir, name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(old, "edited", "a\nb\nc\n", 0o644)
	write(now, "edited", "a\nB\nc", 0o644)
	write(old, "gone", "x\n", 0o644)
	write(now, "new file", "x\n", 0o755)
	write(now, "empty", "", 0o644)
	write(old, "mode", "x\n", 0o644)
	write(now, "mode", "x\n", 0o755)
	write(old, "touched", "x\n", 0o644)
	write(now, "touched", "x\n", 0o644)
	write(now, "binary", "a\x00b", 0o644)
	write(now, "large", strings.Repeat("x", maxPatchFile+1), 0o644)
	write(now, "öl", "x", 0o644)
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(now, "link")), os.Mkdir(filepath.Join(now, "folder"), 0o755)); err != nil {
		t.Fatal(err)
	}
	patch, missed := patchOf(old, now, []string{"edited", "gone", "new file", "empty", "mode", "touched", "binary", "large", "öl", "link", "folder/", "came and went"})
	want := "diff --git a/edited b/edited\n--- a/edited\n+++ b/edited\n@@ -1,3 +1,3 @@\n a\n-b\n-c\n+B\n+c\n\\ No newline at end of file\n" +
		"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n" +
		"diff --git a/new file b/new file\nnew file mode 100755\n--- /dev/null\n+++ b/new file\t\n@@ -0,0 +1,1 @@\n+x\n" +
		"diff --git a/empty b/empty\nnew file mode 100644\n" +
		"diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n"
	if string(patch) != want {
		t.Errorf("got\n%s\nwant\n%s", patch, want)
	}
	if want := []string{"binary", "large", "öl", "link"}; !reflect.DeepEqual(missed, want) {
		t.Errorf("missed %q, want %q", missed, want)
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir, cmd.Stdin = old, bytes.NewReader(patch)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(old))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	for _, name := range []string{"edited", "new file", "empty", "mode"} {
		got, want := readVersion(openRoot(t, old), name), readVersion(openRoot(t, now), name)
		if !reflect.DeepEqual(got, want) || got.text == nil {
			t.Errorf("git apply makes %s %+v, want %+v", name, got, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(old, "gone")); !os.IsNotExist(err) {
		t.Errorf("gone is there: %v", err)
	}
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}
