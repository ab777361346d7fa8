package llm

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// A lenient reader reads values as models write them: JSON, and what they take for it.
// Single, triple and Gemma's quotes, line breaks in a string, escapes that JSON
// has not, bare keys, comments, trailing commas, and the constants of Python. It
// completes nothing and guesses nothing: a value that could be read in two ways
// is not read.
type lenient struct {
	text   string
	at     int
	python bool // strings are those of Python: r"…", "a" "b", \x41
	short  bool // the text ended within a value
	depth  int
	out    strings.Builder // the value as JSON
}

// maxDepth bounds how deep lists and objects may stand in each other.
const maxDepth = 64

// relaxed reads the value that text begins with and returns it as JSON, and the
// length that was read. bad says why there is none.
func relaxed(text string) (json string, n int, bad verdict) {
	r := lenient{text: text}
	if r.value() {
		return r.out.String(), r.at, fine
	}
	return "", 0, r.verdict()
}

// verdict is what is wrong with a value that could not be read.
func (r *lenient) verdict() verdict {
	if r.short {
		return broken
	}
	return garbled
}

// more reports whether there is anything behind blanks and comments.
func (r *lenient) more() bool {
	for r.at < len(r.text) {
		rest := r.text[r.at:]
		trimmed := strings.TrimLeftFunc(rest, blank)
		r.at += len(rest) - len(trimmed)
		end := "\n"
		switch {
		case strings.HasPrefix(trimmed, "/*"):
			end = "*/"
		case !strings.HasPrefix(trimmed, "//") && !strings.HasPrefix(trimmed, "#"):
			return r.at < len(r.text)
		}
		i := strings.Index(trimmed, end)
		if i < 0 {
			r.at = len(r.text)
			break
		}
		r.at += i + len(end)
	}
	r.short = true
	return false
}

// blank reports whether c is nothing to read: one of the characters of no width
// is among them.
func blank(c rune) bool {
	return unicode.IsSpace(c) || c == '\ufeff' || c == 0 || c >= '\u200b' && c <= '\u200d' || c == '\u2060'
}

// take takes c, if it comes next.
func (r *lenient) take(c byte) bool {
	if !r.more() || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// A scalar is a number or a constant.
var scalar = regexp.MustCompile(`^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|True|False|None)\b`)

var constants = strings.NewReplacer("True", "true", "False", "false", "None", "null")

// value reads one value.
func (r *lenient) value() bool {
	if !r.more() {
		return false
	}
	switch r.text[r.at] {
	case '{':
		return r.list('}')
	case '[':
		return r.list(']')
	}
	if s, ok := r.str(); ok {
		r.out.WriteString(compact(s))
		return true
	}
	w := scalar.FindString(r.text[r.at:])
	r.at += len(w)
	r.out.WriteString(constants.Replace(w))
	return w != ""
}

// list reads a list, or an object, up to the bracket that closes it.
func (r *lenient) list(end byte) bool {
	if r.depth++; r.depth > maxDepth {
		return false
	}
	r.out.WriteByte(r.text[r.at])
	r.at++
	for n := 0; r.more(); n++ {
		if r.take(end) {
			r.depth--
			r.out.WriteByte(end)
			return true
		}
		if n > 0 {
			r.out.WriteByte(',')
		}
		if end == '}' && !r.key() || !r.value() || !r.more() || r.text[r.at] != end && !r.take(',') {
			return false
		}
	}
	return false
}

// bareKey is a key without quotes.
var bareKey = regexp.MustCompile(`^[A-Za-z_][\w-]*`)

// key reads a key and its colon.
func (r *lenient) key() bool {
	s, ok := r.str()
	if !ok {
		s = bareKey.FindString(r.text[r.at:])
		r.at += len(s)
	}
	if s == "" || !r.take(':') {
		return false
	}
	r.out.WriteString(compact(s) + ":")
	return true
}

// quotes are what a string may stand between, the longer before the shorter.
// Between Gemma's there are no escapes.
var quotes = []string{`<|"|>`, `<escape>`, `"""`, `'''`, `"`, `'`}

// str reads a string, and in Python those that stand right behind it.
func (r *lenient) str() (s string, ok bool) {
	for {
		next, one := r.one()
		if !one {
			return s, ok && !r.short
		}
		s, ok = s+next, true
		if !r.python {
			return s, true
		}
		at, short := r.at, r.short
		if !r.more() {
			r.at, r.short = at, short
			return s, true
		}
	}
}

// one reads one string.
func (r *lenient) one() (string, bool) {
	rest := r.text[r.at:]
	raw := r.python && len(rest) > 1 && (rest[0] == 'r' || rest[0] == 'R')
	if raw {
		rest = rest[1:]
	}
	for i, q := range quotes {
		if !strings.HasPrefix(rest, q) {
			continue
		}
		body := rest[len(q):]
		s, n, bad := body, strings.Index(body, q), fine
		switch {
		case i >= 2:
			s, n, bad = unquote(body, q, raw, r.python || q[0] == '\'')
		case n >= 0:
			s = body[:n]
		default:
			bad = broken
		}
		if r.short = r.short || bad == broken; bad != fine {
			return "", false
		}
		r.at = len(r.text) - len(body) + n + len(q)
		return s, true
	}
	return "", false
}

// unquote reads a string up to its closing quote; n is where that stands.
func unquote(text, quote string, raw, python bool) (s string, n int, bad verdict) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], quote):
			return b.String(), i, fine
		case c == '\n' && python && len(quote) == 1:
			return "", 0, garbled
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(text):
			return "", 0, broken
		case raw:
			b.WriteString(text[i : i+2])
			i++
		default:
			s, size, bad := escape(text[i+1:], python)
			if bad != fine {
				return "", 0, bad
			}
			b.WriteString(s)
			i += size
		}
	}
	return "", 0, broken
}

// escapes are those of one character. What has none is kept with its backslash:
// it is part of a pattern or of a shell's line.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", '/': "/", '\\': `\`, '"': `"`, '\'': `'`}

// hexDigits is how many digits the escapes by number have. \x and \U are
// Python's.
var hexDigits = map[byte]int{'u': 4, 'x': 2, 'U': 8}

// escape reads what stands behind a backslash.
func escape(text string, python bool) (s string, n int, bad verdict) {
	c := text[0]
	if s, ok := escapes[c]; ok {
		return s, 1, fine
	}
	digits := hexDigits[c]
	switch {
	case python && c == '\n':
		return "", 1, fine
	case python && c == '0':
		return "\x00", 1, fine
	case digits == 0, c != 'u' && !python:
		return `\` + text[:1], 1, fine
	case len(text) <= digits:
		return "", 0, broken
	}
	v, err := strconv.ParseUint(text[1:1+digits], 16, 32)
	if err != nil {
		return "", 0, garbled
	}
	n = 1 + digits
	if low := text[n:]; utf16.IsSurrogate(rune(v)) && len(low) >= 6 && low[:2] == `\u` {
		if w, err := strconv.ParseUint(low[2:6], 16, 32); err == nil && utf16.DecodeRune(rune(v), rune(w)) != unicode.ReplacementChar {
			return string(utf16.DecodeRune(rune(v), rune(w))), n + 6, fine
		}
	}
	return string(rune(v)), n, fine
}
