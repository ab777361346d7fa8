package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"tether/harness"
)

// A live view prints the steps of a run as they happen. On a terminal it has
// colour and a line that says what is being waited for; elsewhere it prints
// plain lines and no escape byte. It never writes into the last column, so that
// no terminal wraps, and asks for the width again at each line: a window may be
// made smaller in the middle.
type live struct {
	w      io.Writer
	tty    bool // lines are cut to its width
	moving bool // a line may be taken back
	color  bool
	utf8   bool

	cost   []string // of the reply that is about to be shown, the longest form first
	stdin  string   // of the step that is shown
	judged string   // how the check of this step ended: passed, failed; empty: there was none
	spin   *spinner // nil: nothing is waited for
}

// A look is how a person wants the view: the flags --plain and --color.
type look struct {
	plain bool
	color colorWord // auto (also ""), always, never
}

func newLive(w io.Writer, env func(string) string) *live {
	l := &live{w: w, utf8: speaksUTF8(env)}
	l.tty = isTerminal(w)
	l.moving = l.tty && env("TERM") != "dumb"
	l.color = l.moving && env("NO_COLOR") == ""
	return l
}

// as gives l the look that flags ask for: they count more than the environment.
func (l *live) as(k look) *live {
	if k.plain {
		l.moving, l.color = false, false
	}
	switch k.color {
	case "always":
		l.color = true
	case "never":
		l.color = false
	}
	return l
}

// speaksUTF8 reports whether the terminal shows more than ASCII, as the locale
// has it: the first of these variables that is set counts.
func speaksUTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// isTerminal says whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := bare(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// endless is the width where nothing is cut.
const endless = 1 << 30

// width is how many columns a line may fill now.
func (l *live) width() int {
	if !l.tty {
		return endless
	}
	f, ok := l.w.(*os.File)
	if !ok {
		return endless
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
		return width - 1
	}
	return 79 // a terminal that does not say: 80, as they were
}

// Colours, by their numbers in an escape sequence.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

// paint gives s a colour, where there are colours.
func (l *live) paint(code, s string) string {
	if !l.color || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// A span is a part of a line. One that is whole is left out where it does not
// fit; others are cut.
type span struct {
	code, text string
	whole      bool
}

// line prints spans, one after the other, as far as the terminal is wide.
func (l *live) line(spans ...span) {
	var b strings.Builder
	left := l.width()
	for _, s := range spans {
		text := oneRow(s.text)
		n := columns(text)
		if n > left {
			if s.whole {
				continue
			}
			text = l.cut(text, left)
			n = columns(text)
		}
		left -= n
		b.WriteString(l.paint(s.code, text))
	}
	fmt.Fprintln(l.w, strings.TrimRight(b.String(), " "))
}

// show prints one event.
func (l *live) show(e harness.Event) {
	waited := l.quiet()
	switch e.Type {
	case harness.EventStart:
		facts := ""
		if e.Facts > 0 {
			facts = fmt.Sprintf("  AGENTS.md %d tokens", e.Facts)
		}
		l.line(span{code: dim, text: "model "}, span{text: e.Model}, span{code: dim, text: "  sandbox " + confines(e.Sandbox, e.Network) + facts})
	case harness.EventCompact:
		l.line(span{code: dim, text: fmt.Sprintf("    summarised %s: ", e.Obs)}, span{code: dim, text: e.Output})
	case harness.EventThink:
		l.wait("thinking")
	case harness.EventCache:
		l.cost = costs(e)
	case harness.EventAct:
		l.step(e)
		l.wait("running")
	case harness.EventObservation:
		l.observed(e)
	case harness.EventWarning:
		l.line(span{text: "    "}, span{code: red, text: "! "}, span{text: e.Output})
		if waited != nil { // what was waited for is waited for still
			l.start(waited.word, waited.since)
		}
	case harness.EventGate:
		l.gate(e)
		l.wait("checking")
	}
}

// costs says what a reply has cost, in the forms that it may be cut to.
func costs(e harness.Event) []string {
	seconds := fmt.Sprintf("%.1f s", e.Seconds)
	if e.Prompt+e.Tokens == 0 { // a script, or a server that does not count
		if e.Seconds < 0.05 {
			return nil
		}
		return []string{seconds, ""}
	}
	if !e.CacheTold { // of what is not known there is nothing to say
		return []string{fmt.Sprintf("%s, %d tokens", seconds, e.Prompt+e.Tokens), seconds, ""}
	}
	cached := "nothing cached"
	if e.Cached > 0 && e.Prompt > 0 {
		cached = fmt.Sprintf("%d%% cached", min(e.Cached*100/e.Prompt, 100))
	}
	return []string{
		fmt.Sprintf("%s, %d tokens, %s", seconds, e.Prompt+e.Tokens, cached),
		seconds + ", " + cached, seconds, "",
	}
}

// step prints a call: its number, the line and what it has cost.
func (l *live) step(e harness.Event) {
	first, more, _ := strings.Cut(strings.TrimSpace(e.Cmd), "\n")
	first = "$ " + oneRow(first)
	number := fmt.Sprintf("%3d ", e.N)
	left := l.width() - len(number)
	cost := ""
	for _, c := range l.cost { // the longest that leaves the command half of the line
		if cost = ""; c != "" {
			cost = "  (" + c + ")"
		}
		if left-len(cost) >= min(columns(first), left/2) {
			break
		}
	}
	l.line(span{code: dim, text: number}, span{code: bold, text: l.cut(first, left-len(cost))}, span{code: dim, text: cost, whole: true})
	l.block(more, "      ", bold, 6, false)
	l.block(e.Stdin, "    < ", dim, 6, false)
	l.stdin, l.judged = e.Stdin, ""
}

// gate prints how a check ended, in a word as well as in a colour, and what it said if
// it failed.
func (l *live) gate(e harness.Event) {
	code, word := green, "gate passed"
	switch {
	case e.Status != 0 && len(e.Changed) > 0:
		code, word = red, "gate is no judge, since this was changed: "+list(e.Changed, 4)
	case e.Status != 0:
		code, word = red, fmt.Sprintf("gate failed (status %d)", e.Status)
	case len(e.Changed) > 0:
		code, word = red, "gate passed, and what it is made of was changed: "+list(e.Changed, 4)
	}
	l.line(span{text: "    "}, span{code: code, text: word}, span{text: ": " + e.Cmd}, span{code: dim, text: fmt.Sprintf("  (%.1f s)", e.Seconds), whole: true})
	if l.judged = "passed"; e.Status != 0 {
		l.judged = "failed"
		l.block(e.Output, "      ", dim, 8, false)
	}
}

// block prints n lines of text behind indent: the first ones, and the last ones,
// in which commands say how they ended. The line that says that it failed is red.
func (l *live) block(text, indent, code string, n int, failed bool) {
	text = strings.Trim(text, "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if gone := len(lines) - n; gone > 1 { // the line that says so would take the place of one
		word := l.dots() + fmt.Sprintf(" %d more lines", gone)
		lines = slices.Concat(lines[:n/2], []string{word}, lines[len(lines)-n+n/2:])
	}
	for i, line := range lines {
		if failed && tellsFailure(lines, i) {
			l.line(span{code: red, text: indent + line})
			continue
		}
		l.line(span{code: code, text: indent + line})
	}
}

// dots stand for what was left out.
func (l *live) dots() string {
	if l.tty && !l.utf8 {
		return "..."
	}
	return "…"
}

// cut shortens s to n columns.
func (l *live) cut(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	dots := l.dots()
	if n <= len(dots) {
		return strings.Repeat(" ", max(n, 0))
	}
	return fitting(s, n-columns(dots)) + dots
}

// wrapped breaks the lines of text between words, so that they fit the terminal.
func (l *live) wrapped(text string) string {
	var b strings.Builder
	width := l.width()
	indent := "        " // below what stands behind "tether: "
	if width < 40 {
		indent = "  "
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		at := 0
		for word := range strings.SplitSeq(line, " ") {
			n := columns(word)
			switch {
			case at == 0:
			case at+1+n > width:
				b.WriteString("\n" + indent)
				at = len(indent)
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += n
		}
	}
	return b.String()
}
