package memory

import (
	"strings"
	"unicode/utf8"
)

// maxLine is how many bytes of a line count as one: what search points at must
// be short enough to be shown, also in an output that is one line of 100 KB.
const maxLine = 400

// Lines takes a text apart into the lines that search counts and recall shows:
// those of the text, without their ends, but one of more than 400 bytes is
// several, cut behind a space where there is one. A final line end begins no
// further line.
func Lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		for len(line) > maxLine {
			n := wrap(line)
			all = append(all, line[:n])
			line = line[n:]
		}
		all = append(all, line)
	}
	return all
}

// wrap is where a line of more than maxLine bytes is cut: behind a space in
// its second half, else between two characters.
func wrap(line string) int {
	n := maxLine
	for n > 1 && !utf8.RuneStart(line[n]) {
		n--
	}
	if i := strings.LastIndexByte(line[:n], ' '); i >= n/2 {
		return i + 1
	}
	return n
}
