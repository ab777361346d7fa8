package act

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestWatchedRunsAsBefore: what bash prints and returns for a line is the same
// with and without what tells the statuses of its parts.
func TestWatchedRunsAsBefore(t *testing.T) {
	for line, want := range map[string]string{
		"false | true":                              "1|0",
		"echo a | cat | false":                      "",
		"(exit 3) | true":                           "",
		"sh -c 'exit 3' | cat":                      "3|0",
		"printf x | cat":                            "",
		"true; false; true":                         "status 1",
		"false || echo b":                           "status 1",
		"false || false":                            "",
		"sh -c 'exit 7'\necho end":                  "status 7",
		"echo a; echo 'b; c' | wc -c":               "",
		"x=1; echo $x; nosuch; echo $?":             "status 127",
		"cd / || exit; pwd":                         "",
		"exit 3 | true":                             "",
		"echo a # b | c":                            "",
		"if true; then false; fi; echo":             "",
		"true || echo no":                           "",
		"a | | b":                                   "",
		"echo a;":                                   "",
		"false ; ls /nonexistent 2>/dev/null; echo": "status 1",
		"yes | head -1":                             "",
	} {
		w := watched(line)
		plain, told := run(line), run(w.line)
		out, statuses := w.statuses(told.out)
		if out != plain.out || told.code != plain.code {
			t.Errorf("%q: %q %d, want %q %d", line, out, told.code, plain.out, plain.code)
		}
		got := ""
		if plain.code == 0 {
			got = w.masked(statuses)
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

type ran struct {
	out  string
	code int
}

func run(line string) ran {
	out, err := exec.Command("bash", "--norc", "-c", line, "bash").CombinedOutput()
	code := 0
	if err != nil {
		code = err.(*exec.ExitError).ExitCode()
	}
	return ran{string(out), code}
}

// TestWatchedInAnotherShell: one that is no bash runs the line and says nothing.
func TestWatchedInAnotherShell(t *testing.T) {
	for _, line := range []string{"echo a | cat", "false; echo b", "echo c | false"} {
		w := watched(line)
		want, wantErr := exec.Command("sh", "-c", line).CombinedOutput()
		got, err := exec.Command("env", "-u", "BASH_VERSION", "sh", "-c", w.line).CombinedOutput()
		if out, _ := w.statuses(string(got)); out != string(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%q: %q %v, want %q %v", line, got, err, want, wantErr)
		}
	}
}

// TestWithheld: a login that is missing is the doing of the sandbox only if the
// user has it.
func TestWithheld(t *testing.T) {
	t.Setenv("GH_TOKEN", "secret")
	t.Setenv("GITHUB_TOKEN", "")
	t.Setenv("OTHER_KEY", "")
	for line, want := range map[string]string{
		"gh pr list":             "GH_TOKEN is kept from commands.",
		`curl -H "$GH_TOKEN" x`:  "GH_TOKEN is kept from commands.",
		`curl -H "${GH_TOKEN}"x`: "GH_TOKEN is kept from commands.",
		"echo $OTHER_KEY":        "",
		"echo GH_TOKEN":          "",
		"ls":                     "",
	} {
		if got := withheld(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	s := NewShell(Env{Box: newBox(t, t.TempDir(), 0)}, Builtins())
	if r := s.Do(context.Background(), `echo "$GH_TOKEN"; false`, ""); strings.Contains(r.Output, "secret") {
		t.Errorf("the value is shown: %s", r.Output)
	}
}
