package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFirstScreen: it fits a terminal of 24 lines and 80 columns, and has every
// command.
func TestFirstScreen(t *testing.T) {
	var b bytes.Buffer
	(&program{}).help(&b)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines, want at most 24", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns, want at most 80: %s", n, line)
		}
	}
	for _, name := range names() {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(b.String()) {
			t.Errorf("%s is not on the first screen", name)
		}
	}
	for _, name := range firstDay {
		if find(name) == nil {
			t.Errorf("%s is no command", name)
		}
	}
}

// readVariables are the variables that the sources read, and testVariables those
// that only tests and the sandbox's own processes read.
var (
	readVariables = regexp.MustCompile(`(?:[gG]etenv|env|LookupEnv|xdg\([a-zA-Z.]+,|os\.Getenv)\(?\s*"([A-Z][A-Z0-9_]+)"`)
	notTold       = map[string]bool{"PATH": true}
)

// TestEnvironmentHelp: every variable that is read is told.
func TestEnvironmentHelp(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*.go", "../../harness/*.go", "../../harness/*/*.go", "../../memory/*.go", "../../act/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range readVariables.FindAllStringSubmatch(string(text), -1) {
				found++
				if !strings.Contains(environmentHelp, m[1]) && !notTold[m[1]] {
					t.Errorf("%s reads %s, which tether help environment does not tell", file, m[1])
				}
			}
		}
	}
	if found < 12 {
		t.Errorf("%d variables found, want 12 or more", found)
	}
}

// TestManual: the page has every command and flag, and man finds no fault in it.
func TestManual(t *testing.T) {
	page := manual()
	for _, c := range subcommands() {
		if strings.Contains(page, ".SS tether "+roff(c.Name)) == c.Hidden {
			t.Errorf("%s: on the page is %v", c.Name, !c.Hidden)
		}
	}
	cmd := exec.Command("man", "-l", "--warnings", "-E", "ascii", "-")
	cmd.Stdin = strings.NewReader(page)
	cmd.Env = append(os.Environ(), "MANWIDTH=100", "MANPAGER=cat", "LC_ALL=C")
	var warned bytes.Buffer
	cmd.Stderr = &warned
	out, err := cmd.Output()
	if err != nil || warned.Len() > 0 {
		t.Fatalf("%v\n%s", err, warned.String())
	}
	for _, want := range []string{"--max-steps", "EXIT STATUS", "78  the sandbox cannot be had", "TETHER_STATE"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page does not show %q", want)
		}
	}
}

// TestLineWords: a command line is split as its shell would, as far as it is typed.
func TestLineWords(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"tether", nil}, {"tether ", []string{""}}, {"tether ru", []string{"ru"}}, {"tether  run   x ", []string{"run", "x", ""}},
		{`tether run "make it`, []string{"run", "make it"}}, {`tether run 'a "b' --x=`, []string{"run", `a "b`, "--x="}},
	} {
		if got := lineWords(c.line); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
}

// TestCompletionShapes: each script asks tether, and hands a file back to its
// shell. That bash understands its one is in the script completion.
func TestCompletionShapes(t *testing.T) {
	for _, s := range shells {
		for _, want := range []string{"tether", "__complete", ":files", ":folders"} {
			if !strings.Contains(s.script, want) {
				t.Errorf("%s has no %q", s.name, want)
			}
		}
		for _, pair := range []string{"{}", "()"} {
			if a, b := strings.Count(s.script, pair[:1]), strings.Count(s.script, pair[1:]); a != b && s.name == "powershell" {
				t.Errorf("%s has %d %q and %d %q", s.name, a, pair[:1], b, pair[1:])
			}
		}
	}
}

// TestCompletionOfShells hands the scripts to those of their shells that are here.
// bash always is: the sandbox needs it.
func TestCompletionOfShells(t *testing.T) {
	checked := 0
	for _, s := range []struct{ name, flag string }{{"bash", "-n"}, {"zsh", "-n"}, {"fish", "--no-execute"}} {
		if _, err := exec.LookPath(s.name); err != nil {
			continue
		}
		checked++
		file := filepath.Join(t.TempDir(), "script")
		for _, c := range shells {
			if c.name == s.name {
				if err := os.WriteFile(file, []byte(c.script), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if out, err := exec.Command(s.name, s.flag, file).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", s.name, err, out)
		}
	}
	if checked == 0 {
		t.Error("not even bash is here")
	}
	t.Logf("%d shells", checked)
}
