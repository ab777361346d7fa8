package llm

import (
	"errors"
	"slices"
)

// A model that has begun to repeat itself does not stop: small ones go on to the
// end of what a reply may hold, which is minutes of somebody's time. A text repeats
// itself when its newest 1,500 or 4,000 bytes are one piece, loopTimes over: the
// pieces of models that did not stop were 14 bytes ("I will begin. ") to 240 long
// (a chain of four commands), and a table or a list is not that regular.
var loopTails = []int{1500, 4000} // bytes

const (
	loopTimes = 6
	loopStep  = 512 // bytes between two looks
)

// errLooping ends a reply that repeats itself.
var errLooping = errors.New("the model repeats itself without an end")

// looping reports whether a text ends in the same again and again.
func looping(text string) bool {
	return slices.ContainsFunc(loopTails, func(n int) bool {
		return len(text) >= n && period(text[len(text)-n:]) <= n/loopTimes
	})
}

// period is the length of the shortest piece that text is a repetition of, the last
// of them perhaps in part (Knuth, Morris and Pratt 1977, the failure function).
func period(text string) int {
	// border[i] is how long the longest beginning of text is that ends at i, too.
	border := make([]int, len(text))
	for i := 1; i < len(text); i++ {
		n := border[i-1]
		for n > 0 && text[i] != text[n] {
			n = border[n-1]
		}
		if text[i] == text[n] {
			n++
		}
		border[i] = n
	}
	return len(text) - border[len(text)-1]
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
