package window

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Next says which folds the next window of p needs. In Batch mode nothing
// happens until the window is b.Fold full; then the oldest turns are folded,
// and if that is not enough dropped, until it is b.Low full or only the
// newest b.Keep are left.
func (b Budget) Next(p Parts) Folds {
	last := max(len(p.Turns)-b.Keep, 0) // turns that may be folded
	if b.Mode == EveryTurn {
		p.Folds.Folded = max(p.Folds.Folded, last)
	}
	total := b.cost(b.layout(p))
	if total <= share(b.Usable(), b.Fold) {
		return p.Folds
	}
	low := share(b.Usable(), b.Low)
	for ; b.Mode == Batch && p.Folds.Folded < last && total > low; p.Folds.Folded++ {
		t := p.Turns[p.Folds.Folded]
		if p.stays(p.Folds.Folded) {
			continue
		}
		total -= b.Tokens(len(b.Observe(t))) - b.Tokens(len(b.shown(t, true)))
	}
	// Tombstones keep the calls. A history of large writes can still be too
	// much, and then its oldest turns go as a whole.
	if total > share(b.Usable(), b.Fold) {
		for ; p.Folds.Dropped < last && total > low; p.Folds.Dropped++ {
			i := p.Folds.Dropped
			if t := p.Turns[i]; t.User != "" || p.pinned(i) || p.summary(i) >= 0 {
				continue
			}
			said := p.Turns[i].said()
			total -= 2*perMessage + b.Tokens(said.size()) + b.Tokens(len(b.shown(p.Turns[i], i < p.Folds.Folded)))
		}
	}
	p.Folds.Folded = max(p.Folds.Folded, p.Folds.Dropped)
	return p.Folds
}

// shown is the text of t's result in a window in which it is folded or not.
func (b Budget) shown(t Turn, folded bool) string {
	if folded && !t.Recall && !t.Pin {
		return tombstone(t)
	}
	return b.Observe(t)
}

func share(n int, part float64) int { return int(float64(n) * part) }

// tombstone is the line that stands for a folded observation. It says what
// happened, in the past tense, and how to get it back.
func tombstone(t Turn) string {
	how := "folded"
	if t.Status != 0 {
		how = "failed with status " + strconv.Itoa(t.Status) + ", folded"
	}
	return fmt.Sprintf("[%s %s: `%s` (%s chars) | use `mem recall %s` or `mem search <query>`]",
		t.ID, how, Neutral(firstLine(t.Call.Cmd, 60)), commas(utf8.RuneCountInString(t.Output)), t.ID)
}

// dropped is the line that stands for n turns that are left out altogether.
func dropped(n int) string {
	return fmt.Sprintf("[%d older steps are not shown | use `mem search <query>`]", n)
}

// leftOut counts the turns that are dropped: what a person said never is, nor what
// is pinned.
func leftOut(p Parts) int {
	n := 0
	for i, t := range p.Turns[:p.Folds.Dropped] {
		if t.User == "" && !p.pinned(i) && p.summary(i) < 0 {
			n++
		}
	}
	return n
}

// firstLine is the first line of s, at most n characters of it.
func firstLine(s string, n int) string {
	s, _, more := strings.Cut(s, "\n")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	if more {
		return s + "…"
	}
	return s
}

// commas writes n with a comma before every three digits.
func commas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
