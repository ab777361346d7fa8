package window

// What a byte of each kind weighs, in tenths of a byte of plain text. Measured with
// the tokenizers of Qwen2.5-Coder and SmolLM2 on source, listings, logs, hashes and
// eight scripts: plain text has 2.9 to 3.9 bytes a token; digits 1.0; hex and base64
// 1.1 to 1.4; rows of signs 1.2 to 1.5; letters beyond ASCII 1.0 to 5.7; a row of
// the same sign 4 to 63. Weighed so, all but noise comes to 2.0 to 4.4.
const (
	plainTenths = 10
	digitTenths = 32
	mixedTenths = 26 // a letter in a word that has digits: hashes, base64, addresses
	signTenths  = 20
	otherTenths = 20 // of a character beyond ASCII
	rowTenths   = 5  // from the third of the same sign on
)

// kinds of bytes
const (
	kindOther = iota
	kindBlank
	kindLetter
	kindDigit
	kindSign
	kindControl
)

// kindOf tells the kind of each byte.
var kindOf = func() (kinds [256]byte) {
	for c := range 128 {
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			kinds[c] = kindBlank
		case c < ' ' || c == 127:
			kinds[c] = kindControl
		case c >= '0' && c <= '9':
			kinds[c] = kindDigit
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			kinds[c] = kindLetter
		default:
			kinds[c] = kindSign
		}
	}
	return kinds
}()

// Weight is the size of s in bytes of plain text: dense text, of which a token holds
// less, weighs more than it has bytes. With it one number of bytes per token serves
// for all that a command may print.
func Weight(s string) int {
	tenths, row := 0, 0
	for i := 0; i < len(s); {
		kind := kindOf[s[i]]
		if kind == kindLetter || kind == kindDigit {
			n, w := wordWeight(s[i:])
			tenths, row, i = tenths+w, 0, i+n
			continue
		}
		if row++; i == 0 || s[i] != s[i-1] {
			row = 1
		}
		switch {
		case kind == kindOther:
			tenths += otherTenths
		case row > 2:
			tenths += rowTenths
		case kind == kindBlank:
			tenths += plainTenths
		case kind == kindControl:
			tenths += digitTenths
		default:
			tenths += signTenths
		}
		i++
	}
	return (tenths + 9) / 10
}

// wordWeight is the length of the word that s begins with, in bytes, and its weight in
// tenths.
func wordWeight(s string) (n, tenths int) {
	digits := 0
	for ; n < len(s); n++ {
		kind := kindOf[s[n]]
		if kind == kindDigit {
			digits++
		} else if kind != kindLetter {
			break
		}
	}
	if digits == 0 {
		return n, n * plainTenths
	}
	return n, digits*digitTenths + (n-digits)*mixedTenths
}

// A mass is what messages come to.
type mass struct {
	bytes int // weighed
	msgs  int
}

func (l mass) plus(m mass) mass  { return mass{l.bytes + m.bytes, l.msgs + m.msgs} }
func (l mass) minus(m mass) mass { return mass{l.bytes - m.bytes, l.msgs - m.msgs} }

// massOf weighs msgs.
func massOf(msgs []Message) mass {
	l := mass{msgs: len(msgs)}
	for _, m := range msgs {
		l.bytes += m.size()
	}
	return l
}

// size is the weight of a message's texts.
func (m Message) size() int {
	n := Weight(m.Text) + Weight(m.Thought)
	if m.Call != nil {
		n += Weight(m.Call.Cmd) + Weight(m.Call.Stdin) + perCall
	}
	return n
}

// Size is the weight of the texts in msgs, in bytes of plain text, without any
// protocol.
func Size(msgs []Message) int { return massOf(msgs).bytes }

// What stands around the texts.
const (
	// perCall is the JSON around a call, in bytes.
	perCall = 40
	// perMessage is what a chat template puts around one message, in tokens:
	// 5 to 9 on the nine templates looked at.
	perMessage = 8
	// perRequest is the tool, in tokens: 43 of its own, and a frame of 77 on Qwen3's
	// template and 184 on Qwen3.5's.
	perRequest = 160
)

// tokens estimates what a server will count for l.
func (b Budget) tokens(l mass) int { return b.Tokens(l.bytes) + perMessage*l.msgs + perRequest }

// cost estimates the tokens of msgs as a server will count them.
func (b Budget) cost(msgs []Message) int { return b.tokens(massOf(msgs)) }
