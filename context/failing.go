package window

import "strings"

// What a model needs of a long output is the line that says what failed, and it
// stands anywhere: a compiler prints its first error at the top, a test runner
// in the middle, a traceback at its end. So each line has a weight, and the
// heaviest are shown first. The weights are not of one tool: they are of the
// ways in which programs speak of a failure.

// A sign is a way of speaking of a failure.
type sign struct {
	weight int
	after  int      // lines behind it that explain it
	before int      // lines in front of it that do
	words  []string // one of them is in the line
}

// maxWeight is the heaviest that a line can be.
const maxWeight = 9

// strong is the weight from which on a line says that something failed. What
// is below it belongs to such a line or may do.
const strong = 6

// signs are looked for in this order; the first that fits counts.
var signs = []sign{
	// The program ended in a way that it did not plan. What follows is where.
	{9, 4, 0, []string{"panic: ", "fatal error: ", "panicked at", "DATA RACE", "Sanitizer: ", "Exception in thread", "Uncaught", "Unhandled", "uncaughtException", "Caused by: "}},
	{9, 1, 2, []string{"Segmentation fault", "SIGSEGV", "SIGABRT", "core dumped", "Assertion `", "ssertion failed", "assertion `", "stack overflow", "ut of memory", "Killed"}},
	// A compiler's or checker's error with its place, and the source it shows.
	{8, 3, 0, []string{": error: ", ": error:", "error[", " error TS", "] error ", "(error)", "- error"}},
	{8, 2, 0, []string{"undefined reference", "multiple definition", "nresolved external", "ld returned", "cannot find -l"}},
	// The verdict on one test.
	{8, 3, 0, []string{"--- FAIL", "not ok ", "***Failed", "***Exception", "***Timeout", "<<< FAILURE!", "<<< ERROR!", "Failure/Error", "Failed test", "AssertionError", "AssertionFailed"}},
	{7, 2, 0, []string{"FAILED", "FAILURE", "FAIL:", "FAIL\t", "FAIL ", "ERROR", "ERROR:", "✕", "✗", "✘", "✖", "×", "● ", "CONFLICT"}},
	// A tool says that it cannot go on.
	{8, 2, 0, []string{"fatal: ", "Fatal ", "FATAL", "*** [", "npm ERR!", "Error at ", "E: "}},
	{7, 1, 1, []string{"No such file", "not found", "ermission denied", "annot ", "can't ", "ould not ", "OULD NOT", "nable to ", "refused", "timed out", "not defined", "no member", "UNIQUE constraint", "nexpected ", "nexpectedly"}},
	{7, 1, 0, []string{"rror: ", "rror:", "error ", "Error ", "xception: "}},
	{6, 1, 0, []string{"failed", "Failed", "nvalid ", "undefined", "Undefined", "ninitiali", "issing ", "nknown ", "enied", "bad ", "not a ", "unbound", "orrupt", " errors", "aborted", "terminated", "goroutines are asleep"}},
	// What was found and what had been expected.
	{6, 1, 0, []string{" want ", ", want", "expected", "Expected", "Received", "but was", " got ", "got:", "actual", "left: ", "right: ", "!= "}},
}

// harmless lines speak of failures that there are none of, or of something
// less.
var harmless = []string{" 0 errors", " 0 failed", " 0 failures", "Failures: 0, Errors: 0", "failed=0", "arning: ", "arning:", "WARN", "note: ", "(style)", "(info)", "(warning)"}

// lesser is the most that a harmless line weighs.
const lesser = 3

// A judged line has its weight, and what it is for the lines around it.
type judged struct {
	weight int
	sign   *sign
}

// judge weighs a line by itself.
func judge(l string) judged {
	t := bare(l)
	if t == "" {
		return judged{}
	}
	j := judged{}
	n, soft, _ := scan(l)
	if n < len(signs) {
		j = judged{signs[n].weight, &signs[n]}
	}
	switch {
	case exception(t):
		j = judged{maxWeight, &thrown}
	case j.weight < strong && placed(t) > 1: // a place and a message: a compiler or linter
		j = judged{strong, &remark}
	case j.weight == 0 && frame(t):
		j.weight = 1 // of no use without the failure that it is a frame of
	}
	if soft && j.weight > lesser && !strings.Contains(l, "rror: ") {
		j.weight = lesser
	}
	return j
}

// thrown and remark are what surrounds an exception's name and a linter's line.
var thrown, remark = sign{after: 1, before: 3}, sign{after: 1}

// bare is a line without the frame that some tools draw at its left.
func bare(l string) string {
	for {
		switch {
		case l != "" && (l[0] == ' ' || l[0] == '\t' || l[0] == '|' || l[0] == '>'):
			l = l[1:]
		case strings.HasPrefix(l, "│"):
			l = l[len("│"):]
		default:
			return l
		}
	}
}

// A word of a sign, or of what is harmless, by its first two bytes: an output of
// 100 kB is looked through in each window that shows it, so each byte counts.
type word struct {
	text string
	sign int // an index of signs, or len(signs) for what is harmless
}

var words, pairs = index()

func index() (words [256][]word, pairs [1 << 16]bool) {
	add := func(text string, sign int) {
		words[text[0]] = append(words[text[0]], word{text, sign})
		pairs[int(text[0])<<8|int(text[1])] = true
	}
	for i, s := range signs {
		for _, w := range s.words {
			add(w, i)
		}
	}
	for _, w := range harmless {
		add(w, len(signs))
	}
	return words, pairs
}

// scan returns the index of the first of signs that is in l, or more than they
// are, whether something harmless is, and where the first word stands.
func scan(l string) (first int, soft bool, at int) {
	first, at = len(signs), -1
	for i := 0; i+1 < len(l); i++ {
		if !pairs[int(l[i])<<8|int(l[i+1])] {
			continue
		}
		for _, w := range words[l[i]] {
			if (w.sign < first || w.sign == len(signs)) && strings.HasPrefix(l[i:], w.text) {
				soft = soft || w.sign == len(signs)
				if w.sign < len(signs) && at < 0 {
					at = i
				}
				first = min(first, w.sign)
			}
		}
	}
	return first, soft, at
}
