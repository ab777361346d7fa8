package memory

import (
	"strings"
	"unicode"
)

const (
	maxSnippet = 200 // characters; a model reads five of them
	lead       = 40  // characters kept before the first match when there are too many
)

// near is how far apart, in characters, words stand that belong together: a
// line and a half of a comment.
const near = 80

// A mark is where a word of the query stands in a line, and the word: its
// beginning, because stems are not known here.
type mark struct {
	at   int
	word string
}

const stem = 5 // characters of a word

// snippet makes one line of at most maxSnippet characters of text, in which
// FTS5 has put \x02 before and \x03 behind each match: the stretch with the most
// words of the query.
func snippet(text string) string {
	line, marks := flatten(text)
	if len(line) <= maxSnippet {
		return string(line)
	}
	_, at := densest(marks, maxSnippet-lead)
	from := max(0, min(at-lead, len(line)-maxSnippet))
	line = line[from:]
	if from > 0 {
		line[0] = '…'
	}
	if len(line) > maxSnippet {
		line = line[:maxSnippet]
		line[maxSnippet-1] = '…'
	}
	return string(line)
}

// together returns how many different words of the query stand near each other
// in text, which is marked.
func together(text string) int {
	_, marks := flatten(text)
	words, _ := densest(marks, near)
	return words
}

// densest returns how many different words stand within width characters at
// most, and where the first of them is; 0, 0 if there are none.
func densest(marks []mark, width int) (most, at int) {
	for i, m := range marks {
		words := map[string]bool{}
		for _, other := range marks[i:] {
			if other.at > m.at+width {
				break
			}
			words[other.word] = true
		}
		if len(words) > most {
			most, at = len(words), m.at
		}
	}
	return most, at
}

// flatten makes one line of text, with one space for each run of white space
// and no control characters, and says where in it the matches are.
func flatten(text string) (line []rune, marks []mark) {
	space, open := false, false
	for _, r := range text {
		switch {
		case r == '\x02', r == '\x03':
			open = r == '\x02'
			if open && space {
				line, space = append(line, ' '), false
			}
			if open {
				marks = append(marks, mark{at: len(line)})
			}
		case unicode.IsSpace(r):
			space = len(line) > 0
		case unicode.IsControl(r):
		default:
			if space {
				line, space = append(line, ' '), false
			}
			line = append(line, r)
			if m := len(marks) - 1; open && len(line)-marks[m].at <= stem {
				marks[m].word += string(unicode.ToLower(r))
			}
		}
	}
	return line, marks
}

// unmarked is text without the marks.
func unmarked(text string) string { return noMarks.Replace(text) }

var noMarks = strings.NewReplacer("\x02", "", "\x03", "")

// oneLine is text without line ends and control characters.
func oneLine(text string) string {
	line, _ := flatten(text)
	return string(line)
}
