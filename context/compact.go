package window

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Where a summary begins to be worth its request: above 0.6 of the usable window,
// before anything is folded at 0.75, and then down to 0.25, so that the next one
// is many turns away. Both as measured on Thetis (requirements THX-1).
const (
	compactAt = 0.6
	compactTo = 0.25
)

const (
	// maxSpans bounds the requests of one compaction: more spans than words of a
	// person in the middle of a task are hardly seen.
	maxSpans = 4
	// maxSummary is the length of a summary in characters, about 300 tokens. The
	// sixteenth of a smaller window is less.
	maxSummary = 1200
	// minSummary is what is no summary: "ok", "done", a number.
	minSummary = 20
	// shownSummaries are told in full, the newest ones; of those before only their
	// span. So all together are less than an eighth of the window (case c21).
	shownSummaries = 2
	// maxStep is what a step takes at most in the request for a summary, in
	// characters: as many as show how an output begins and ends.
	maxStep = 800
	minStep = 40
)

// A Span is a run of turns, by their places in Parts.Turns: From, up to and
// without To.
type Span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// A Summary stands in the window for the turns of its span. Text is what the
// model said of them, as Digest left it.
type Summary struct {
	Span
	Text string `json:"text"`
}

// Spans says which turns a summary should stand for, none if the window has room
// or there is too little to be won. It is for turns from on: those before were
// asked about already, whatever came of it. A span holds whole turns; the newest
// b.Keep, what a person said, what is pinned and what was recalled are in none. It
// goes on from the oldest turn until the window would be small enough, so that
// what comes out does not depend on how often it is asked.
func (b Budget) Spans(p Parts, from int) []Span {
	total := b.cost(b.layout(p))
	counted := total // by the server as far as it goes, and what is new on top
	if b.Seen.goesOn(p) {
		counted = b.ledger(p).tokens()
	}
	if counted <= share(b.Usable(), compactAt) {
		return nil
	}
	usable := b.Usable() * total / counted // in estimated tokens, as all that follows
	before, target := total, share(usable, compactTo)
	var spans []Span
	open, begun := Span{}, 0
	sum := b.Tokens(b.summaryBytes())
	end := func() { // of the open span; one that wins less than its summary takes is none
		if total < begun-sum {
			spans = append(spans, open)
		} else {
			total = begun
		}
		open = Span{}
	}
	for i := max(from, p.Folds.Dropped); i < len(p.Turns)-b.Keep && total > target && len(spans) < maxSpans; i++ {
		switch {
		case p.stays(i):
			if open.To > 0 {
				end()
			}
			continue
		case open.To == 0:
			open, begun = Span{i, i}, total
			total += sum
		}
		open.To++
		total -= b.turnCost(p, i)
	}
	if open.To > 0 && len(spans) < maxSpans {
		end()
	}
	// A request reads its span anew and loses the cache behind it: for less than
	// an eighth of the window that is not paid.
	if before-total < usable/8 {
		return nil
	}
	return spans
}

// turnCost estimates the tokens of turn i as p shows it.
func (b Budget) turnCost(p Parts, i int) int {
	m := massOf(b.turn(p, i))
	return b.Tokens(m.bytes) + perMessage*m.msgs
}

// summaryBytes is what the longest summary within b weighs, with what stands around
// it.
func (b Budget) summaryBytes() int { return b.summaryChars()*5/4 + 250 }

// summaryChars is the longest summary: a sixteenth of the window, at three
// characters a token.
func (b Budget) summaryChars() int { return min(maxSummary, b.Usable()*3/16) }

// stays says whether turn i is shown as it is, whatever is summarised around it.
func (p Parts) stays(i int) bool {
	t := p.Turns[i]
	return t.User != "" || t.Recall || p.pinned(i) || p.summary(i) >= 0
}

// maxPins is how many pinned turns stay: of 400 bytes each, a seventh of a window
// of 8k. They are the oldest ones, since nothing that stays may move.
const maxPins = 8

// pinned says whether turn i is one of those that stay because they are pinned.
func (p Parts) pinned(i int) bool {
	if !p.Turns[i].Pin {
		return false
	}
	n := 0
	for _, t := range p.Turns[:i] {
		if t.Pin {
			n++
		}
	}
	return n < maxPins
}

// summary is the place in p.Summaries of the one that stands for turn i, or -1.
func (p Parts) summary(i int) int {
	for n, s := range p.Summaries {
		if s.From <= i && i < s.To {
			return n
		}
	}
	return -1
}

// summarised is what the window tells of summary n. It is data about the past, and
// says so: a model takes a text in its window for an order. Of those that are no
// longer told, neighbours share a line.
func (p Parts) summarised(n int) string {
	first, last, all := n, n, p.Summaries
	told := len(all) - shownSummaries // from here on
	if n < told {
		if n > 0 && all[n-1].To == all[n].From {
			return ""
		}
		for last+1 < told && all[last].To == all[last+1].From {
			last++
		}
	}
	values := Values{"First": p.Turns[all[first].From].ID, "Last": p.Turns[min(all[last].To, len(p.Turns))-1].ID, "Text": "", "Fence": ""}
	if n >= told {
		values["Text"], values["Fence"] = all[n].Text, Fence(all[n].Text)
	}
	return Neutral(Text("summary", values))
}

// Fence is a line of backticks that does not stand in text: nothing in text can
// end what is fenced with it.
func Fence(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// Summarise is the request for a summary of s: the task, and the steps as data. It
// fits the window, whatever the steps hold.
func (b Budget) Summarise(p Parts, s Span) []Message {
	msgs := b.asked(p, s, maxStep)
	for limit := maxStep / 2; b.cost(msgs) > b.Usable() && limit >= minStep; limit /= 2 {
		msgs = b.asked(p, s, limit)
	}
	for cut := 40; b.cost(msgs) > b.Usable() && cut > 0; cut-- { // each takes a quarter
		n := utf8.RuneCountInString(msgs[1].Text)
		msgs[1].Text = Clip(msgs[1].Text, n*3/4, n*3/8, n*3/8, "")
	}
	return msgs
}

// asked is Summarise with at most limit characters of each text of a step.
func (b Budget) asked(p Parts, s Span, limit int) []Message {
	var steps strings.Builder
	for _, t := range p.Turns[s.From:s.To] {
		steps.WriteString(t.step(limit))
	}
	text := strings.TrimRight(steps.String(), "\n")
	return []Message{
		{Role: RoleSystem, Text: Text("compact", nil)},
		{Role: RoleUser, Text: Neutral(Text("compact_ask", Values{
			"Task":  Clip(p.Task, maxStep, maxStep/2, maxStep/4, ""),
			"First": p.Turns[s.From].ID, "Last": p.Turns[s.To-1].ID,
			"Steps": text, "Fence": Fence(text),
			"Words": commas(b.summaryChars() / 8), // six characters a word, and room for those who do not count
		}))},
	}
}

// Full is how full the usable window is with msgs, in percent, as b estimates it.
func (b Budget) Full(msgs []Message) int { return 100 * b.cost(msgs) / b.Usable() }

// step tells a turn with at most limit characters of each of its texts.
func (t Turn) step(limit int) string {
	cut := func(s string) string { return strings.TrimRight(Clip(s, limit, limit/2, limit/3, ""), "\n") }
	var b strings.Builder
	if t.Call.Cmd == "" {
		b.WriteString(t.ID + " said: " + cut(t.Said) + "\n")
		return b.String()
	}
	b.WriteString(t.ID + " $ " + cut(t.Call.Cmd) + "\n")
	if t.Call.Stdin != "" {
		b.WriteString("with this text:\n" + cut(t.Call.Stdin) + "\n")
	}
	if t.Status != 0 {
		b.WriteString("it failed:\n")
	}
	if out := cut(t.Output); out != "" {
		b.WriteString(out + "\n")
	}
	return b.String()
}

// Digest is the text of a summary in a model's reply, at most a sixteenth of the
// window, or "" if there is none: the reply is empty or hardly a word, or it is a
// call. Marks of headings are taken off: under a heading a model reads orders.
func (b Budget) Digest(r Reply) string {
	if len(r.Calls) > 0 {
		return ""
	}
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(r.Text, "\uFFFD")) {
		line = strings.TrimSpace(strings.Map(printing, line))
		if line = strings.TrimLeft(line, "# "); line != "" {
			lines = append(lines, line)
		}
	}
	text := strings.Join(lines, "\n")
	if utf8.RuneCountInString(text) < minSummary {
		return ""
	}
	return sentences(text, b.summaryChars())
}

// printing drops what is not text.
func printing(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

// sentences is s, or its whole sentences within limit characters.
func sentences(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	s = s[:runeIndex(s, limit-1)]
	end := max(strings.LastIndex(s, ". ")+1, strings.LastIndexByte(s, '\n'))
	if end < len(s)/2 {
		end = len(s)
	}
	return strings.TrimSpace(s[:end]) + "…"
}
