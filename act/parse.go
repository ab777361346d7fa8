package act

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-shellwords"
)

// A piece is a word or an operator of a line, at its byte offsets.
type piece struct {
	op         string // empty for a word
	start, end int
}

// errWords says that a line's words cannot be told: a quote that is not closed,
// or a form that only a shell understands.
var errWords = errors.New("the quotes do not match")

// scan finds the words and the operators of a line. It decides nothing about
// what words mean; that is the work of [unquote]. It stops after a here-document
// operator, because what follows is text.
func scan(line string) ([]piece, error) {
	var pieces []piece
	if strings.ContainsRune(line, 0) {
		return nil, errWords
	}
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '\\' && strings.HasPrefix(line[i:], "\\\n"):
			i += 2
		case c == '#':
			i += lineLength(line[i:])
		default:
			p, err := scanPiece(line, i)
			if err != nil {
				return pieces, err
			}
			pieces = append(pieces, p)
			if p.op == "<<" {
				return pieces, nil
			}
			i = p.end
		}
	}
	return pieces, nil
}

func lineLength(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// operators, longest first: the first that fits is meant.
var operators = []string{
	"<<<", "&>>", "&&", "||", "|&", ";;", "<<", ">>", ">&", "<&", "&>", "<>", ">|",
	"|", "&", ";", "<", ">", "(", ")", "\n",
}

func operatorAt(s string) string {
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(s, op) })
	if i < 0 {
		return ""
	}
	return operators[i]
}

// scanPiece reads the operator or word that begins at i. Digits that stand right
// before < or > name a file descriptor and belong to the operator.
func scanPiece(line string, i int) (piece, error) {
	digits := i
	for digits < len(line) && line[digits] >= '0' && line[digits] <= '9' {
		digits++
	}
	if op := operatorAt(line[digits:]); op != "" && (digits == i || strings.ContainsAny(op[:1], "<>")) {
		return piece{op, i, digits + len(op)}, nil
	}
	end, err := wordEnd(line, i)
	return piece{"", i, end}, err
}

// wordEnd returns the offset behind the word that begins at i.
func wordEnd(line string, i int) (int, error) {
	for i < len(line) {
		n := 1
		switch c := line[i]; {
		case c == ' ' || c == '\t' || operatorAt(line[i:]) != "":
			return i, nil
		case c == '\r':
			return i, errWords // no two shells agree on them
		case c == '\\':
			n = 2
		case c == '\'' || c == '"' || c == '`':
			n = quotedLength(line[i:])
		case c == '$' && i+1 < len(line) && strings.ContainsRune(`'"`, rune(line[i+1])):
			return i, errWords
		case c == '$' && strings.HasPrefix(line[i:], "$("):
			n = parenLength(line[i:])
		}
		if n == 0 || i+n > len(line) {
			return i, errWords
		}
		i += n
	}
	return i, nil
}

// quotedLength returns the length of the quotation that s begins with, quotes
// included, or 0 if it is not closed.
func quotedLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1
		case s[i] == '\\' && s[0] != '\'':
			i++
		}
	}
	return 0
}

// parenLength returns the length of the command substitution that s begins with.
func parenLength(s string) int {
	depth := 0
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\'', '"', '`':
			n := quotedLength(s[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// unquote returns the value of one word of a line.
func unquote(word string) (string, error) {
	p := shellwords.NewParser()
	p.ParseEnv, p.ParseBacktick = false, false
	words, err := p.Parse(posix(word))
	if err != nil || p.Position != -1 || len(words) != 1 {
		return "", errWords
	}
	return words[0], nil
}

// posix rewrites the backslashes of a word so that shellwords, which drops all of
// them and makes \n and \t control characters, reads it as a POSIX shell does.
func posix(word string) string {
	if !strings.Contains(word, `\`) {
		return word
	}
	var b strings.Builder
	double, single := false, false
	for i := 0; i < len(word); i++ {
		c := word[i]
		if c == '\\' && !single && i+1 < len(word) {
			i++
			b.WriteString(posixEscape(word[i], double))
			continue
		}
		double = double != (c == '"' && !single)
		single = single != (c == '\'' && !double)
		b.WriteByte(c)
	}
	return b.String()
}

// posixEscape returns what shellwords has to read for a backslash and c.
func posixEscape(c byte, double bool) string {
	switch {
	case c == '\n':
		return ""
	case double && !strings.ContainsRune("$`\"\\", rune(c)):
		return `\\` + string([]byte{c})
	case c == 'n' || c == 't':
		return string(c)
	}
	return `\` + string([]byte{c})
}

// values unquotes the words among pieces, up to the first operator.
func values(line string, pieces []piece) ([]string, error) {
	var words []string
	for _, p := range pieces {
		if p.op != "" {
			break
		}
		w, err := unquote(line[p.start:p.end])
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}

// Words splits a command line that has no operator as a POSIX shell would,
// expanding nothing. It is what a built-in's arguments go through.
func Words(line string) ([]string, error) {
	line = clean(line)
	pieces, err := scan(line)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(pieces, func(p piece) bool { return p.op != "" }) {
		return nil, errors.New("the line has an operator of the shell")
	}
	return values(line, pieces)
}

// Quote writes a word so that Words reads it back.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '_' || r == '-' || r == ':' || r == ',' || r == '+' || r == '@' || r == '%' ||
			'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r >= utf8.RuneSelf
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// clean makes a line valid UTF-8 with plain line ends.
func clean(line string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(line, "\uFFFD"), "\r\n", "\n"))
}
