package window

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clip shortens s to its first head and last tail characters if it has more
// than limit, at line borders where there are any, and says how much was left
// out and, if id is given, how to see it. The result is valid UTF-8.
func Clip(s string, limit, head, tail int, id string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	total := utf8.RuneCountInString(s)
	if total <= limit || total <= head+tail {
		return s
	}
	first := lineHead(s[:runeIndex(s, head)])
	last := lineTail(s[runeIndex(s, total-tail):])
	left := total - utf8.RuneCountInString(first) - utf8.RuneCountInString(last)
	where := ""
	if id != "" {
		where = " | `mem recall " + id + "` shows them"
	}
	return fmt.Sprintf("%s\n[… %s characters left out%s …]\n%s", strings.TrimSuffix(first, "\n"), commas(left), where, last)
}

// runeIndex is the byte offset of character n of s.
func runeIndex(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// lineHead cuts s back to its last whole line, unless that costs more than
// half of it: one long line is better shown in part than not at all.
func lineHead(s string) string {
	if i := strings.LastIndexByte(s, '\n'); i >= len(s)/2 {
		return s[:i+1]
	}
	return s
}

// lineTail cuts s forward to its first whole line, under the same condition.
func lineTail(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
		return s[i+1:]
	}
	return s
}
