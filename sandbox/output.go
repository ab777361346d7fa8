package sandbox

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// keep is how many bytes of an output are kept from its beginning, and again from its end: many times what a model's
// window takes, and enough for a person who reads the log.
const keep = 64 << 10

// output collects what a command prints. It holds at most 2*keep bytes, whatever comes.
type output struct {
	head  []byte
	tail  []byte // a ring of keep bytes once it is full
	next  int    // where the ring goes on
	total int64
	limit int64         // bytes, after which full is closed
	full  chan struct{} // closed once
}

func newOutput(limit int64) *output { return &output{limit: limit, full: make(chan struct{})} }

// collect reads until the end or until the reader's deadline.
func (o *output) collect(r io.Reader) {
	buf := make([]byte, keep)
	for {
		n, err := r.Read(buf)
		o.add(buf[:n])
		if err != nil {
			return
		}
	}
}

// add takes one piece.
func (o *output) add(p []byte) {
	before := o.total
	o.total += int64(len(p))
	if before <= o.limit && o.total > o.limit {
		close(o.full)
	}
	if room := keep - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	if len(p) >= keep { // only the last keep bytes can stay
		o.tail, o.next = append(o.tail[:0], p[len(p)-keep:]...), 0
		return
	}
	if grow := min(keep-len(o.tail), len(p)); grow > 0 {
		o.tail = append(o.tail, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		n := copy(o.tail[o.next:], p)
		p, o.next = p[n:], (o.next+n)%keep
	}
}

// text returns the kept output as clean text and the number of bytes that were left out. A gap is marked by a line.
func (o *output) text() (string, int64) {
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	left := o.total - int64(len(o.head)) - int64(len(tail))
	if left == 0 {
		return clean(string(o.head) + tail), 0
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", clean(wholeEnd(string(o.head))), left, clean(wholeStart(tail))), left
}

// wholeEnd drops the beginning of a character that a cut took apart.
func wholeEnd(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if c := s[len(s)-i:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRuneInString(c) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// wholeStart drops the rest of a character that a cut took apart.
func wholeStart(s string) string {
	for i := 0; i < utf8.UTFMax && i < len(s); i++ {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s
}

// clean makes text of what a program printed: valid UTF-8, terminal sequences and control bytes gone, a carriage return
// being the line break that it looks like off a terminal.
func clean(s string) string {
	if !dirty(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			i += escape(s[i:])
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\r' && i < len(s) && s[i] == '\n':
		case r == '\r':
			b.WriteByte('\n')
		case r == '\n' || r == '\t' || !control(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// dirty reports whether clean has anything to do. Most output is clean, and copying it costs.
func dirty(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return control(r) && r != '\n' && r != '\t' })
}

// control reports whether a character is of the sets C0 or C1, or DEL.
func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

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
	case ']': // a title or a link, up to BEL or ESC \
		for i := 2; i < len(s) && s[i] != '\n'; i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
	}
	return 1
}
