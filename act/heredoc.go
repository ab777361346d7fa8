package act

import (
	"regexp"
	"strings"
)

// heredocStart is the beginning of a here-document, up to its text.
var heredocStart = regexp.MustCompile(`^<<(-?)[ \t]*(?:'(\w+)'|"(\w+)"|(\\?)(\w+))([^\n]*)\n`)

// heredoc takes the text of a here-document. Without its closing word it goes to
// the end, as in bash. What stands behind << on its line comes after the text.
func (p *plan) heredoc(tail string) {
	p.rest = ""
	m := heredocStart.FindStringSubmatch(tail)
	if m == nil {
		return
	}
	body, after := cutHeredoc(tail[len(m[0]):], m[2]+m[3]+m[5], m[1] != "")
	if m[2]+m[3]+m[4] == "" { // not quoted: a shell takes the backslash off what it would expand
		body = strings.NewReplacer("\\$", "$", "\\`", "`").Replace(body)
	}
	p.stdin = &body
	next := strings.TrimSpace(m[6] + "\n" + strings.TrimLeft(after, "\n"))
	pieces, _ := scan(next)
	for len(pieces) > 0 {
		n := p.redirect(next, pieces)
		if n == 0 {
			break
		}
		pieces = pieces[1+n:]
	}
	switch {
	case len(pieces) == 0:
	case strings.TrimSpace(m[6]) == "":
		p.op, p.rest = ";", strings.TrimSpace(after)
	case pieces[0].op != "":
		p.join(next, pieces[0])
	}
}

// cutHeredoc cuts a text behind the line that is the closing word, or else at one
// that is it but for blanks around it. With tabs, those at line starts are dropped.
func cutHeredoc(text, word string, tabs bool) (body, after string) {
	end, next := -1, 0
	for at := 0; at < len(text); at = min(at+lineLength(text[at:])+1, len(text)) {
		l := text[at : at+lineLength(text[at:])]
		exact := l == word || tabs && strings.TrimLeft(l, "\t") == word
		if exact || end < 0 && strings.TrimSpace(l) == word {
			end, next = at, at+len(l)
		}
		if exact {
			break
		}
	}
	body = text
	if end >= 0 {
		body, after = text[:end], text[next:]
	}
	if tabs {
		body = regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(body, "")
	}
	return body, after
}
