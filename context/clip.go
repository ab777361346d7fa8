package window

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clip shortens s to its first head and last tail characters if it has more
// than limit, at line borders where there are any, and says how much was left
// out and, if id is given, how to see it. The result is valid UTF-8. It is for
// texts that mean something as they stand: what a file holds, what was said.
// Excerpt is for what a program printed.
func Clip(s string, limit, head, tail int, id string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	total := utf8.RuneCountInString(s)
	if total <= limit || total <= head+tail {
		return s
	}
	first := lineHead(s[:runeIndex(s, head)])
	last := lineTail(s[runeIndex(s, total-tail):])
	left := total - utf8.RuneCountInString(first) - utf8.RuneCountInString(last)
	return fmt.Sprintf("%s\n%s\n%s", strings.TrimSuffix(first, "\n"), leftOutMark(left, id), last)
}

// leftOutMark is the line that stands for the characters that are left out.
func leftOutMark(n int, id string) string {
	return pointed(fmt.Sprintf("[… %s characters left out …]", commas(n)), id)
}

// pointed is a mark with a word about how to see what it stands for.
func pointed(mark, id string) string {
	if id == "" {
		return mark
	}
	return strings.TrimSuffix(mark, " …]") + " | `mem recall " + id + "` shows them …]"
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

// observed is the output of t within the budget.
func (b Budget) observed(t Turn) string {
	switch all, some := prints(t.Call.Cmd); {
	case all:
		return Clip(t.Output, b.Elide, b.Head, b.Tail, t.ID)
	default:
		return excerpt(t.Output, b.Elide, b.Head, b.Tail, t.ID, !some)
	}
}

// Excerpt shortens what a program printed, if it has more than limit
// characters: what repeats is counted, and of what is still too much the lines
// stay that say what failed, with the beginning and the end around them. They
// are no more than head and tail characters together. The result is valid UTF-8
// and, if limit is head+tail and 200 more, within limit, so that an excerpt of
// an excerpt is the same.
func Excerpt(s string, limit, head, tail int, id string) string {
	return excerpt(s, limit, head, tail, id, true)
}

func excerpt(s string, limit, head, tail int, id string, repeats bool) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	total := utf8.RuneCountInString(s)
	if total <= limit || total <= head+tail {
		return s
	}
	all := entries(s)
	judgeAll(all)
	if repeats {
		all = collapse(all)
	}
	weights := weigh(all)
	whole := size(all)
	cutLong(all, weights, min(longLine, max(head, tail)*9/10)) // one must fit into an end
	if size(all) < min(whole, head+tail)/2 {                   // a few huge lines: their ends say more than their beginnings
		return Clip(s, limit, head, tail, id)
	}
	c := choice{all: all, taken: make([]bool, len(all)), room: head + tail}
	if pointer := 100; size(all)+pointer <= limit { // all of it fits, now that repeats are counted
		c.room, head, tail = limit, limit, limit
	}
	c.choose(weights, head, tail)
	return c.text(total, id)
}
