//go:build linux

package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// record writes docs/session.svg anew.
var record = flag.Bool("record", false, "write the recorded session of the documentation")

// recorded are the replies that Qwen2.5-Coder 1.5B gave in a run of tether demo.
const recorded = `{"cmd":"sh python3 hello.py"}
{"cmd":"edit hello.py","stdin":"def main():\n    print(\"hello from python\")\n\nmain()\n"}
{"cmd":"sh python3 hello.py"}
{"cmd":"done"}
`

// TestRecorded holds that the session that the README shows is what a terminal of
// 80 columns shows today.
func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	if err := copyDemo(filepath.Join(dir, "hello")); err != nil {
		t.Fatal(err)
	}
	p := startOn(t, 80, recorded, nil, "-C", filepath.Join(dir, "hello"), "--verify", demoVerify, demoTask)
	p.raw = &bytes.Buffer{}
	p.end(0)
	got := drawn(steady(p.raw.String(), dir))
	const path = "../../docs/session.svg"
	if *record {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/session.svg shows another session than today's; go test -run TestRecorded ./cmd/tether -record writes it anew. Today's:\n%s", got)
	}
}

// What differs from run to run, and what stands for it.
var (
	seconds = regexp.MustCompile(`\d+\.\d s`)
	header  = regexp.MustCompile(`\x1b\[2mmodel \x1b[^\n]*`) // cut where the path of the script is long
	moving  = regexp.MustCompile(`[^\n]*\r`)                 // a line that another one has replaced
)

// steady takes out of what was written to a terminal what no two runs share, and
// what is no longer there at the end.
func steady(raw, dir string) string {
	raw = strings.ReplaceAll(raw, "\r\n", "\n")
	raw = moving.ReplaceAllString(raw, "")
	raw = header.ReplaceAllString(raw, "\x1b[2mmodel \x1b[0mgguf:qwen2.5-coder-1.5b.gguf\x1b[2m  sandbox workspace-write, network off\x1b[0m")
	raw = strings.ReplaceAll(raw, dir, "~")
	return seconds.ReplaceAllString(raw, "0.4 s")
}

// looks are the classes of the colours that the view writes.
var looks = map[string]string{"\x1b[1m": "b", "\x1b[2m": "d", "\x1b[31m": "r", "\x1b[32m": "g"}

// Sizes of the picture, in pixels: 80 columns of the font below.
const (
	lineHeight = 18
	pageWidth  = 700
)

// drawn is a picture of a terminal's lines, readable on light and on dark pages.
func drawn(raw string) string {
	lines := strings.Split(strings.TrimRight(raw, "\n"), "\n")
	lines = append([]string{"\x1b[1m$ tether run \"" + demoTask[:37] + "…\" \\\x1b[0m", "\x1b[1m    --verify \"" + demoVerify + "\"\x1b[0m"}, lines...)
	var b strings.Builder
	height := lineHeight*len(lines) + 24
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" role="img" aria-label="a session of tether in a terminal">`+"\n", pageWidth, height, pageWidth)
	b.WriteString(`<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#1f2328}.p{fill:#f6f8fa}.b{font-weight:600}.d{fill:#59636e}.r{fill:#cf222e}.g{fill:#1a7f37}` +
		`@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.p{fill:#151b23}.d{fill:#9198a1}.r{fill:#f85149}.g{fill:#3fb950}}</style>` + "\n")
	fmt.Fprintf(&b, `<rect class="p" width="%d" height="%d" rx="6"/>`+"\n", pageWidth, height)
	for i, line := range lines {
		fmt.Fprintf(&b, `<text x="12" y="%d">%s</text>`+"\n", lineHeight*(i+1)+8, spans(line))
	}
	return b.String() + "</svg>\n"
}

// spans turns the colours of a line into elements.
func spans(line string) string {
	var b strings.Builder
	open := false
	for line != "" {
		i := strings.IndexByte(line, '\x1b')
		if i < 0 {
			i = len(line)
		}
		b.WriteString(html.EscapeString(line[:i]))
		line = line[i:]
		code := colours.FindString(line)
		line = line[len(code):]
		if open {
			b.WriteString("</tspan>")
		}
		if open = looks[code] != ""; open {
			fmt.Fprintf(&b, `<tspan class="%s">`, looks[code])
		}
	}
	if open {
		b.WriteString("</tspan>")
	}
	return b.String()
}
