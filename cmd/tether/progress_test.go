package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressLine: the bar is never wider than the terminal, says in numbers what it
// shows, and leaves out the least important first.
func TestProgressLine(t *testing.T) {
	p := newProgress(&bytes.Buffer{}, func(string) string { return "" }, false)
	now := time.Unix(0, 0)
	p.now = func() time.Time { return now }
	p.start(500, 100, 20)
	p.begin()
	now = now.Add(time.Minute)
	p.end(true, "a")
	p.end(false, "b")
	p.running = 4
	for width, want := range map[int]string{
		200: "[#########-------------------------------] 122/500  101 done  21 not  4 running  1m0s, about 3h9m0s left",
		80:  "[###-------------] 122/500  101 done  21 not  4 running  1m0s, about 3h9m0s left",
		40:  "[##----------] 122/500  101 done  21 not",
		20:  "[##--------] 122/500",
		8:   "122/500",
		3:   "122",
		0:   "",
	} {
		got := p.line(width)
		if got != want {
			t.Errorf("in %d columns: %q, want %q", width, got, want)
		}
	}
	for width := range 300 {
		if got := p.line(width); len(got) > width {
			t.Errorf("in %d columns it has %d: %q", width, len(got), got)
		}
	}
}

// TestGauge: a bar is full only when everything has ended.
func TestGauge(t *testing.T) {
	for _, c := range []struct {
		have, all, n int
		want         string
	}{{0, 0, 4, "[####]"}, {0, 9, 4, "[----]"}, {8, 9, 4, "[###-]"}, {9, 9, 4, "[####]"}, {1, 1000, 3, "[---]"}} {
		if got := gauge(c.have, c.all, c.n); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.have, c.all, got, c.want)
		}
	}
}

// TestProgressPlain: off a terminal there is one line a task and nothing else; what all
// tasks say is said once.
func TestProgressPlain(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, func(string) string { return "xterm" }, false)
	p.start(3, 1, 0)
	for _, name := range []string{"b", "c"} {
		p.begin()
		if _, err := p.Write([]byte("tether: WARNING: x\n")); err != nil {
			t.Fatal(err)
		}
		p.end(name == "b", name+": ended")
	}
	p.close()
	if got, want := out.String(), "tether: WARNING: x\ntether: 2/3 b: ended\ntether: 3/3 c: ended\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProgressTerminal: on a terminal lines stand above the bar, the bar moves while
// nothing ends, and nothing of it is left in the end. There is no escape byte.
func TestProgressTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, func(string) string { return "" }, false)
		p.tty = true
		p.width = func() int { return 70 }
		p.start(2, 0, 0)
		p.begin()
		time.Sleep(3500 * time.Millisecond) // of the bubble's clock
		synctest.Wait()
		p.mu.Lock()
		if s := barScreen(out.String()); !strings.HasSuffix(s, "1 running  3s") {
			t.Errorf("after 3 s: %q", s)
		}
		p.mu.Unlock()
		p.end(true, "a: done")
		p.begin()
		p.end(false, "b: steps")
		p.close()
		if s := barScreen(out.String()); s != "tether: 2/2 b: steps\n" {
			t.Errorf("in the end: %q", s)
		}
		if strings.ContainsAny(out.String(), "\x1b\x07") {
			t.Errorf("escape bytes: %q", out.String())
		}
	})
}

// barScreen is what a terminal shows after it got text: a carriage return goes to the
// beginning of the line, and what follows replaces what is there.
func barScreen(text string) string {
	var lines []string
	line, at := []rune{}, 0
	for _, r := range text {
		switch {
		case r == '\n':
			lines = append(lines, strings.TrimRight(string(line), " ")+"\n")
			line, at = nil, 0
		case r == '\r':
			at = 0
		case at < len(line):
			line[at] = r
			at++
		default:
			line = append(line, r)
			at++
		}
	}
	return strings.Join(lines, "") + strings.TrimRight(string(line), " ")
}

// TestTransferLine: how far a model is, how fast, and how long it takes; narrower
// than a terminal.
func TestTransferLine(t *testing.T) {
	b := &bar{name: "qwen2.5-coder-1.5b", start: time.Now().Add(-100 * time.Second)}
	if got, want := b.line(0, 1117e6), "qwen2.5-coder-1.5b 0 of 1117 MB [................]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got := b.line(400e6, 1117e6)
	if !strings.HasPrefix(got, "qwen2.5-coder-1.5b 400 of 1117 MB [#####...........] 4 MB/s, 2m") || !strings.Contains(got, "s left") {
		t.Errorf("%q", got)
	}
	if n := columns(b.line(1117e6, 1117e6)); n >= 80 {
		t.Errorf("%d columns", n)
	}
}
