package llm

import "errors"

// A model that has begun to repeat itself does not stop: small ones go on to the
// end of what a reply may hold, which is a minute of somebody's time.
const (
	loopTail = 4000 // bytes looked at: a table or a list is not that regular for that long
	loopUnit = 200  // bytes of what is repeated, 20 times then
	loopStep = 512  // bytes between two looks
)

// errLooping ends a reply that repeats itself.
var errLooping = errors.New("the model repeats itself without an end")

// looping reports whether a text ends in the same again and again.
func looping(text string) bool {
	if len(text) < loopTail {
		return false
	}
	end := text[len(text)-loopTail:]
	// border[i] is how long the longest beginning of end is that ends at i, too.
	border := make([]int, loopTail)
	for i := 1; i < loopTail; i++ {
		n := border[i-1]
		for n > 0 && end[i] != end[n] {
			n = border[n-1]
		}
		if end[i] == end[n] {
			n++
		}
		border[i] = n
	}
	return loopTail-border[loopTail-1] <= loopUnit
}

// grown looks at a text of a reply now and then, and ends the reply when it
// repeats itself.
func (s *sink) grown(text string, more int) {
	if s.unseen += more; s.unseen < loopStep || s.halt == nil {
		return
	}
	if s.unseen = 0; looping(text) {
		s.halt()
	}
}
