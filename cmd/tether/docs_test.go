package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// fences are the blocks of a page in Markdown: the language and the text.
var fences = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// docsStatus is the exit status of each command of docs/sandbox.md that has
// another one than 0 where the test runs it: without a terminal, and without a
// file to trust.
var docsStatus = map[string]int{"tether config trust": 9}

// pages are the pages whose commands are run: how many each has at least, and the
// files that they are about.
var pages = map[string]struct {
	least int
	files string
}{
	"sandbox.md": {9, "-- ws/verify.sh --\ntest -f tests/a\n-- ws/tests/a --\n-- ws/backup.sh --\ntouch backup.tar\n"},
	"memory.md":  {8, "-- ws/add.py --\nprint(1 + 1)\n"},
}

// TestDocs runs the commands of each of the pages, one after the other, and reads
// its settings.
func TestDocs(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) { runPage(t, name, page.least, page.files) })
	}
}

func runPage(t *testing.T, name string, least int, files string) {
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("env TETHER_MODEL=$M\n")
	n := 0
	for _, m := range fences.FindAllStringSubmatch(string(page), -1) {
		if m[1] == "toml" {
			c := Default()
			if err := c.decode("docs/"+name, m[2]); err != nil {
				t.Error(err)
			}
			continue
		}
		for line := range strings.Lines(m[2]) {
			command, _, _ := strings.Cut(line, "#")
			command = strings.TrimSpace(command)
			if command == "" {
				continue
			}
			if !strings.HasPrefix(command, "tether ") {
				t.Errorf("a command that is not tether's: %s", command)
			}
			n++
			fmt.Fprintf(&script, "status %d sh -c '%s'\n", docsStatus[command], strings.ReplaceAll(command, "'", "''"))
		}
	}
	if n < least {
		t.Errorf("%d commands, want the page to have %d or more", n, least)
	}
	script.WriteString("-- model.jsonl --\n{\"cmd\":\"done\"}\n" + files)
	file := filepath.Join(t.TempDir(), "docs.txtar")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{file}, RequireExplicitExec: true, Setup: setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": cmdStatus},
	})
}
