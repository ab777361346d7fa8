package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A progress shows how far many tasks have come: a bar on a terminal, one line a
// task elsewhere. It has no colour and no escape sequence, and what the bar shows
// it also says in numbers. It is safe for concurrent use.
type progress struct {
	w     io.Writer
	tty   bool
	quiet bool // no line a task, and no bar
	width func() int
	now   func() time.Time

	mu      sync.Mutex
	total   int
	done    int // tasks that ended well
	failed  int
	running int
	before  int // of the ended ones: by an earlier batch
	began   time.Time
	shown   int // columns of the bar that stands there
	said    map[string]bool

	stop chan struct{}
	gone sync.WaitGroup
}

func newProgress(w io.Writer, env func(string) string, quiet bool) *progress {
	p := &progress{w: w, quiet: quiet, now: time.Now, said: map[string]bool{}, stop: make(chan struct{})}
	p.tty = isTerminal(w) && env("TERM") != "dumb"
	p.width = func() int {
		if f, ok := w.(*os.File); ok {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				return width
			}
		}
		return 80
	}
	return p
}

// start begins to count: of total tasks, done ended well before and failed did not.
func (p *progress) start(total, done, failed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.done, p.failed, p.before, p.began = total, done, failed, done+failed, p.now()
	if !p.tty || p.quiet {
		return
	}
	p.gone.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.mu.Lock()
				p.draw()
				p.mu.Unlock()
			}
		}
	})
}

// begin counts a task that is being worked on.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
	p.draw()
}

// leave counts a task that was worked on and has no result.
func (p *progress) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.draw()
}

// end counts a task that has a result, and says line about it. Where the bar shows
// that it went well no line does.
func (p *progress) end(ok bool, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	if p.failed++; ok {
		p.done, p.failed = p.done+1, p.failed-1
	}
	if !p.quiet && (!p.tty || !ok) {
		p.print(fmt.Sprintf("tether: %d/%d %s\n", p.done+p.failed, p.total, line))
	}
	p.draw()
}

// Write prints whole lines above the bar, each once: a warning that every task
// gives is one.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := string(text); !p.said[s] {
		p.said[s] = true
		p.print(s)
		p.draw()
	}
	return len(text), nil
}

// close takes the bar away.
func (p *progress) close() {
	close(p.stop)
	p.gone.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

func (p *progress) print(s string) {
	p.wipe()
	fmt.Fprint(p.w, s)
}

func (p *progress) wipe() {
	if p.shown > 0 {
		fmt.Fprint(p.w, wiped(p.shown))
		p.shown = 0
	}
}

// draw draws the bar anew.
func (p *progress) draw() {
	if !p.tty || p.quiet || p.began.IsZero() {
		return
	}
	line := p.line(p.width() - 1) // a full line would make the terminal go to the next
	pad := max(p.shown-len(line), 0)
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", pad))
	if pad > 0 {
		fmt.Fprintf(p.w, "\r%s", line)
	}
	p.shown = len(line)
}

// line is the bar in at most width columns; what has no room is left out, the
// least important first.
func (p *progress) line(width int) string {
	ended := p.done + p.failed
	count := fmt.Sprintf("%d/%d", ended, p.total)
	parts := []string{fmt.Sprintf("%d done", p.done), fmt.Sprintf("%d not", p.failed), fmt.Sprintf("%d running", p.running), p.clock()}
	for n := len(parts); n >= 0; n-- {
		text := strings.Join(append([]string{count}, parts[:n]...), "  ")
		switch room := width - len(text) - 3; {
		case room >= 10 || n == 0 && room >= 3:
			return gauge(ended, p.total, min(room, 40)) + " " + text
		case n == 0:
			return text[:min(max(width, 0), len(text))]
		}
	}
	return ""
}

// gauge is a bar of n columns between its ends, filled as far as have of all goes.
// It is full only when everything has ended.
func gauge(have, all, n int) string {
	full := n
	if have < all {
		full = have * n / max(all, 1)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", n-full) + "]"
}

// clock is the time since the start, and what is left if the rest goes on so.
func (p *progress) clock() string {
	took := p.now().Sub(p.began)
	text := took.Round(time.Second).String()
	if ended := p.done + p.failed - p.before; ended > 0 && p.done+p.failed < p.total {
		left := took / time.Duration(ended) * time.Duration(p.total-p.done-p.failed)
		text += ", about " + left.Round(time.Second).String() + " left"
	}
	return text
}
