package sandbox

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A display is what a program believes that it prints to when it moves the cursor: a progress bar goes back to the
// start of its line a thousand times, and a test runner climbs over its last ten lines. What a person would have in
// front of him in the end is what is kept; the states before it would fill a model's window. It has no width and no
// height: nothing is wrapped, and a screen that is cleared is not forgotten, because what failed may stand on it.
type display struct {
	rows []row
	y, x int
	back bool // the cursor was sent back: what is printed now goes over what stands there
}

// A row is one line of a display.
type row struct {
	before []string // what was printed over although it said something else
	cells  []rune
	over   []rune // what cells are printed over
}

// screen is the text that a display shows in the end. It takes time in proportion to s and is never more than twice s.
func screen(s string) string {
	t := display{rows: make([]row, 1)}
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			n := escape(s[i:])
			t.sequence(s[i : i+n])
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\n':
			t.down()
		case r == '\r':
			t.x, t.back = 0, true
		case r == '\b':
			t.x = max(t.x-1, 0)
		case r == '\t' || !control(r):
			t.print(r)
		}
	}
	return t.text()
}

// print puts one character where the cursor is.
func (t *display) print(r rune) {
	at := &t.rows[t.y]
	if t.back && t.x == 0 && len(at.cells) > 0 {
		at.settle()
		at.over, at.cells = at.cells, nil
	}
	t.back = t.back && t.x > 0
	switch {
	case t.x < len(at.cells):
		at.cells[t.x] = r
	default: // a gap of any width is one space: a width is cheap to ask for
		if t.x > len(at.cells) {
			at.cells = append(at.cells, ' ')
		}
		t.x = len(at.cells)
		at.cells = append(at.cells, r)
	}
	t.x++
}

// settle forgets what the row was printed over, if that was an earlier state of the same: a progress bar, or something
// that is wiped out. Anything else is kept as a line of its own, since a program may well go back over a message.
func (r *row) settle() {
	was, is := string(r.over), string(r.cells)
	r.over = nil
	if strings.TrimSpace(was) != "" && strings.TrimSpace(is) != "" && !sameThing(was, is) {
		r.before = append(r.before, strings.TrimRight(was, " "))
	}
}

// sameThing reports whether two texts are states of one progress: the first says no word, or begins as the second does
// once numbers, bars and spinners are left aside.
func sameThing(was, is string) bool {
	const begin = 6 // letters: "Counting" and "Compressing" differ, and a name that grows does not
	a, word := letters(was, begin)
	b, _ := letters(is, begin)
	n := min(len(a), len(b))
	return !word || n > 0 && string(a[:n]) == string(b[:n])
}

// letters returns the first n letters of s, and whether there is a word in it: three letters in a row, which no unit
// such as kB, it or MB has.
func letters(s string, n int) (first []rune, word bool) {
	run := 0
	for _, r := range s {
		if !unicode.IsLetter(r) {
			run = 0
			continue
		}
		if run++; run >= 3 {
			word = true
		}
		if len(first) < n {
			first = append(first, r)
		} else if word {
			break
		}
	}
	return first, word
}

// down goes to the next line, which is a new one at the end.
func (t *display) down() {
	t.y, t.x = t.y+1, 0
	t.back = t.y < len(t.rows)
	if !t.back {
		t.rows = append(t.rows, row{})
	}
}

// to moves the cursor to a line that is there.
func (t *display) to(y int) {
	t.y, t.back = min(max(y, 0), len(t.rows)-1), true
}

// sequence does what an escape sequence asks for, as far as it moves the cursor or erases. Colours, titles and the rest
// are nothing that is seen in a text.
func (t *display) sequence(s string) {
	if len(s) < 3 || s[1] != '[' {
		return
	}
	first, _, _ := strings.Cut(s[2:len(s)-1], ";")
	n, err := strconv.Atoi(first)
	if err != nil || n < 0 {
		n = 0
	}
	most := len(t.rows[t.y].cells) + 1 // no further right than one behind the last
	step := min(max(n, 1), max(most, len(t.rows)))
	switch s[len(s)-1] {
	case 'A':
		t.to(t.y - step)
	case 'B':
		t.to(t.y + step)
	case 'E':
		t.to(t.y + step)
		t.x = 0
	case 'F':
		t.to(t.y - step)
		t.x = 0
	case 'C':
		t.x = min(t.x+step, most)
	case 'D':
		t.x = max(t.x-step, 0)
	case 'G':
		t.x = min(step-1, most)
		t.back = true
	case 'H', 'f': // the page is left as it is, and what comes stands under it
		if t.to(len(t.rows) - 1); len(t.rows[t.y].cells) > 0 {
			t.down()
		}
	case 'K':
		t.erase(n)
	case 'J':
		if n == 0 {
			t.rows = t.rows[:t.y+1]
			t.erase(0)
		}
	}
}

// erase empties the line: from the cursor on, up to it, or all of it.
func (t *display) erase(how int) {
	at := &t.rows[t.y]
	switch {
	case how == 2 || how == 0 && t.x == 0 || how == 1 && t.x >= len(at.cells):
		at.cells, at.over = nil, nil
	case how == 0 && t.x < len(at.cells):
		at.cells = at.cells[:t.x]
	}
}

// text is what the display shows.
func (t *display) text() string {
	var b strings.Builder
	for i := range t.rows {
		r := &t.rows[i]
		over := r.over != nil
		r.settle()
		for _, line := range r.before {
			b.WriteString(line + "\n")
		}
		line := string(r.cells)
		if over || len(r.before) > 0 { // spaces that wiped out what was longer
			line = strings.TrimRight(line, " ")
		}
		b.WriteString(line)
		if i < len(t.rows)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// escape returns the length of the terminal sequence at the start of s. One that does not end is only its first byte.
func escape(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch s[1] {
	case '[': // parameters and intermediates, then one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x3f {
				return 1
			}
		}
	case ']', 'P', '_', '^': // a title, a link, a message to the terminal: up to BEL or ESC \
		for i := 2; i < len(s) && s[i] != '\n'; i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b { // the end, or another sequence
				if i+1 < len(s) && s[i+1] == '\\' {
					return i + 2
				}
				return 1
			}
		}
	case '(', ')', '*', '+', '#', '%': // a set of characters, and its name
		if len(s) > 2 && s[2] >= '0' && s[2] <= '~' {
			return 3
		}
	case '7', '8', '=', '>', 'c', 'D', 'E', 'H', 'M', 'N', 'O', 'Z', '\\':
		return 2
	}
	return 1
}
