package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A spinner is the moving line that says what is waited for, and for how long.
type spinner struct {
	word  string
	since time.Time
	stop  chan struct{}
	gone  sync.WaitGroup
}

// Pictures of the moving line. Where the locale is not UTF-8 they are ASCII.
var (
	braille = strings.Split("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "")
	slashes = strings.Split(`|/-\`, "")
)

// tick is how often the line moves: often enough to look alive, and a hundredth
// of what a terminal over ssh takes.
const tick = 120 * time.Millisecond

// wait says that word is being waited for, on a terminal only.
func (l *live) wait(word string) { l.start(word, time.Now()) }

func (l *live) start(word string, since time.Time) {
	if !l.moving {
		return
	}
	s := &spinner{word: word, since: since, stop: make(chan struct{})}
	l.spin = s
	pictures := slashes
	if l.utf8 {
		pictures = braille
	}
	s.gone.Go(func() {
		t := time.NewTicker(tick)
		defer t.Stop()
		shown := 0
		for n := 0; ; n++ {
			text := l.cut(fmt.Sprintf("    %s %s %.0f s", pictures[n%len(pictures)], s.word, time.Since(s.since).Seconds()), l.width())
			fmt.Fprintf(l.w, "\r%s", l.paint(dim, text))
			shown = max(shown, columns(text))
			select {
			case <-s.stop:
				fmt.Fprint(l.w, wiped(min(shown, l.width())))
				return
			case <-t.C:
			}
		}
	})
}

// wiped takes a line of n columns away without an escape sequence, which
// NO_COLOR forbids too.
func wiped(n int) string { return "\r" + strings.Repeat(" ", n) + "\r" }

// quiet takes the moving line away, and returns what it said; nil if there is none.
func (l *live) quiet() *spinner {
	s := l.spin
	if s != nil {
		close(s.stop)
		s.gone.Wait()
		l.spin = nil
	}
	return s
}
