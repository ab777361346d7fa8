package window

import "strings"

// A Turn is one step of the past: what the model called, what came back, and
// the line that asked for the next step. A turn in which the model said
// something that is no call has Said instead of a Call, and a turn of the
// person has User and nothing else.
type Turn struct {
	ID     string // for mem recall, for example "obs_3"
	Call   Call
	Said   string // what the model wrote instead of a call
	User   string // what the person has to say in the middle of the task
	Output string // whole, as the log keeps it
	Status int    // 0 ok; see package act
	Next   string // the closing line, fixed when the turn was made
	Recall bool   // Output is what the model asked to see again: it is not folded again
	// Thought is what the model thought before it, if that must go back (Message).
	Thought string
	Pin     bool // the model wants it to stay: the first eight do
}

// Parts is everything that could be shown, before it is cut to size.
type Parts struct {
	System string // framing and catalogues, the same all session
	Task   string
	Turns  []Turn // oldest first
	Folds  Folds  // how much of the past is out of sight

	Summaries []Summary // in the order of their spans; no turn is in two
}

// Folds counts the oldest turns that are not shown as they were. The numbers
// only grow, and each growth is an event of the log, so that every window can
// be computed again.
type Folds struct {
	Folded  int `json:"folded"`  // turns, from the oldest, whose observation is a tombstone
	Dropped int `json:"dropped"` // turns, from the oldest, that are left out altogether
	// Short and Forced grow only where the newest turns alone are more than the
	// window holds: turns, from the oldest, whose observation keeps its ends alone,
	// and that are left out even if they are new or pinned.
	Short  int `json:"short,omitempty"`
	Forced int `json:"forced,omitempty"`
}

// Messages lays p out within b, whatever p holds. As long as p.Folds stays the same,
// each window begins with the one before it: that is what keeps the prompt cache
// warm. Where p.Folds, which Next says, are not enough, it folds on, and only words
// that are never folded can be too much; Fits tells that beforehand.
func (b Budget) Messages(p Parts) []Message {
	w := b.ledger(p)
	w.fit()
	return w.messages()
}

// layout is the window of p with its folds as they are.
func (b Budget) layout(p Parts) []Message { return b.ledger(p).messages() }

// head is what every window begins with.
func (b Budget) head(p Parts) []Message {
	return append(make([]Message, 0, 2+2*len(p.Turns)),
		Message{Role: RoleSystem, Text: Neutral(valid(p.System))},
		Message{Role: RoleUser, Text: Neutral(valid(p.Task))})
}

// aside is the summary that begins at turn i, if one does and is shown.
func (p Parts) aside(i int) string {
	n := p.summary(i)
	if n < 0 || p.Summaries[n].From != i || p.Summaries[n].To <= p.Folds.Forced {
		return ""
	}
	text := p.summarised(n)
	if text == "" { // the line of its neighbour tells it
		return ""
	}
	return "\n\n" + text
}

// turn is what the window shows of turn i.
func (b Budget) turn(p Parts, i int) []Message {
	t := p.Turns[i]
	switch {
	case !p.shows(i):
		return nil
	case t.User != "": // a person's words stay, whatever is folded around them
		return []Message{{Role: RoleUser, Text: Neutral(Text("user", Values{"Text": valid(t.User)})), ID: t.ID}}
	}
	return []Message{t.said(), {Role: RoleTool, Text: b.shown(p, i), ID: t.ID}}
}

// valid is s without bytes that are no text.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// said is the model's own message. A call is never shortened: a model copies
// what it sees itself doing.
func (t Turn) said() Message {
	if t.Call.Cmd == "" {
		return Message{Role: RoleAssistant, Text: Clip(t.Said, 400, 200, 100, ""), ID: t.ID, Thought: t.Thought}
	}
	return Message{Role: RoleAssistant, Call: &Call{valid(t.Call.Cmd), valid(t.Call.Stdin)}, ID: t.ID, Thought: t.Thought}
}

// Observe is what the model is told of a turn: the output, clipped, and the
// line that asks for the next step, with the markers of chat templates broken.
func (b Budget) Observe(t Turn) string {
	text := strings.TrimRight(b.clipped(t), "\n")
	if text != "" && t.Next != "" {
		text += "\n"
	}
	return Neutral(text + valid(t.Next))
}

// clipped is the output of t, cut to b.Elide characters, and to fewer where it is so
// dense, or the window so small, that these would fill more than a quarter of it. What
// is measured by does not move while a session goes on: nothing shown changes later.
func (b Budget) clipped(t Turn) string {
	most := b.Usable() * int(10*Default.Bytes) / 10 / 4
	text := b.observed(t)
	for w := Weight(text); w > most && b.Elide > shortEnd; w = Weight(text) {
		part := min(float64(most)/float64(w), 0.9)
		b.Elide, b.Head, b.Tail = share(b.Elide, part), share(b.Head, part), share(b.Tail, part)
		text = b.observed(t)
	}
	return text
}
