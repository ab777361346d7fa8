//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// spoken are the commands that a page names in its text, as they are typed.
var spoken = regexp.MustCompile("`tether ([^`]+)`")

// flagNamed is a flag in a text.
var flagNamed = regexp.MustCompile(`(?:^|[\s(\[=,])--([a-z][a-z-]+)`)

// formLine is a line of a table of commands: the form, and what it is for.
var formLine = regexp.MustCompile(`^tether (\S.*?)  +(\S.*)$`)

// foreign are flags in the text of pages that are those of other programs.
var foreign = []string{"jinja"}

// TestPagesNameWhatIsThere: each command and flag that a page or the README names is
// one that tether has.
func TestPagesNameWhatIsThere(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d pages (%v)", len(files), err)
	}
	named := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range spoken.FindAllStringSubmatch(string(text), -1) {
			named++
			checkForm(t, file, strings.Join(strings.Fields(m[1]), " "), "")
		}
		prose := fences.ReplaceAllString(string(text), "")
		for _, m := range regexp.MustCompile("`(--[^`]+)`").FindAllStringSubmatch(prose, -1) {
			for _, flag := range flagNamed.FindAllStringSubmatch(m[1], -1) {
				if named++; !anyHas(flag[1]) && !slices.Contains(foreign, flag[1]) {
					t.Errorf("%s: no command has the flag --%s", file, flag[1])
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("%d commands and flags are named", named)
	}
}

// testRuns are commands of pages that run tests, by the pattern of their names.
var testRuns = regexp.MustCompile(`go test(?: -[a-z]+)*((?: \./[a-z/]+)+|) -run '?([A-Za-z|]+)'?|go test -run '\^\$' -bench ([A-Za-z]+)[^.]*(\./[a-z/]+)`)

// TestPagesNameTests: each test that a page names is there, and each pattern finds one.
func TestPagesNameTests(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bTest[A-Z][A-Za-z]+`).FindAllString(string(text), -1) {
			if named++; !slices.ContainsFunc(packages, func(dir string) bool { return hasTest(t, dir, name+"[A-Za-z]*") }) {
				t.Errorf("%s: there is no %s", file, name)
			}
		}
		for _, m := range testRuns.FindAllStringSubmatch(string(text), -1) {
			kind, pattern, dir := "Test", m[2], strings.TrimSpace(m[1])
			if m[3] != "" {
				kind, pattern, dir = "Benchmark", m[3], m[4]
			}
			for one := range strings.SplitSeq(strings.TrimPrefix(pattern, "Test"), "|") {
				named++
				if dir = strings.TrimPrefix(dir, "./"); !hasTest(t, dir, kind+"[A-Za-z]*"+strings.TrimPrefix(one, "Test")+"[A-Za-z]*") {
					t.Errorf("%s: %s has no %s%s: %s", file, dir, kind, one, m[0])
				}
			}
		}
	}
	if named < 45 {
		t.Errorf("%d tests are named", named)
	}
}

// packages are the folders of tests.
var packages = []string{"act", "cmd/tether", "context", "harness", "harness/llm", "memory", "sandbox", "skills"}

// checkForm looks up the command of a line, and the flags that the line and what it is
// for name. A line may be about several commands.
func checkForm(t *testing.T, file, line, about string) {
	t.Helper()
	words := strings.Fields(line)
	if strings.HasPrefix(words[0], "-") {
		return // --version
	}
	for len(words) > 1 && strings.HasSuffix(words[0], ",") {
		checkForm(t, file, strings.TrimSuffix(words[0], ","), "")
		words = words[1:]
	}
	if words[0] == "help" {
		if len(words) > 1 && words[1] != "COMMAND" && find(words[1]) == nil && !slices.ContainsFunc(topics(), func(h topic) bool { return h.Name == words[1] }) {
			t.Errorf("%s: there is no help about %q", file, words[1])
		}
		return
	}
	c := find(words[0])
	if c == nil {
		t.Errorf("%s: there is no command %q: %s", file, words[0], line)
		return
	}
	line, _, _ = strings.Cut(line, "'") // what is quoted is the model's
	for _, m := range flagNamed.FindAllStringSubmatch(line+" "+about, -1) {
		if c.flags().Lookup(m[1]) == nil {
			t.Errorf("%s: %s has no flag --%s: %s %s", file, c.Name, m[1], line, about)
		}
	}
}

// anyHas says whether some command has the flag.
func anyHas(flag string) bool {
	return slices.ContainsFunc(subcommands(), func(c *subcommand) bool { return c.flags().Lookup(flag) != nil })
}

// holders are the tests and scripts that the last column of the conventions names: a
// folder in backquotes goes before its tests.
var holders = regexp.MustCompile("`([^`]+)`|(Test[A-Za-z]+)")

// TestConventions: what is named as holding a convention is there, and whatever tether
// has is held by something.
func TestConventions(t *testing.T) {
	text, err := os.ReadFile("../../docs/conventions.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| convention") {
			continue
		}
		rows++
		held := holders.FindAllStringSubmatch(cells[4], -1)
		if has := strings.TrimSpace(cells[2]) != "not yet"; has != (len(held) > 0) {
			t.Errorf("%sheld by %d", line, len(held))
		}
		dir := "cmd/tether"
		for _, m := range held {
			switch {
			case m[2] != "":
				if !hasTest(t, dir, m[2]) {
					t.Errorf("%s has no %s", dir, m[2])
				}
			case strings.HasSuffix(m[1], ".txtar"):
				if _, err := os.Stat("testdata/script/" + m[1]); err != nil {
					t.Error(err)
				}
			default:
				dir = m[1]
			}
		}
		for _, m := range flagNamed.FindAllStringSubmatch(strings.ReplaceAll(cells[3], "`", " "), -1) {
			if !anyHas(m[1]) {
				t.Errorf("no command has the flag --%s: %s", m[1], line)
			}
		}
	}
	if rows != 22 {
		t.Errorf("%d conventions, want 22", rows)
	}
}

// hasTest says whether a test whose name is of that form is in the folder.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob("../../" + dir + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && form.Match(text)
	})
}
