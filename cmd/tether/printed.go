package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// printable takes out of s what could move a cursor, change a screen or turn the
// direction of a line around: a model, a file and a server may have anything in
// what they say. Lines and tabs stay.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || acts(r) {
			return -1
		}
		return r
	}, s)
}

// acts reports whether a character above the ASCII control bytes acts on a
// terminal: DEL, C1, line separators, and marks of direction.
func acts(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x061c || r >= 0x200e && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// json prints v on a line of its own. It is for programs, and a person may have
// it on a terminal all the same: what acts there is escaped, and reads the same.
func (p *program) json(v any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return err
	}
	line := b.String()
	if strings.ContainsFunc(line, acts) {
		b.Reset()
		for _, r := range line { // outside of strings JSON has none of them
			if acts(r) {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
		line = b.String()
	}
	_, err := p.Out.Write([]byte(line))
	return err
}
