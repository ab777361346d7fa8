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

// perMessage is what a chat template puts around one message, in tokens:
// 5 to 9 on the nine templates looked at.
const perMessage = 8

// Usable is the number of tokens that a prompt may fill.
func (b Budget) Usable() int { return max(b.Window-b.Reserve, 512) }

// Tokens estimates the tokens of n bytes of text.
func (b Budget) Tokens(n int) int {
	per := b.Bytes
	if per <= 0 {
		per = Default.Bytes
	}
	return int(float64(n)/per) + 1
}

// Calibrate corrects the bytes per token after a reply: a request of n bytes
// was counted as tokens by its server. It moves half way to what was seen, so
// that one odd reply does not tip the fold, and stays within 1.5 and 6.
func (b *Budget) Calibrate(n, tokens int) {
	if n < 400 || tokens <= 0 {
		return
	}
	seen := float64(n) / float64(tokens)
	b.Bytes = min(max((b.Bytes+seen)/2, 1.5), 6)
}
