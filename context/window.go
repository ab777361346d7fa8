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
	Pin    bool   // the model wants it to stay: the first eight do
}

// Parts is everything that could be shown, before it is cut to size.
type Parts struct {
	System string // framing and catalogues, the same all session
	Task   string
	Turns  []Turn // oldest first
	Folds  Folds  // how much of the past is out of sight

	Summaries []Summary // in the order of their spans; no turn is in two
}

// Folds counts the oldest turns that are not shown as they were. Both numbers
// only grow, and each growth is an event of the log, so that every window can
// be computed again.
type Folds struct {
	Folded  int `json:"folded"`  // turns, from the oldest, whose observation is a tombstone
	Dropped int `json:"dropped"` // turns, from the oldest, that are left out altogether
}

// Messages lays p out within b. As long as p.Folds stays the same, each window
// begins with the one before it: that is what keeps the prompt cache warm.
func (b Budget) Messages(p Parts) []Message {
	msgs := b.layout(p)
	// The newest turns are never folded, but two huge ones may still be more
	// than a small window holds. Then their observations are clipped harder;
	// the window is never left to the server to cut.
	for clip := b; b.cost(msgs) > b.Usable() && clip.Elide > 200; msgs = clip.layout(p) {
		clip.Elide, clip.Head, clip.Tail = clip.Elide/2, clip.Head/2, clip.Tail/2
	}
	return msgs
}

func (b Budget) layout(p Parts) []Message {
	msgs := make([]Message, 0, 2+2*len(p.Turns))
	msgs = append(msgs,
		Message{Role: RoleSystem, Text: Neutral(p.System)},
		Message{Role: RoleUser, Text: Neutral(p.Task)})
	gone := leftOut(p)
	for i, t := range p.Turns {
		if n := p.summary(i); n >= 0 {
			if i == p.Summaries[n].From { // no message of its own: every template knows the one before
				msgs[len(msgs)-1].Text += "\n\n" + p.summarised(n)
			}
			continue
		}
		if t.User != "" { // a person's words stay, whatever is folded around them
			msgs = append(msgs, Message{Role: RoleUser, Text: Neutral(Text("user", Values{"Text": t.User})), ID: t.ID})
			continue
		}
		if i < p.Folds.Dropped && !p.pinned(i) {
			continue
		}
		text := b.shown(t, i < p.Folds.Folded)
		if gone > 0 {
			text, gone = dropped(gone)+"\n"+text, 0
		}
		msgs = append(msgs, t.said(), Message{Role: RoleTool, Text: text, ID: t.ID})
	}
	return msgs
}

// said is the model's own message. A call is never shortened: a model copies
// what it sees itself doing.
func (t Turn) said() Message {
	if t.Call.Cmd == "" {
		return Message{Role: RoleAssistant, Text: Clip(t.Said, 400, 200, 100, ""), ID: t.ID}
	}
	c := t.Call
	return Message{Role: RoleAssistant, Call: &c, ID: t.ID}
}

// Observe is what the model is told of a turn: the output, clipped, and the
// line that asks for the next step, with the markers of chat templates broken.
func (b Budget) Observe(t Turn) string {
	text := strings.TrimRight(Clip(t.Output, b.Elide, b.Head, b.Tail, t.ID), "\n")
	if text != "" && t.Next != "" {
		text += "\n"
	}
	return Neutral(text + t.Next)
}

// cost estimates the tokens of msgs as a server will count them.
func (b Budget) cost(msgs []Message) int {
	n := 0
	for _, m := range msgs {
		n += perMessage + b.Tokens(m.size())
	}
	return n
}

// size is the number of bytes of a message's texts.
func (m Message) size() int {
	n := len(m.Text)
	if m.Call != nil {
		n += len(m.Call.Cmd) + len(m.Call.Stdin) + 40 // the JSON around them
	}
	return n
}

// Size is the number of bytes of the texts in msgs, without any protocol.
func Size(msgs []Message) int {
	n := 0
	for _, m := range msgs {
		n += m.size()
	}
	return n
}
