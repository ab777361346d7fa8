package memory

import (
	"strings"
	"unicode"
)

const (
	maxSnippet = 200 // characters; a model reads five of them
	lead       = 60  // characters kept before the match when there are too many
)

// snippet makes one line of at most maxSnippet characters of text, around the
// first match, which FTS5 has marked by \x02 and \x03.
func snippet(text string) string {
	before, _, marked := strings.Cut(text, "\x02")
	if !marked {
		before = ""
	}
	start := len([]rune(oneLine(before)))
	line := []rune(oneLine(text))
	if len(line) <= maxSnippet {
		return string(line)
	}
	from := max(0, min(start-lead, len(line)-maxSnippet))
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

// oneLine makes one space of each run of white space and drops control
// characters, the marks among them.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
