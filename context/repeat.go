package window

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A program that waits, downloads or runs a hundred tests says the same thing a
// hundred times. Of what repeats, one is shown and the rest counted; of what
// differs in its numbers only, the first and the last. The marks are in
// brackets with an ellipsis and speak of lines, so that nobody takes them for
// what was printed.

// An entry is one line of an output as it may be shown, or the mark that stands
// for lines which are not.
type entry struct {
	text  string
	runes int // of text, and its line end
	lines int // of the output, which the entry stands for
	mark  bool
	above int  // of a mark: so many entries before it are what it speaks of
	data  bool // there is no letter in it: the numbers are what it says
	shape int  // the same number for lines that differ in their numbers only: that of the first
	key   int  // the same number for equal lines: that of the first
	judged
}

const (
	// longest block that is looked for: a test with three subtests and their
	// logs is eleven lines.
	maxPeriod = 12
	// An equal line is worth a mark the third time, and what differs in numbers
	// the fifth: its last one is shown too.
	equalTimes, alikeTimes = 3, 5
)

// entries takes s apart. The number of a shape is that of the first line of it.
func entries(s string) []entry {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	all := make([]entry, len(lines))
	keys, shapes := make(map[string]int, min(len(lines), 500)), make(map[string]int, min(len(lines), 100))
	var buf []byte
	for i, l := range lines {
		all[i] = entry{text: l, runes: utf8.RuneCountInString(l) + 1, lines: 1}
		n, known := keys[l]
		if known {
			all[i].key, all[i].shape, all[i].data = n, all[n].shape, all[n].data
			continue
		}
		all[i].data = !strings.ContainsFunc(l, unicode.IsLetter)
		keys[l], all[i].key = i, i
		buf = shape(buf[:0], l)
		if n, known = shapes[string(buf)]; !known {
			n = i
			shapes[string(buf)] = i
		}
		all[i].shape = n
	}
	return all
}

// shape writes l without what changes from one line of a kind to the next:
// numbers, also hexadecimal ones with a digit in them, and the length of bars
// and gaps.
func shape(to []byte, l string) []byte {
	for i := 0; i < len(l); {
		c := l[i]
		if isWord(c) {
			j, digits := i, false
			for ; j < len(l) && isWord(l[j]); j++ {
				digits = digits || isDigit(l[j])
			}
			to = wordShape(to, l[i:j], digits)
			i = j
			continue
		}
		j := i
		for j < len(l) && l[j] == c {
			j++
		}
		if c >= utf8.RuneSelf { // the blocks of a bar, in any number
			for j < len(l) && l[j] >= utf8.RuneSelf {
				j++
			}
		}
		to = append(to, c)
		i = j
	}
	return to
}

// wordShape writes a word with its numbers as "0": all of it, if it is a number to
// base 16.
func wordShape(to []byte, w string, digits bool) []byte {
	if !digits {
		return append(to, w...)
	}
	if hex := strings.TrimPrefix(w, "0x"); len(w) >= 6 && strings.Trim(hex, "0123456789abcdefABCDEF") == "" {
		return append(to, '0')
	}
	for i := 0; i < len(w); i++ {
		if !isDigit(w[i]) {
			to = append(to, w[i])
		} else if i == 0 || !isDigit(w[i-1]) {
			to = append(to, '0')
		}
	}
	return to
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool { return wordBytes[c] }

// wordBytes are the letters, the digits and the underscore.
var wordBytes = func() (is [256]bool) {
	for c := range is {
		b := byte(c)
		is[c] = isDigit(b) || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '_'
	}
	return is
}()

// collapse replaces what repeats in all by marks. A line that says what failed is
// never hidden behind one that differs from it in a number.
func collapse(all []entry) []entry {
	equal, alike := runner{all: all}, runner{all: all, alike: true}
	out := make([]entry, 0, len(all))
	for i := 0; i < len(all); {
		p, times := equal.longest(i, equalTimes)
		q, more := alike.longest(i, alikeTimes)
		switch {
		case times*p == 0 && more*q == 0:
			out = append(out, all[i])
			i++
		case times*p >= more*q:
			out = append(out, all[i:i+p]...)
			out = append(out, marked(p, p*(times-1), fmt.Sprintf("[… the %s above %s more times …]", countOf(p), commas(times-1))))
			i += times * p
		default:
			last := i + (more-1)*q
			out = append(out, all[i:i+q]...)
			out = append(out, marked(q, q*(more-2), fmt.Sprintf("[… %s more times the %s above, with other numbers …]", commas(more-2), countOf(q))))
			out = append(out, all[last:last+q]...)
			i += more * q
		}
	}
	return out
}

// A runner knows for each period up to which line those before it are followed,
// one period later, by the same. It only goes forward.
type runner struct {
	all   []entry
	alike bool
	end   [maxPeriod + 1]int
}

// longest is the period and the number of times of the repetition at i that
// covers most lines, or zeros. Of equal ones it is the shorter block.
func (r *runner) longest(i, least int) (period, times int) {
	for p := 1; p <= maxPeriod; p++ {
		end := max(r.end[p], i)
		for end+p < len(r.all) && r.same(&r.all[end], &r.all[end+p]) {
			end++
		}
		r.end[p] = end
		if n := (end-i)/p + 1; n >= least && n*p > times*period {
			period, times = p, n
		}
	}
	return period, times
}

// same reports whether one line repeats the other.
func (r *runner) same(a, b *entry) bool {
	if a.key == b.key || !r.alike {
		return a.key == b.key
	}
	return a.shape == b.shape && !a.data && max(a.weight, b.weight) <= strong
}

// marked is the entry of a mark that stands for a number of lines, as those above.
func marked(above, lines int, text string) entry {
	return entry{above: above, text: text, runes: utf8.RuneCountInString(text) + 1, lines: lines, mark: true, shape: -1, key: -1}
}

func countOf(lines int) string {
	if lines == 1 {
		return "line"
	}
	return commas(lines) + " lines"
}
