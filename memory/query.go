package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a query. A model may paste a whole error message; its first
// words find what all of them would.
const (
	maxTerms    = 24
	maxTermSize = 100 // bytes of one term
)

// terms turns free text into FTS5 strings, one a word, without repetitions.
// All are quoted, so that nothing in the text is an operator to FTS5 and no
// text is a syntax error; a word with marks in it, such as a path, is the
// phrase of its parts. Words without a letter or a digit are left out: to the
// index they are empty.
func terms(query string) []string {
	var all []string
	for word := range strings.FieldsFuncSeq(strings.ToValidUTF8(query, " "), separates) {
		word = strings.ToLower(cut(word, maxTermSize))
		if !strings.ContainsFunc(word, isToken) {
			continue
		}
		term := `"` + strings.ReplaceAll(word, `"`, `""`) + `"`
		if !slices.Contains(all, term) {
			all = append(all, term)
		}
		if len(all) == maxTerms {
			break
		}
	}
	return all
}

func separates(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func isToken(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// cut returns at most n bytes of s, whole characters only.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// A weighed term knows in how many chunks it is; counting stops at a limit.
type weighed struct {
	term  string
	count int
}

// all is the query for chunks that hold every term.
func all(terms []weighed) string { return join(terms, " AND ") }

// rare is the query for chunks that hold any of the rarest terms, as many as
// are in no more than budget chunks together; the rarest one is always there,
// and a term that is nowhere never. "" means that no term is anywhere.
//
// Ranking costs time for every chunk that matches, and common terms hardly
// change the order: without them a query of ten words is 13 times as fast.
func rare(terms []weighed, budget int) string {
	terms = slices.DeleteFunc(slices.Clone(terms), func(t weighed) bool { return t.count == 0 })
	slices.SortStableFunc(terms, func(a, b weighed) int { return a.count - b.count })
	sum := 0
	for i, t := range terms {
		sum += t.count
		if i > 0 && sum > budget {
			terms = terms[:i]
			break
		}
	}
	return join(terms, " OR ")
}

func join(terms []weighed, operator string) string {
	var b strings.Builder
	for i, t := range terms {
		if i > 0 {
			b.WriteString(operator)
		}
		b.WriteString(t.term)
	}
	return b.String()
}
