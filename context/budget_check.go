package window

// Seen is a request and what its server counted, to compare the next one with.
type Seen struct {
	Folds     Folds
	Summaries int
	Tokens    int // 0: the server did not count
	Cost      int // what it was estimated at
}

// Slack of the comparison, in tokens: below these a count proves nothing.
const (
	leastCut  = 1000 // missing of a prompt that was cut
	leastLeft = 900  // of it that was read: an older Ollama cut to half of 2,048
)

// Cut says whether a server that counted msgs as so many tokens has read only a part
// of them: some servers leave out the oldest messages, the task first, and answer as
// if nothing were amiss. It is so if a window that goes on from the one before is
// smaller than that, or if the count is less than half of the estimate. A server that
// counts only what it had not cached is told from one that cuts: what it counts is
// about as much as is new. now is for the next comparison.
func (b Budget) Cut(before Seen, p Parts, msgs []Message, tokens int) (cut bool, now Seen) {
	now = Seen{p.Folds, len(p.Summaries), tokens, b.cost(msgs)}
	goesOn := before.Tokens > 0 && before.Folds == now.Folds && before.Summaries == now.Summaries && now.Cost >= before.Cost
	switch {
	case tokens < leastLeft:
		return false, now
	case goesOn && tokens < 2*(now.Cost-before.Cost):
		return false, now
	case goesOn && tokens < before.Tokens:
		return true, now
	}
	return tokens*2 < now.Cost && now.Cost-tokens > leastCut, now
}
