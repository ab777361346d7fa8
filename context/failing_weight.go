package window

import "strings"

// judgeAll gives each line what it says by itself and by the lines beside it.
func judgeAll(all []entry) {
	for i := range all {
		if e := &all[i]; e.key < i { // the same line was there before
			e.judged = all[e.key].judged
		} else {
			e.judged = judge(e.text)
		}
	}
	quoted(all)
	tracebacks(all)
}

// weigh gives each entry its weight in this output.
func weigh(all []entry) []int {
	most := 0
	for i := range all {
		most = max(most, all[i].shape+1)
	}
	weights, same, seen := make([]int, len(all)), make([]int, most), make([]int, most)
	for _, e := range all {
		if !e.mark {
			same[e.shape] += e.lines
		}
	}
	for i := range all {
		e := &all[i]
		w := e.judged.weight
		if w >= strong {
			// What is said a hundred times is no news: a log line with a place
			// looks like a test's complaint, and only its number gives it away.
			w = max(w-worn(same[e.shape])-min(seen[e.shape], 3), 1)
			seen[e.shape]++
		}
		weights[i] = max(weights[i], w)
		if w >= strong && e.judged.sign != nil {
			explain(weights, i, w, e.judged.sign)
		}
	}
	places(all, weights)
	return weights
}

// quoted judges the two forms in which the sentence is known by the line beside
// it: pytest marks all lines of an error with E, and the first says what it is;
// rustc and its like print the place under the sentence, behind an arrow.
func quoted(all []entry) {
	for i := range all {
		l, before := all[i].text, ""
		if i > 0 {
			before = all[i-1].text
		}
		switch {
		case strings.HasPrefix(l, "E  ") && !strings.HasPrefix(before, "E  "):
			all[i].judged = judged{8, &sign{after: 3}}
		case strings.HasPrefix(l, "E  "):
			all[i].judged.weight = min(all[i].judged.weight, lesser)
		case strings.HasPrefix(strings.TrimLeft(l, " "), "--> ") && before != "":
			all[i-1].judged.weight = max(all[i-1].judged.weight, strong)
		}
	}
}

// tracebacks finds the line that ends a Python traceback: the first that is
// indented no further than the headline, whatever the exception is called.
func tracebacks(all []entry) {
	const headline = "Traceback (most recent call last)"
	open := -1 // the indentation of the headline
	for i := range all {
		t := strings.TrimLeft(all[i].text, " |+")
		in := len(all[i].text) - len(t)
		switch {
		case strings.HasPrefix(t, headline) || strings.HasPrefix(t, "Exception Group "+headline):
			open = in
		case open >= 0 && t != "" && in <= open:
			all[i].judged = judged{maxWeight, &thrown}
			open = -1
		}
	}
}

// worn is what a line loses of its weight if its like is there n times.
func worn(n int) int {
	switch {
	case n <= 3:
		return 0
	case n <= 12:
		return 1
	}
	return 3
}

// explain makes the lines around i, which say why, half as heavy as it.
func explain(weights []int, i, w int, s *sign) {
	for k := max(i-s.before, 0); k <= min(i+s.after, len(weights)-1); k++ {
		if k != i {
			weights[k] = max(weights[k], w-4)
		}
	}
}

// places makes heavy the one frame of each stack that is nearest to the failure
// and the project's own: the last one before a Python exception, and the first
// one behind the word of any other.
func places(all []entry, weights []int) {
	const near = 40 // lines: a deep stack of a framework
	last, failed := -near, -near
	for i := range all {
		mine := own(all[i].text)
		switch {
		case weights[i] == maxWeight && !mine:
			if all[i].judged.sign == &thrown && i-last < near && last > failed {
				weights[last] = max(weights[last], strong)
			}
			failed = i
		case mine:
			if i-failed < near && last < failed {
				weights[i] = max(weights[i], strong)
			}
			last = i
		}
	}
}
