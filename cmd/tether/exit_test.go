package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tether/harness"
)

// stops are the values of harness.Stop, from its source: one that is added there
// is in the test.
func stops(t *testing.T) []harness.Stop {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../harness/outcome.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []harness.Stop
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Stop" {
			return true
		}
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, harness.Stop(word))
		return true
	})
	return all
}

// TestExitCodes: the exit status of every reason is a line of tether help
// exit-codes that says the same, and every line is the status of a reason, but
// for usage, with which no run begins.
func TestExitCodes(t *testing.T) {
	says := map[harness.Stop]string{
		harness.Done: "every gate passed", harness.GateFailed: "a gate failed", harness.GateError: "could not run",
		harness.Steps: "steps", harness.Time: "time", harness.Tokens: "tokens", harness.Stalled: "stalled",
		harness.Waiting: "waiting", harness.Unreachable: "unreachable", harness.NoModel: "model missing",
		harness.Config: "configuration", harness.Sandbox: "sandbox", harness.Interrupted: "interrupted",
		harness.Terminated: "terminated", harness.Hangup: "closed", harness.Failed: "error inside tether",
	}
	lines := map[int]string{}
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+)  (.+)$`).FindAllStringSubmatch(exitCodes, -1) {
		code, _ := strconv.Atoi(m[1]) // digits
		lines[code] = m[2]
	}
	if n := strings.Count(exitCodes, "\n"); len(lines) != n {
		t.Errorf("%d statuses on %d lines", len(lines), n)
	}
	used := map[int]bool{2: true}
	all := stops(t)
	if len(all) != len(says) {
		t.Errorf("there are %d reasons and this test knows %d", len(all), len(says))
	}
	for _, stop := range all {
		used[stop.Exit()] = true
		if says[stop] == "" || !strings.Contains(lines[stop.Exit()], says[stop]) {
			t.Errorf("%s ends with %d, and that line is %q, want %q in it", stop, stop.Exit(), lines[stop.Exit()], says[stop])
		}
		if code := stop.Exit(); code == 1 && stop != harness.Failed || code == 2 {
			t.Errorf("%s has no status of its own", stop)
		}
	}
	for code, text := range lines {
		if !used[code] {
			t.Errorf("no reason ends with %d (%s)", code, text)
		}
	}
}

// TestEveryExit: the script exits.txtar has a run that ends for each reason, and one
// with each status of tether help exit-codes.
func TestEveryExit(t *testing.T) {
	text, err := os.ReadFile("testdata/script/exits.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, stop := range stops(t) {
		want := fmt.Sprintf("field stdout stop %s\nfield stdout exit %d\n", stop, stop.Exit())
		if !strings.Contains(string(text), want) {
			t.Errorf("no run that ends with\n%s", want)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+)  `).FindAllStringSubmatch(exitCodes, -1) {
		if !regexp.MustCompile(`(?m)^(status|during begun [A-Z]+) ` + m[1] + ` tether run`).Match(text) {
			t.Errorf("no run with the status %s", m[1])
		}
	}
}
