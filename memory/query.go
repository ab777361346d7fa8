package memory

import (
	"slices"
	"sort"
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
// index they are empty. So are filler words, if there are others.
func terms(query string) []string {
	var all, fill []string
	for word := range strings.FieldsFuncSeq(strings.ToValidUTF8(query, " "), separates) {
		word = strings.ToLower(cut(word, maxTermSize))
		if !strings.ContainsFunc(word, isToken) {
			continue
		}
		into := &all
		if isFiller(word) {
			into = &fill
		}
		if term := quoted(word); !slices.Contains(*into, term) && len(*into) < maxTerms {
			*into = append(*into, term)
		}
	}
	if len(all) == 0 {
		return fill
	}
	return all
}

// quoted makes an FTS5 string of a word.
func quoted(word string) string { return `"` + strings.ReplaceAll(word, `"`, `""`) + `"` }

// parts returns the terms that the phrase term is made of; none if it is one
// word.
func parts(term string) []string {
	words := strings.FieldsFunc(term, func(r rune) bool { return !isToken(r) && !unicode.IsMark(r) })
	if len(words) < 2 {
		return nil
	}
	var all []string
	for _, word := range words[:min(len(words), maxTerms)] {
		if strings.ContainsFunc(word, isToken) {
			all = append(all, quoted(word))
		}
	}
	return all
}

// fillers are words that a question has and its answer need not have. In a
// store of outputs they are rare, and would decide the order.
var fillers = strings.Fields(`a an and are as at be but by can did do does for from had has have how i if in into
	is it its me my of on or our should so that the their them there these they this to was we were what
	when where which who why will with would you your`)

func isFiller(word string) bool {
	return slices.Contains(fillers, strings.TrimFunc(word, func(r rune) bool { return !isToken(r) }))
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

// every is the query for chunks that hold every term.
func every(terms []weighed) string { return join(terms, " AND ") }

// rare is the query for chunks that hold any of the rarest terms, as many as
// are in no more than budget chunks together, and in how many they are; the
// rarest one is always there. The other terms decide with them which chunks
// come first.
//
// Ranking costs time for every chunk that matches: a query of ten words, any of
// which may match, takes more than ten times as long. But without the common
// ones among them the order is worse than that of all words.
func rare(terms []weighed, budget int) (match string, sum int) {
	terms = slices.Clone(terms)
	sort.SliceStable(terms, func(i, j int) bool { return terms[i].count < terms[j].count })
	some := 0
	for some < len(terms) && (some == 0 || sum+terms[some].count <= budget) {
		sum += terms[some].count
		some++
	}
	if some == len(terms) {
		return join(terms, " OR "), sum
	}
	return "(" + join(terms[:some], " OR ") + ") AND (" + join(terms, " OR ") + ")", sum
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
