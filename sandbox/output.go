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

// clean makes text of what a program printed: valid UTF-8, with what a terminal would show in the end, and no control
// bytes. It is the one place for that, so that the log, the model and a person have the same text.
func clean(s string) string {
	if !dirty(s) {
		return s
	}
	return screen(strings.ToValidUTF8(s, "\uFFFD"))
}

// dirty reports whether clean has anything to do. Most output is clean, and copying it costs.
func dirty(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return control(r) && r != '\n' && r != '\t' })
}

// control reports whether a character is of the sets C0 or C1, or DEL.
func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }
