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
// newest b.Keep are left. What is asked again of its own result stays as it is.
func (b Budget) Next(p Parts) Folds { return *b.next(p).folds() }

// next is the window of p with the folds that Next says.
func (b Budget) next(p Parts) *ledger {
	w := b.ledger(p)
	last := max(len(p.Turns)-b.Keep, 0) // turns that may be folded
	high, low := share(b.Usable(), b.Fold), share(b.Usable(), b.Low)
	full := w.tokens() > high
	for f := w.folds(); f.Folded < last && (b.Mode == EveryTurn || b.Mode == Batch && full && w.tokens() > low); {
		w.step(&f.Folded)
	}
	// Tombstones keep the calls, and there are ever more of them. Where they leave too
	// little the oldest turns go as a whole, or the next fold is a few turns away.
	if full && w.tokens() > high-share(b.Usable(), leastFreed) {
		for f := w.folds(); f.Dropped < last && w.tokens() > low; {
			w.step(&f.Dropped)
		}
	}
	w.fit()
	w.folds().Folded = max(w.folds().Folded, w.folds().Dropped)
	return w
}

// leastFreed is the share of the usable window that a fold must free to be worth the
// cache it costs. Of the shares tried (none, 0.2, 0.3) it read least anew at 4k to 16k.
const leastFreed = 0.2

// A ledger is a window on the scales, while it is folded.
type ledger struct {
	budget Budget
	parts  Parts
	turns  []shownTurn
	mass   mass
	known  int     // tokens of the beginning, as its server counted them; 0 once it is changed
	fresh  mass    // then: of what stands behind it
	scale  float64 // of the estimate, once the beginning is changed: what the count showed it to be short of
}

// A shownTurn is what the window shows of one turn: its messages, and the summary
// that begins with it.
type shownTurn struct {
	aside string
	msgs  []Message
	mass  mass
}

// ledger weighs the window of p.
func (b Budget) ledger(p Parts) *ledger {
	p.Folds = p.Folds.within(len(p.Turns))
	w := &ledger{budget: b, parts: p, turns: make([]shownTurn, len(p.Turns))}
	w.mass = massOf(b.head(p))
	for i := range p.Turns {
		if w.look(i); i >= b.Seen.Turns {
			w.fresh = w.fresh.plus(w.turns[i].mass)
		}
	}
	if w.scale = 1; b.Seen.goesOn(p) {
		w.known = b.Seen.Tokens
	}
	return w
}

// within is f for a history of n turns.
func (f Folds) within(n int) Folds {
	for _, v := range []*int{&f.Folded, &f.Dropped, &f.Short, &f.Forced} {
		*v = min(max(*v, 0), n)
	}
	return f
}

func (w *ledger) folds() *Folds { return &w.parts.Folds }

// look weighs turn i anew.
func (w *ledger) look(i int) {
	t := shownTurn{aside: w.parts.aside(i), msgs: w.budget.turn(w.parts, i)}
	t.mass = massOf(t.msgs)
	t.mass.bytes += Weight(t.aside)
	w.mass = w.mass.minus(w.turns[i].mass).plus(t.mass)
	w.turns[i] = t
}

// step moves a border of the folds over one more turn. From there on the window is
// another one than was counted; where the count was above the estimate, so is what is
// left of it.
func (w *ledger) step(border *int) {
	if w.known > 0 {
		known := w.tokens()
		w.known = 0
		w.scale = max(1, float64(known)/float64(w.tokens()))
	}
	*border++
	w.look(*border - 1)
}

// messages is the window.
func (w *ledger) messages() []Message {
	msgs := w.budget.head(w.parts)
	if text := w.parts.dropped(); text != "" { // the task is the message before them
		msgs[1].Text += "\n\n" + text
	}
	for _, t := range w.turns {
		msgs[len(msgs)-1].Text += t.aside // no message of its own: every template knows the one before
		msgs = append(msgs, t.msgs...)
	}
	return msgs
}

// Room for the line that counts what is left out, and for the one that tells the
// last of it, weighed.
const (
	leftOutRoom = 120
	forcedRoom  = 700
)

// tokens estimates the tokens of the window. The lines about what is left out are
// taken at their longest: so the estimate moves only with what is folded.
func (w *ledger) tokens() int {
	if w.known > 0 {
		return w.known + w.budget.Tokens(w.fresh.bytes) + perMessage*w.fresh.msgs
	}
	m := w.mass
	m.bytes += leftOutRoom
	if w.parts.Folds.Forced > 0 {
		m.bytes += forcedRoom
	}
	return int(w.scale * float64(w.budget.tokens(m)))
}

// fit folds on until the window fits, whatever it holds: first the results of the
// oldest turns lose all but their ends, then turns go, the newest last, and with
// them what is pinned. What a person said stays.
func (w *ledger) fit() {
	usable, n := w.budget.Usable(), len(w.parts.Turns)
	for f := w.folds(); f.Short < n && w.tokens() > usable; {
		w.step(&f.Short)
	}
	for f := w.folds(); f.Forced < n && w.tokens() > usable; {
		w.step(&f.Forced)
	}
}

// Ends that are left of a result in a window that is too small, in characters.
const shortEnd = 110

// shown is the text of turn i's result. One that is shorter than the line that would
// stand for it stays.
func (b Budget) shown(p Parts, i int) string {
	t := p.Turns[i]
	if i < p.Folds.Short {
		b.Elide, b.Head, b.Tail = 3*shortEnd, shortEnd, shortEnd
	}
	if i >= p.Folds.Folded || t.Recall || p.pinned(i) {
		return b.Observe(t)
	}
	line := tombstone(t)
	if len(t.Output) < 3*len(line) { // and it may still weigh less
		if text := b.Observe(t); Weight(text) <= Weight(line) {
			return text
		}
	}
	return line
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

// dropped is what stands for the turns that are left out altogether, or "". Where
// even the newest had to go it tells the last of them, or the model would do it again.
func (p Parts) dropped() string {
	n := leftOut(p)
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("[%d older steps are not shown | use `mem search <query>`]", n)
	if i := p.Folds.Forced - 1; i >= 0 && p.Turns[i].Call.Cmd != "" {
		text += "\n" + tombstone(p.Turns[i])
	}
	return text
}

// leftOut counts the turns that are dropped: what a person said never is, nor what
// is pinned.
func leftOut(p Parts) int {
	n := 0
	for i := range p.Turns[:max(p.Folds.Dropped, p.Folds.Forced)] {
		if !p.shows(i) && p.summary(i) < 0 {
			n++
		}
	}
	return n
}

// shows says whether turn i has messages of its own in the window.
func (p Parts) shows(i int) bool {
	switch {
	case p.Turns[i].User != "":
		return true
	case i < p.Folds.Forced, p.summary(i) >= 0:
		return false
	}
	return i >= p.Folds.Dropped || p.pinned(i)
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
