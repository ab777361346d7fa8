package window

import "slices"

// Seen is a request, and what its server counted. A window that goes on from it is
// known up to there, and only what is new has to be estimated.
type Seen struct {
	Folds     Folds `json:"folds"`
	Summaries int   `json:"summaries,omitempty"`
	Turns     int   `json:"turns"`
	Tokens    int   `json:"tokens"` // as counted
	Cost      int   `json:"cost"`   // as estimated from the text alone
	Least     int   `json:"least"`  // the fewest that any tokenizer makes of it
}

// goesOn says whether p begins with what was seen.
func (s Seen) goesOn(p Parts) bool {
	return s.Tokens > 0 && s.Folds == p.Folds && s.Summaries == len(p.Summaries) && s.Turns <= len(p.Turns)
}

// Slack of the comparison, in tokens.
const (
	leastLeft  = 900 // of a prompt that was read, for it to be one that was cut: an older Ollama left half of 2,048
	leastCut   = 400 // missing of one that is compared with the fewest tokens that it may have
	leastShort = 16  // missing of one that goes on from another: its beginning is known
)

// Cut says whether a server that counted msgs, the window of p, as so many tokens has
// read only a part of them: some servers leave out the oldest messages, the task first,
// and answer as if nothing were amiss. It is so if there are fewer than any tokenizer
// makes of them. Where the window goes on from the one before, what that came to is
// known, unless the model thinks or there is a word of the person in between: templates
// leave out what was thought before. A server that counts only what it had not cached is
// told from one that cuts: what it counts is about as much as is new. now is for b.Seen;
// of a count that is not of the whole request it has no tokens.
func (b Budget) Cut(p Parts, msgs []Message, tokens int) (cut bool, now Seen) {
	now = Seen{p.Folds, len(p.Summaries), len(p.Turns), tokens, b.cost(msgs), leastOf(msgs)}
	before := b.Seen
	missing := now.Least - tokens - leastCut
	if before.goesOn(p) && !p.rethought(before.Turns) {
		missing = max(missing, before.Tokens+now.Least-before.Least-tokens-leastShort)
		if tokens < before.Tokens && tokens < 2*(now.Cost-before.Cost) {
			now.Tokens = 0
			return false, now
		}
		if now.Turns > before.Turns { // whatever a turn holds, it has more than none
			missing = max(missing, before.Tokens+1-tokens)
		}
	}
	if missing > 0 {
		now.Tokens = 0
	}
	return missing > 0 && tokens >= leastLeft, now
}

// rethought says whether a template may show less of what the model thought than
// before turn n: it thinks, or a person has said something since.
func (p Parts) rethought(n int) bool {
	return slices.ContainsFunc(p.Turns, func(t Turn) bool { return t.Thought != "" }) ||
		slices.ContainsFunc(p.Turns[n:], func(t Turn) bool { return t.User != "" })
}

// Most bytes of a token, in tenths of a byte of its sort: six of plain text, three
// digits, twelve of characters beyond ASCII, sixty of a row of the same sign. No
// tokenizer that was measured comes near.
const (
	leastPlain = 10
	leastDigit = 20
	leastOther = 5
	leastRow   = 1
	leastToken = 60
)

// leastOf is the fewest tokens that any tokenizer makes of the texts in msgs.
func leastOf(msgs []Message) int {
	n := 0
	for _, m := range msgs {
		if n += least(m.Text); m.Call != nil {
			n += least(m.Call.Cmd) + least(m.Call.Stdin)
		}
	}
	return n / leastToken
}

func least(s string) int {
	n := 0
	for i := range len(s) {
		switch kind := kindOf[s[i]]; {
		case i > 1 && s[i] == s[i-1] && s[i] == s[i-2]:
			n += leastRow
		case kind == kindOther:
			n += leastOther
		case kind == kindDigit:
			n += leastDigit
		default:
			n += leastPlain
		}
	}
	return n
}
