package window

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// A line longer than this is shown in part: minified code and JSON. A
	// compiler's sentence on a template type has up to 400 characters.
	longLine = 400
	// A gap within the excerpt costs about so much: "[… 123 lines …]".
	gapCost = 16
	// How much of head and tail is shown in any case, as a divisor: what was
	// run, and how it ended.
	always = 4
)

// A choice is the entries of an output that will be shown.
type choice struct {
	all   []entry
	taken []bool
	room  int // characters that are left
}

// choose takes the entries that fit: both ends, then the heaviest lines and,
// among equals, the first, then what explains these, then more of the ends.
func (c *choice) choose(weights []int, head, tail int) {
	c.ends(head/always, tail/always)
	for w := maxWeight; w > 0; w-- {
		if w < strong && c.room < (head+tail)/3 {
			break // the rest is for the ends: a story is easier to follow than crumbs of it
		}
		for i, have := range weights {
			if have == w {
				c.take(i)
			}
		}
	}
	c.ends(head, tail)
	c.mend()
	c.honest()
}

// honest gives up the marks whose lines above are not all shown: they would speak of
// others.
func (c *choice) honest() {
	for i, e := range c.all {
		for k := i - e.above; k < i; k++ {
			c.taken[i] = c.taken[i] && c.taken[k]
		}
	}
}

// mend takes the lines of gaps that cost no more than the mark for them.
func (c *choice) mend() {
	for i := 0; i < len(c.all); {
		from, cost := i, 0
		for ; i < len(c.all) && !c.taken[i]; i++ {
			cost += c.all[i].runes
		}
		for ; cost <= gapCost && from < i; from++ {
			c.taken[from] = true
		}
		i++
	}
}

// take takes entry i if it fits.
func (c *choice) take(i int) bool {
	if c.taken[i] {
		return true
	}
	cost := c.all[i].runes + gapCost
	for _, near := range []int{i - 1, i + 1} { // a gap is closed, or one is made of two
		if near < 0 || near >= len(c.all) || c.taken[near] {
			cost -= gapCost
		}
	}
	if cost > c.room {
		return false
	}
	c.taken[i] = true
	c.room -= cost
	return true
}

// ends takes whole lines from both ends, up to head and tail characters.
func (c *choice) ends(head, tail int) {
	n := len(c.all)
	for a, z := 0, 0; a+z < n && (head > 0 || tail > 0); {
		if head >= tail {
			if head -= c.all[a].runes; head >= 0 && !c.take(a) {
				head = 0
			}
			a++
		} else {
			i := n - 1 - z
			if tail -= c.all[i].runes; tail >= 0 && !c.take(i) {
				tail = 0
			}
			z++
		}
	}
}

// text writes the excerpt. total is the number of characters of the whole.
func (c *choice) text(total int, id string) string {
	shown, gaps := 0, false
	for i, e := range c.all {
		gaps = gaps || !c.taken[i]
		if c.taken[i] && !e.mark {
			shown += e.runes
		}
	}
	var b strings.Builder
	first := true // of the marks: it says how to see the rest
	for i := 0; i < len(c.all); {
		line, lines := c.all[i].text, 0
		for ; i < len(c.all) && !c.taken[i]; i++ {
			lines += c.all[i].lines
		}
		switch {
		case lines > 0 && first:
			line, first = leftOutMark(max(total-shown, 0), id), false
		case lines > 0:
			line = fmt.Sprintf("[… %s %s …]", commas(lines), plural(lines))
		default:
			if c.all[i].mark && first && !gaps && id != "" {
				line, first = pointed(line, id), false
			}
			i++
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func plural(lines int) string {
	if lines == 1 {
		return "line"
	}
	return "lines"
}

// size is the number of characters of all.
func size(all []entry) int {
	n := 0
	for i := range all {
		n += all[i].runes
	}
	return n
}

// cutLong shows of lines that are longer than longLine a part: around what failed, if they say so.
func cutLong(all []entry, weights []int, longLine int) {
	for i := range all {
		if all[i].runes <= longLine {
			continue
		}
		l := all[i].text
		from := 0
		if weights[i] >= strong {
			_, _, at := scan(l)
			from = max(at-longLine/2, 0)
		}
		part := l[from:]
		if from > 0 {
			part = "…" + strings.ToValidUTF8(part, "")
		}
		if utf8.RuneCountInString(part) > longLine {
			part = part[:runeIndex(part, longLine)] + "…"
		}
		all[i].text, all[i].runes = part, utf8.RuneCountInString(part)+1
	}
}
