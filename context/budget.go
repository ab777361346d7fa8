package window

// A Mode says when older turns are folded.
type Mode string

// The three ways of folding. Batch is the default: between folds the window
// only grows, and the price of the lost cache is paid once per many turns
// (modelled at 1.3 times the prefill of never folding, against 2.5 to 8.9
// times for EveryTurn).
const (
	Batch     Mode = "batch"      // when the window is Fold full, down to Low
	EveryTurn Mode = "every-turn" // all but the newest Keep, always
	Off       Mode = "off"        // never; what does not fit is dropped
)

// A Budget says how much of the past a model is shown.
type Budget struct {
	Window  int     // tokens that the server really gives
	Reserve int     // tokens of it kept free for the reply
	Bytes   float64 // bytes per token, as measured on this model
	Keep    int     // K: newest turns that are never folded
	Mode    Mode
	Fold    float64 // share of the usable window at which folding starts
	Low     float64 // share of it down to which a batch folds
	Elide   int     // characters above which an observation loses its middle
	Head    int     // characters kept of its beginning
	Tail    int     // characters kept of its end
	Seen    Seen    `json:"seen,omitzero"` // the newest request that its server has counted
}

// Default is the budget that a session starts with. These are the only
// places where the numbers stand; tether.toml prints them.
var Default = Budget{
	// 8k is what a laptop prefills in a bearable time and what servers
	// allocate without being asked twice.
	Window: 8192,
	// One reply writes one small file: 2,048 tokens are about 6,000 characters.
	Reserve: 2048,
	// Code and JSON measure 3 to 4 on the Qwen tokenizer; the low end errs
	// towards folding early. Corrected after every reply.
	Bytes: 3.2,
	// The call that failed and the one before it explain each other.
	Keep: 2,
	Mode: Batch,
	// Folding at 75 % down to 45 % rewrites the prefix about once in ten turns.
	Fold: 0.75,
	Low:  0.45,
	// 2,400 characters are about 600 tokens: the cap at which ingestion costs
	// 0.69 times the prefill of an uncapped history.
	Elide: 2400,
	Head:  900,
	Tail:  900,
}

// ReserveOf is the part of a window of so many tokens that is kept free for the
// reply where reserve is wanted: never more than a third, or nothing of the past
// would fit into a small window.
func ReserveOf(window, reserve int) int { return min(reserve, window/3) }

// Usable is the number of tokens that a prompt may fill.
func (b Budget) Usable() int { return max(b.Window-ReserveOf(b.Window, b.Reserve), 1) }

// Tokens estimates the tokens of n bytes of plain text; Weight gives those of any.
func (b Budget) Tokens(n int) int {
	per := b.Bytes
	if per <= 0 {
		per = Default.Bytes
	}
	return int(float64(n)/per) + 1
}

// Bounds of the bytes per token, in weighed bytes. Text of any kind has more than
// the least. A count that comes to more than maxSeen is not of the whole prompt: some
// servers count only what they had not cached.
const (
	minBytes = 1.0
	maxBytes = 6.0
	maxSeen  = 9.0
)

// Calibrate corrects the bytes per token after a reply: a request of msgs was
// counted as tokens by its server. A token that holds less than was thought is
// believed at once, since too long a request costs most; one that holds more moves
// the number half way, so that one odd reply does not put off the fold.
func (b *Budget) Calibrate(msgs []Message, tokens int) {
	l := massOf(msgs)
	text := tokens - perMessage*l.msgs - perRequest
	if l.bytes < 400 || text <= 0 {
		return
	}
	seen := float64(l.bytes) / float64(text)
	switch {
	case seen > maxSeen:
	case seen < b.Bytes:
		b.Bytes = max(seen, minBytes)
	default:
		b.Bytes = (b.Bytes + min(seen, maxBytes)) / 2
	}
}

// Narrowed takes the word of a server that its window is limit tokens, and that
// msgs are more. Where they are not, as far as can be told, one of two is wrong: the
// limit, which some servers do not name when they refuse, if this server's tokens were
// counted before; else the bytes per token.
func (b Budget) Narrowed(limit int, msgs []Message) Budget {
	if cost := b.cost(msgs); b.Seen.Tokens > 0 && limit > cost {
		limit = cost * 9 / 10
	}
	b.Window = min(b.Window, limit)
	m := massOf(msgs)
	if text := limit - perMessage*m.msgs - perRequest; text > 0 {
		b.Bytes = min(b.Bytes, max(float64(m.bytes)/float64(text), minBytes))
	}
	return b
}

// Fits says how many tokens the words take that are never folded (the task, and
// what a person says in its middle), and how many they may: half of what the system
// prompt leaves, so that the other half is for the work.
func (b Budget) Fits(system string, words ...string) (need, have int) {
	n := 0
	for _, w := range words {
		n += Weight(w)
	}
	return b.Tokens(n), max(b.Usable()-b.tokens(mass{Weight(system), 2}), 0) / 2
}
