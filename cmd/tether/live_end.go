package main

import (
	"cmp"
	"fmt"
	"strings"

	"tether/harness"
)

// observed prints what a command said, without what a person has seen already: the
// text that was just written into the file, or why a check failed.
func (l *live) observed(e harness.Event) {
	gate, stdin := l.judged, l.stdin
	l.judged, l.stdin = "", ""
	if gate == "failed" || gate == "passed" && e.Status == 0 {
		return // of the model's done: the lines of the checks stand above
	}
	text := strings.TrimSuffix(e.Output, e.Next) // a person is not asked for the next command
	if rest, ok := strings.CutPrefix(text, stdin); ok && stdin != "" && strings.TrimSpace(rest) != "" {
		text = rest
	}
	l.block(text, "      ", dim, 8, e.Status != 0)
	if e.Seconds >= 1 { // less is not worth a line
		l.line(span{code: dim, text: fmt.Sprintf("      (%.1f s)", e.Seconds)})
	}
}

// tellsFailure says whether a line of what a command said tells that it failed: the line
// that says so itself, or else the last one. Its colour leads the eye to it; the
// words are there without.
func tellsFailure(lines []string, i int) bool {
	for n, line := range lines {
		if strings.HasPrefix(line, "error: ") {
			return n == i
		}
	}
	return i == len(lines)-1
}

// ended gives colours to the last lines: how the run ended, and how each check did.
func (l *live) ended(said string, stop harness.Stop) string {
	if !l.color {
		return said
	}
	lines := strings.Split(said, "\n")
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, "tether: ")
		word, _, _ := strings.Cut(rest, ":")
		code := ""
		switch {
		case !ok:
		case i == 0 && stop == harness.Done, strings.HasPrefix(rest, "gate passed:"):
			code = green
		case i == 0 && (stop == harness.Waiting || cancelled(stop)):
			code = bold
		case i == 0, strings.HasPrefix(rest, "gate failed"), strings.HasPrefix(rest, "gate no judge"):
			code = red
		}
		lines[i] = strings.Replace(line, word, l.paint(code, word), 1)
	}
	return strings.Join(lines, "\n")
}

// cancelled says whether a signal ended the run.
func cancelled(stop harness.Stop) bool {
	return stop == harness.Interrupted || stop == harness.Terminated || stop == harness.Hangup
}

// goOn is the command with which a run that did not come to its end goes on; empty if
// it did, or has not begun. dir is the workspace as it was named.
func goOn(o harness.Outcome, dir string) string {
	flag, resumable := map[harness.Stop]string{
		harness.Steps: " --max-steps N", harness.Time: " --timeout TIME", harness.Tokens: " --max-tokens N",
		harness.Interrupted: "", harness.Terminated: "", harness.Hangup: "", harness.Unreachable: "",
	}[o.Stop]
	if !resumable || o.Steps == 0 || o.Session == "" {
		return ""
	}
	line := "tether resume " + o.Session
	if dir = cmp.Or(dir, "."); dir != "." {
		line += " -C " + shellWord(dir)
	}
	return line + flag
}

// shellWord is s as a shell reads it as one word.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%:,", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// counted is n of what word names.
func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
