//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// fences are the blocks of a page in Markdown: the language and the text.
var fences = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// docsStatus is the exit status of each command of the pages that has
// another one than 0 where the test runs it: without a terminal, and without a
// file to trust.
var docsStatus = map[string]int{
	"tether config trust": 9,

	"tether bench speed --model gguf:qwen2.5-coder-1.5b.gguf --sizes 256,1024": 8, // it is not there

	`tether run --model anthropic/claude-sonnet-4-5 "Make the tests pass"`: 9, // no key is set

	"tether act 'help web'": 127,
	"tether act --allow-net docs.python.org 'web fetch http://localhost/'": 126,
	`tether run --tools sh,read,write,edit,ask,done "Rename the function"`: 6,
}

// A docPage is a page whose commands are run.
type docPage struct {
	least  int    // commands that it has
	files  string // that they are about
	model  string // replies; empty: done
	obeyed bool   // its settings are the user's
}

var pages = map[string]docPage{
	"sandbox.md": {9, "-- ws/verify.sh --\ntest -f tests/a\n-- ws/tests/a --\n-- ws/backup.sh --\ntouch backup.tar\n", "", false},
	"models.md":  {5, "", "", true},
	"gates.md": {4, "-- ws/report.json --\n{\"type\":\"object\",\"required\":[\"files\"]}\n",
		`{"cmd":"sh echo a > out.txt"}` + "\n" + `{"cmd":"done {\"files\": 1}"}`, false},
	"memory.md": {8, "-- ws/add.py --\nprint(1 + 1)\n", "", false},
	"commands.md": {10, "-- ws/a.txt --\none two\n-- ws/tools/lint.sh --\ntest -s \"$1\"\n-- ws/report.json --\n{\"type\":\"object\",\"required\":[\"lines\"]}\n",
		`{"cmd":"ask Which?"}` + "\n" + strings.Repeat(`{"cmd":"done {\"lines\": 1}"}`+"\n", 2), true},

	"configuration.md": {6, "", "", false},
	"bench.md": {6, `-- ws/tasks.jsonl --
{"id":"greeting","prompt":"Write hello into greeting.txt.","setup":"true","verify":"grep -q hello greeting.txt"}
`, strings.Repeat(`{"cmd":"done"}`+"\n", 40), false},
	"start.md":     {13, "-- ws/go.mod --\n-- ws/log.txt --\nerror\n-- ws/task.txt --\nLook.\n", "", false},
	"sessions.md":  {0, "", "", false},
	"../README.md": {5, "-- ws/go.mod --\nmodule a\n-- ws/a.go --\npackage a\n-- ws/Makefile --\ntest:\n\ttest -f go.mod\n", "", false},
}

// tabled is how many lines the tables of commands of a page have, at least.
var tabled = map[string]int{"sessions.md": 8, "../README.md": 12}

// beside are the first words of commands of the README that are not tether's: nobody
// can run them here.
var beside = []string{"make", "ollama", "cd", "llama-server"}

// TestDocs runs the commands of each of the pages, one after the other, and reads
// its settings.
func TestDocs(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) { page.run(t, name) })
	}
}

// hasTarget: make knows what a page says that it makes.
func hasTarget(t *testing.T, target string) {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if name, _, _ := strings.Cut(target, " "); !strings.Contains(string(text), "\n"+name+":") {
		t.Errorf("there is no make %s", name)
	}
}

func (d docPage) run(t *testing.T, name string) {
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("env TETHER_MODEL=$M\nenv TASK=Look.\n")
	n, forms, settings := 0, 0, ""
	for _, m := range fences.FindAllStringSubmatch(string(page), -1) {
		if m[1] == "json" {
			continue
		}
		if m[1] == "toml" {
			c := Default()
			if err := c.decode("docs/"+name, m[2]); err != nil {
				t.Error(err)
			}
			settings += m[2]
			continue
		}
		for line := range strings.Lines(m[2]) {
			if m := formLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil && !strings.HasPrefix(m[2], "#") {
				checkForm(t, name, m[1], m[2])
				forms++
				continue
			}
			command, _, _ := strings.Cut(line, "#")
			command = strings.TrimSpace(command)
			first, rest, _ := strings.Cut(command, " ")
			if first == "make" {
				hasTarget(t, rest)
			}
			if command == "" || name == "../README.md" && slices.Contains(beside, first) {
				continue
			}
			if !strings.HasPrefix(command, "tether ") {
				t.Errorf("a command that is not tether's: %s", command)
			}
			if model, ok := strings.CutPrefix(command, "tether models get "); ok { // a gigabyte: it is only looked up
				command = "tether models list | grep \"^" + model + " \""
			}
			n++
			fmt.Fprintf(&script, "status %d sh -c '%s'\n", docsStatus[command], strings.ReplaceAll(command, "'", "''"))
		}
	}
	if n < d.least || forms < tabled[name] {
		t.Errorf("%d commands and %d forms, want the page to have %d and %d or more", n, forms, d.least, tabled[name])
	}
	script.WriteString("-- model.jsonl --\n" + cmp.Or(d.model, `{"cmd":"done"}`) + "\n" + d.files)
	if d.obeyed {
		script.WriteString("-- xdg/config/tether/tether.toml --\n" + settings)
	}
	file := filepath.Join(t.TempDir(), "docs.txtar")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{file}, RequireExplicitExec: true, Setup: setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": cmdStatus},
	})
}

// plotted are the commands of the results that make a plot of rows.
var plotted = regexp.MustCompile(`(?m)^tether (bench .*--rows (docs/rows/\S+) --svg (docs/\S+\.svg))$`)

// TestPlots makes each plot of the results again, from its rows. What the page shows is
// that, no row is without a plot, and no plot without rows.
func TestPlots(t *testing.T) {
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, pattern := range []string{"docs/*.svg", "docs/rows/*"} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			left[strings.TrimPrefix(file, "../../")] = true
		}
	}
	delete(left, "docs/session.svg") // TestRecorded has it
	t.Chdir("../..")
	for _, m := range plotted.FindAllStringSubmatch(string(text), -1) {
		made := filepath.Join(t.TempDir(), "plot.svg")
		args := append(strings.Fields(m[1]), "--svg", made) // the last one counts
		var out, errs bytes.Buffer
		p := &program{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: benchHome(t.TempDir())}
		if status := p.main(t.Context(), args); status != 0 {
			t.Errorf("%s: status %d\n%s", m[0], status, errs.String())
			continue
		}
		want, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(m[3]); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what this makes (%v): %s", m[3], err, m[0])
		}
		if !strings.Contains(string(text), "]("+filepath.Base(m[3])+")") {
			t.Errorf("the page does not show %s", m[3])
		}
		delete(left, m[2])
		delete(left, m[3])
	}
	for file := range left {
		t.Errorf("no command of the page has to do with %s", file)
	}
}

// examples are files to copy, and the pages that show them.
var examples = map[string]string{
	"tasks.jsonl":         "batch.md",
	"github-workflow.yml": "ci.md",
	"github-matrix.yml":   "ci.md",
	"gitlab-ci.yml":       "ci.md",
	"commands.toml":       "commands.md",
	"report.schema.json":  "commands.md",
}

// TestExamplesAreShown: each file of testdata/examples stands in its page as it is,
// so that what the tests of the pages run is what one copies.
func TestExamplesAreShown(t *testing.T) {
	files, err := os.ReadDir("testdata/examples")
	if err != nil || len(files) != len(examples) {
		t.Errorf("%d files, %v; want the %d that a page is named for", len(files), err, len(examples))
	}
	for name, page := range examples {
		text, err := os.ReadFile("testdata/examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(shown), "```"+strings.Trim(filepath.Ext(name), ".")+"\n"+string(text)+"```\n") && !strings.Contains(string(shown), "```yaml\n"+string(text)+"```\n") {
			t.Errorf("docs/%s does not show %s as it is", page, name)
		}
	}
}
