package main

import (
	"strings"
	"unicode"
)

// wide are characters that a terminal shows in two columns: East Asian ones and
// pictures. Terminals differ in what they take for a picture, so the table has
// whole blocks: a line that is cut too early is better than one that wraps.
var wide = []*unicode.RangeTable{
	unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Yi, unicode.Bopomofo,
	{R16: []unicode.Range16{
		{0x231a, 0x23ff, 1}, // watches and buttons
		{0x25fd, 0x27bf, 1}, // symbols, dingbats
		{0x2b05, 0x2b55, 1}, // arrows, stars
		{0x3000, 0x303f, 1}, // punctuation
		{0x3200, 0x33ff, 1}, // enclosed and square ones
		{0xfe30, 0xfe6f, 1}, // vertical forms
		{0xff01, 0xff60, 1}, // full width
		{0xffe0, 0xffe6, 1},
	}, R32: []unicode.Range32{
		{0x16fe0, 0x18aff, 1}, // Tangut
		{0x1f000, 0x1faff, 1}, // pictures
		{0x20000, 0x3fffd, 1}, // the rest of Han
	}},
}

// joiner makes one picture of two, on a terminal that knows it.
const joiner = '\u200d'

// columnsOf is how many columns r takes at most.
func columnsOf(r rune) int {
	switch {
	case r < 0x300: // the usual case: Latin
		return 1
	case r == joiner, unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, wide...):
		return 2
	}
	return 1
}

// pictured follows a character that is to be shown as a picture, and is then wide.
const pictured = '\ufe0f'

// maxMarks is how many characters may stand over another one: some scripts need
// five, and a thousand marks over one letter hide the lines above. Each beyond is
// counted as a column of its own.
const maxMarks = 8

// measure reads s until it takes more than n columns, and returns the columns and
// the bytes that were read.
func measure(s string, n int) (used, size int) {
	marks := 0
	for i, r := range s {
		w := columnsOf(r)
		if marks++; w > 0 {
			marks = 0
		}
		if r == pictured || marks > maxMarks {
			w = 1
		}
		if used+w > n {
			return used, i
		}
		used += w
	}
	return used, len(s)
}

// columns is how many columns s takes on a terminal at most.
func columns(s string) int {
	used, _ := measure(s, endless)
	return used
}

// fitting is the beginning of s that n columns hold.
func fitting(s string, n int) string {
	_, size := measure(s, n)
	return s[:size]
}

// oneRow is s on one line, with what could move the cursor taken out.
func oneRow(s string) string {
	return strings.NewReplacer("\t", " ", "\n", " ").Replace(printable(s))
}
