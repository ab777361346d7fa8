package llm

import (
	"regexp"
	"strings"
)

// keyword is the beginning of an argument that is given by name.
var keyword = regexp.MustCompile(`^([A-Za-z_]\w*)\s*=\s*`)

// keywords reads the arguments of a Python call up to its closing parenthesis:
// strings and numbers, by name or by place (the first one is cmd, the second
// stdin). n is the length read, the parenthesis included.
func keywords(text string) (fields []field, n int, ok bool) {
	for {
		n += blanks(text[n:])
		if strings.HasPrefix(text[n:], ")") {
			return fields, n + 1, true
		}
		key := ""
		if m := keyword.FindStringSubmatch(text[n:]); m != nil {
			key, n = m[1], n+len(m[0])
		} else if len(fields) < 2 {
			key = []string{"cmd", "stdin"}[len(fields)]
		}
		value, size, ok := pythonValue(text[n:])
		if !ok {
			return nil, 0, false
		}
		fields, n = append(fields, value.as(key)), n+size
		n += blanks(text[n:])
		switch {
		case strings.HasPrefix(text[n:], ","):
			n++
		case !strings.HasPrefix(text[n:], ")"):
			return nil, 0, false
		}
	}
}

func (f field) as(key string) field { f.key = key; return f }

// blanks is the number of blanks at the beginning of text.
func blanks(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n")) }

// number is a number or a constant in Python.
var number = regexp.MustCompile(`^(-?\d+(\.\d+)?|True|False|None)`)

// pythonValue reads a string, a number or a constant.
func pythonValue(text string) (f field, n int, ok bool) {
	if w := number.FindString(text); w != "" {
		k := map[string]kind{"True": kindTrue, "False": kindOther, "None": kindOther}[w]
		if k == kindString {
			k = kindNumber
		}
		return field{value: strings.NewReplacer("True", "true", "False", "false", "None", "null").Replace(w), kind: k}, len(w), true
	}
	raw := strings.HasPrefix(text, "r")
	if raw {
		n++
	}
	for _, q := range []string{`"""`, `'''`, `"`, `'`} {
		if strings.HasPrefix(text[n:], q) {
			s, size, ok := pythonString(text[n+len(q):], q, raw)
			return field{value: s}, n + len(q) + size, ok
		}
	}
	return field{}, 0, false
}

// pythonEscapes are the escapes whose value is not the character itself.
var pythonEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\n': "", '0': "\x00"}

// pythonString reads a string up to its closing quotes.
func pythonString(text, quotes string, raw bool) (string, int, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], quotes):
			return b.String(), i + len(quotes), true
		case c == '\n' && len(quotes) == 1:
			return "", 0, false
		case c == '\\' && !raw && i+1 < len(text):
			i++
			if s, ok := pythonEscapes[text[i]]; ok {
				b.WriteString(s)
			} else if strings.IndexByte(`\'"`, text[i]) >= 0 {
				b.WriteByte(text[i])
			} else {
				b.WriteString(text[i-1 : i+1]) // as Python does: both characters stay
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}
