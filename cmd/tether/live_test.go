//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A display is what a terminal shows. It understands what the live view may use
// and nothing else: text, \r, \n, and sequences that set a colour. A character in
// the last column or behind it is a fault, because terminals differ in what they
// do there.
type display struct {
	t     *testing.T
	width int
	rows  [][]rune
	at    int
	seen  strings.Builder // whatever was there at any time
}

// colours are the sequences that a view may write.
var colours = regexp.MustCompile(`^\x1b\[(1|2|31|32|0)m`)

func (s *display) write(text string) {
	for text != "" {
		if c := colours.FindString(text); c != "" {
			text = text[len(c):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch {
		case r == '\r':
			s.at = 0
		case r == '\n':
			s.rows = append(s.rows, nil)
		case unicode.IsControl(r):
			s.t.Errorf("%q is written to the terminal, before %q", r, text[:min(len(text), 20)])
		default:
			s.put(r)
		}
	}
}

// put shows r where the cursor is.
func (s *display) put(r rune) {
	w := 1
	switch { // of its own, so that a fault of the view's table shows
	case unicode.Is(unicode.Mn, r), r == '\u200d':
		w = 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Katakana), r >= 0x1f300 && r < 0x1fb00, r >= 0xff01 && r <= 0xff60:
		w = 2
	}
	s.seen.WriteRune(r)
	if s.at < s.width && s.at+w >= s.width {
		s.t.Errorf("at width %d a line reaches the last column: %q", s.width, string(s.rows[len(s.rows)-1]))
	}
	row := &s.rows[len(s.rows)-1]
	for len(*row) < s.at+w {
		*row = append(*row, ' ')
	}
	for i := range w {
		(*row)[s.at+i] = []rune{r, 0}[i]
	}
	s.at += w
}

// text is what is left on the screen, without blanks at the ends of lines.
func (s *display) text() string {
	var b strings.Builder
	for _, row := range s.rows {
		b.WriteString(strings.TrimRight(strings.ReplaceAll(string(row), "\x00", ""), " ") + "\n")
	}
	return b.String()
}

// A pty is a terminal with a run on it.
type pty struct {
	t      *testing.T
	master *os.File
	screen *display
	cmd    *exec.Cmd
	dir    string
	raw    *bytes.Buffer // what comes, if it is wanted
}

// startOn starts tether run with the replies of a script on a terminal of width
// columns.
func startOn(t *testing.T, width int, replies string, env []string, args ...string) *pty {
	t.Helper()
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "ws"), 0o755),
		os.WriteFile(filepath.Join(dir, "s.jsonl"), []byte(replies), 0o600),
		os.WriteFile(filepath.Join(dir, "ws", "old.txt"), []byte("one\ntwo\nthree\n"), 0o600),
		syscall.Mkfifo(filepath.Join(dir, "ws", "begun"), 0o600), syscall.Mkfifo(filepath.Join(dir, "ws", "go"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	p := &pty{t: t, master: master, dir: dir, screen: &display{t: t, width: width, rows: [][]rune{nil}}}
	var n int
	p.control(func(fd int) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	p.resize(width)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(self, append([]string{"run", "-m", "script:" + filepath.Join(dir, "s.jsonl"), "-C", filepath.Join(dir, "ws")}, args...)...)
	p.cmd.Args[0] = "tether" // what TestMain goes by
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm", "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0"}, env...)
	p.cmd.Stdout, p.cmd.Stderr = tty, tty
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// control calls f with the descriptor, and leaves its mode as it is.
func (p *pty) control(f func(fd int)) {
	raw, err := p.master.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) resize(width int) {
	var err error
	p.control(func(fd int) {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.screen.width = width
}

// until reads until the screen has shown text.
func (p *pty) until(text string) {
	p.t.Helper()
	p.read(func() bool { return strings.Contains(p.screen.seen.String(), text) })
	if !strings.Contains(p.screen.seen.String(), text) {
		p.t.Fatalf("%q was not shown:\n%s", text, p.screen.text())
	}
}

// read passes what comes to the screen, until enough or the end.
func (p *pty) read(enough func() bool) {
	p.t.Helper()
	if err := p.master.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	var rest []byte
	buf := make([]byte, 4096)
	for !enough() {
		n, err := p.master.Read(buf)
		rest = append(rest, buf[:n]...)
		if p.raw != nil {
			p.raw.Write(buf[:n])
		}
		n = whole(rest)
		p.screen.write(string(rest[:n]))
		rest = rest[n:]
		if errors.Is(err, syscall.EIO) || err == io.EOF { // hung up: its end
			p.screen.write(string(rest))
			return
		}
		if err != nil {
			p.t.Fatalf("%v\n%s", err, p.screen.text())
		}
	}
}

// whole is the length of the part of b that ends with a character or a sequence
// that is there to its end.
func whole(b []byte) int {
	if i := bytes.LastIndexByte(b, '\x1b'); i >= 0 && bytes.IndexByte(b[i:], 'm') < 0 {
		return i
	}
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// end waits for the end of the run and returns what is on the screen then.
func (p *pty) end(status int) string {
	p.t.Helper()
	p.read(func() bool { return false })
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](p.cmd.Wait()); ok {
		got = exit.ExitCode()
	}
	if got != status {
		p.t.Errorf("exit status %d, want %d\n%s", got, status, p.screen.text())
	}
	return p.screen.text()
}

// session is a run with all that is awkward to show.
const session = `{"cmd":"write new.txt","stdin":"A line that is longer than forty columns, and than eighty columns too, if it is read to its end.\nb\u001b[2Jc\n日本語のとても長い行で、四十桁よりも八十桁よりも長い文字列になっていますから切られます、たぶん。\n👩‍👩‍👧‍👦👍🏽 emoji ☎️ e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\n"}
{"cmd":"sh printf 'a\\rb\\033[1A\\033]0;title\\007 %s\\n' \\\n  one \\\n  two; seq 30; exit 3"}
{"cmd":"sh echo 長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い長い; echo changed > old.txt"}
{"cmd":"done It is\u001b[31m done."}
`

// TestLive: the view fits every width, and leaves nothing behind of its moving
// line and nothing of what was written to act on it.
func TestLive(t *testing.T) {
	for _, width := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			p := startOn(t, width, session, nil, "--verify", "test -f old.txt -a -f new.txt -a -d . # a check that is longer than the line", "Look")
			got := p.end(0)
			for _, gone := range []string{"thinking", "running", "checking", "\u280b"} {
				if strings.Contains(got, gone) {
					t.Errorf("%q is left on the screen:\n%s", gone, got)
				}
			}
			seen := p.screen.seen.String()
			if !strings.Contains(seen, "thinking 0 s") || !strings.Contains(seen, "running 0 s") {
				t.Errorf("the moving line was not there:\n%s", seen)
			}
			for _, want := range []string{
				"  1 $ write new.txt", "    < A line that is longer than", "    < b[2Jc", "    < 日本語の", "👍🏽 emoji",
				"  2 $ sh printf", "        one \\\n", "        two; seq 30; exit 3\n", " more lines\n", "gate passed: test -f",
				"It is[31m done.\n", "(new, +4)", "(+1 -3)\n",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not on the screen:\n%s", want, got)
				}
			}
		})
	}
}

// TestLiveResized: what is printed after a window was made smaller fits it.
func TestLiveResized(t *testing.T) {
	long := strings.Repeat("long ", 50)
	p := startOn(t, 200, `{"cmd":"sh echo . > begun; read x < go; echo `+long+`"}`+"\n"+`{"cmd":"done `+long[:30]+`"}`, nil, "Wait")
	var held [2]*os.File
	for i, name := range []string{"begun", "go"} {
		var err error
		if held[i], err = os.OpenFile(filepath.Join(p.dir, "ws", name), os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil { // both ends: it waits for nobody
			t.Fatal(err)
		}
		defer held[i].Close()
	}
	p.until("running 0 s")
	p.resize(40)
	if err := held[0].SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := held[0].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := held[1].WriteString("x\n"); err != nil {
		t.Fatal(err)
	}
	if got := p.end(0); !strings.Contains(got, "      long long long long long long lo…\n") || strings.Contains(got, "running") {
		t.Errorf("got:\n%s", got)
	}
}

// TestLiveLooks: without colour there is no escape byte, and with --plain or on a
// dumb terminal nothing moves; what is said is the same.
func TestLiveLooks(t *testing.T) {
	for _, c := range []struct {
		name          string
		env, args     []string
		color, moving bool
	}{
		{"as it is", nil, nil, true, true},
		{"NO_COLOR", []string{"NO_COLOR=1"}, nil, false, true},
		{"no color", nil, []string{"--color", "never"}, false, true},
		{"plain", nil, []string{"--plain"}, false, false},
		{"dumb", []string{"TERM=dumb"}, nil, false, false},
		{"asked for", []string{"NO_COLOR=1"}, []string{"--color=always"}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startOn(t, 60, `{"cmd":"done Fine."}`, c.env, append([]string{"--verify", "true", "Look"}, c.args...)...)
			var raw bytes.Buffer
			p.raw = &raw
			got := p.end(0)
			if !strings.Contains(got, "gate passed: true") {
				t.Errorf("got:\n%s", got)
			}
			if color := bytes.IndexByte(raw.Bytes(), '\x1b') >= 0; color != c.color {
				t.Errorf("escape bytes: %v, want %v:\n%q", color, c.color, raw.String())
			}
			if moving := strings.Contains(raw.String(), "thinking"); moving != c.moving {
				t.Errorf("a moving line: %v, want %v:\n%q", moving, c.moving, raw.String())
			}
		})
	}
}

// TestColumns: what is cut to a width fits it, and what fits is not cut.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0}, {"abc", 3}, {"é", 1}, {"e\u0301", 1}, {"日本", 4}, {"한글", 4}, {"ｱ", 2}, {"👍", 2}, {"☎\ufe0f", 3}, {"a\u200db", 2},
		{"a" + strings.Repeat("\u0301", maxMarks), 1}, {"a" + strings.Repeat("\u0301", maxMarks+3), 4},
	} {
		if got := columns(c.text); got != c.want {
			t.Errorf("columns(%q) is %d, want %d", c.text, got, c.want)
		}
		for n := range c.want + 2 {
			if got := fitting(c.text, n); columns(got) > n || n >= c.want && got != c.text {
				t.Errorf("fitting(%q, %d) is %q", c.text, n, got)
			}
		}
	}
}

// TestLiveColours: red leads the eye to what failed and green to what passed, in words
// that say so without.
func TestLiveColours(t *testing.T) {
	replies := `{"cmd":"read nope.txt"}
{"cmd":"sh echo a; echo b; exit 3"}
{"cmd":"done No."}
{"cmd":"write it","stdin":"x"}
{"cmd":"done Yes."}
`
	p := startOn(t, 80, replies, nil, "--verify", "test -f it", "Look")
	var raw bytes.Buffer
	p.raw = &raw
	p.end(0)
	for _, want := range []string{
		"\x1b[31m      error: nope.txt: there is no such file\x1b[0m",
		"\x1b[2m      b\x1b[0m\r\n\x1b[31m      The command failed with exit status 3.\x1b[0m",
		"\x1b[31mgate failed (status 1)\x1b[0m: test -f it",
		"\x1b[32mgate passed\x1b[0m: test -f it",
		"tether: \x1b[32mdone\x1b[0m: 5 steps",
		"tether: \x1b[32mgate passed\x1b[0m: test -f it",
	} {
		if !strings.Contains(raw.String(), want) {
			t.Errorf("%q is not on the terminal:\n%q", want, raw.String())
		}
	}
}
