package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// osc is what a file may do to a terminal: set the clipboard, the title, wipe the
// screen, hide text, by 7-bit and by 8-bit sequences, and turn a line around.
const osc = "a\x1b]52;c;cm0gLXJmIC8=\x07\x1b]0;title\x07\x1b[2J\x1b[8m b\u009b2J\u0090\x7f\r\x08 c\u202ed\u2066\u2028\ttab\nline é 漢 \u200d"

// TestPrintable: nothing of it acts, and what is text stays.
func TestPrintable(t *testing.T) {
	got := printable(osc)
	if want := "a]52;c;cm0gLXJmIC8=]0;title[2J[8m b2J cd\ttab\nline é 漢 \u200d"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestJSONIsPrintable: a line for programs does not act on a terminal either, and
// holds what it held.
func TestJSONIsPrintable(t *testing.T) {
	var out bytes.Buffer
	p := &program{Out: &out}
	if err := p.json(map[string]string{"output": osc}); err != nil {
		t.Fatal(err)
	}
	if line := strings.TrimSuffix(out.String(), "\n"); printable(line) != line || strings.ContainsAny(line, "\n\t") {
		t.Errorf("%q acts on a terminal", line)
	}
	var v map[string]string
	if err := json.Unmarshal(out.Bytes(), &v); err != nil || v["output"] != osc {
		t.Errorf("it reads as %q, %v", v["output"], err)
	}
}
