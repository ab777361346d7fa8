package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"tether/harness"
)

// A live view prints the steps of a run as they happen. On a terminal it has
// colour and a line that says that the model is thinking; elsewhere it prints
// plain lines and no escape byte.
type live struct {
	w     io.Writer
	tty   bool
	color bool
	width int

	cost string // of the reply that is about to be shown

	stop chan struct{} // ends the thinking line
	gone sync.WaitGroup
}

func newLive(w io.Writer, env func(string) string) *live {
	l := &live{w: w, width: 80}
	if isTerminal(w) && env("TERM") != "dumb" {
		l.tty = true
		l.color = env("NO_COLOR") == ""
		if width, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil && width > 20 {
			l.width = width
		}
	}
	return l
}

// isTerminal says whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Escape sequences, empty without colour.
func (l *live) paint(code, s string) string {
	if !l.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

// show prints one event.
func (l *live) show(e harness.Event) {
	l.quiet()
	switch e.Type {
	case harness.EventStart:
		fmt.Fprintf(l.w, "%s %s  %s\n", l.paint(dim, "model"), printable(e.Model), l.paint(dim, "sandbox "+confines(e.Sandbox, e.Network)))
	case harness.EventThink:
		l.think()
	case harness.EventCache:
		l.cost = fmt.Sprintf("%.1f s, %d tokens, %d cached", e.Seconds, e.Prompt+e.Tokens, e.Cached)
	case harness.EventAct:
		fmt.Fprintf(l.w, "%s %s  %s\n", l.paint(dim, fmt.Sprintf("%3d", e.N)), l.paint(bold, l.fit("$ "+e.Cmd, 30)), l.paint(dim, "("+l.cost+")"))
		l.block(e.Stdin, "    < ", 6)
	case harness.EventObservation:
		l.block(e.Output, "      ", 8)
	case harness.EventWarning:
		fmt.Fprintf(l.w, "    %s %s\n", l.paint(red, "!"), l.fit(e.Output, 6))
	case harness.EventGate:
		word := l.paint(green, "gate passed")
		switch {
		case e.Status != 0 && len(e.Changed) > 0:
			word = l.paint(red, "gate is no judge, since this was changed: "+l.fit(list(e.Changed, 4), 50))
		case e.Status != 0:
			word = l.paint(red, fmt.Sprintf("gate failed (status %d)", e.Status))
		case len(e.Changed) > 0:
			word = l.paint(red, "gate passed, and what it is made of was changed: "+l.fit(list(e.Changed, 4), 50))
		}
		fmt.Fprintf(l.w, "    %s: %s  %s\n", word, l.fit(e.Cmd, 40), l.paint(dim, fmt.Sprintf("(%.1f s)", e.Seconds)))
	}
}

// block prints the first n lines of text, each behind indent.
func (l *live) block(text, indent string, n int) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		return
	}
	for i, line := range lines {
		if i == n {
			fmt.Fprintln(l.w, l.paint(dim, fmt.Sprintf("%s… %d more lines", indent, len(lines)-n)))
			return
		}
		fmt.Fprintln(l.w, l.paint(dim, indent+l.fit(line, len(indent))))
	}
}

// fit cuts s to what is left of a line of which used columns are taken, and
// takes out what could move the cursor.
func (l *live) fit(s string, used int) string {
	s = strings.NewReplacer("\t", " ", "\n", " ").Replace(printable(s))
	if r, n := []rune(s), max(l.width-used, 20); len(r) > n && l.tty {
		return string(r[:n-1]) + "…"
	}
	return s
}

// think shows that the model is at work, on a terminal only.
func (l *live) think() {
	if !l.tty {
		return
	}
	l.stop = make(chan struct{})
	start := time.Now()
	l.gone.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			fmt.Fprintf(l.w, "\r    %s", l.paint(dim, fmt.Sprintf("thinking %.0f s", time.Since(start).Seconds())))
			select {
			case <-l.stop:
				fmt.Fprint(l.w, wiped(30))
				return
			case <-tick.C:
			}
		}
	})
}

// wiped takes a line of n columns away without an escape sequence, which
// NO_COLOR forbids too.
func wiped(n int) string { return "\r" + strings.Repeat(" ", n) + "\r" }

// quiet takes the thinking line away.
func (l *live) quiet() {
	if l.stop != nil {
		close(l.stop)
		l.gone.Wait()
		l.stop = nil
	}
}
