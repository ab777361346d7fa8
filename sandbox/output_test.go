package sandbox

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                  "plain\ttext\n",
		"größe 日本 🙂":                     "größe 日本 🙂",
		"a\x00b\x07c\x7fd\u0085e":        "abcde",
		"a\xff\xfeb":                     "a\uFFFDb",
		"\x1b[31mred\x1b[0m":             "red",
		"\x1b[1;38;5;200mx\x1b[K":        "x",
		"\x1b]0;title\x07after":          "after",
		"\x1b]8;;http://x\x1b\\link":     "link",
		"a\r\nb":                         "a\nb",
		"10%\r20%\r":                     "20%",
		"\x1b":                           "",
		"\x1b[":                          "[",
		"\x1b[12\nnext":                  "[12\nnext",
		"\x1b]never ends\nnext":          "]never ends\nnext",
		"\x1b(B\x1b=x":                   "x",
		"":                               "",
		"\u202eright to left stays\n":    "\u202eright to left stays\n",
		"\xe2\x82":                       "\uFFFD",
		"\x1b[31m\x1b[31m\x1b[31m":       "",
		"\x9b31mC1 as a byte is no rune": "\uFFFD31mC1 as a byte is no rune",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestOutputKeepsBothEnds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, keep - 1, keep, keep + 1, 2*keep - 1, 2 * keep, 2*keep + 1, 3*keep + 17, 10 * keep} {
		data := make([]byte, size)
		for i := range data {
			data[i] = 'a' + byte(rnd.IntN(26))
		}
		o := newOutput(1 << 40)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+rnd.IntN(keep*3/2))
			o.add(rest[:n])
			rest = rest[n:]
		}
		want := string(data)
		left := int64(max(0, size-2*keep))
		if left > 0 {
			want = fmt.Sprintf("%s\n[%d bytes left out]\n%s", data[:keep], left, data[size-keep:])
		}
		if got, gotLeft := o.text(); got != want || gotLeft != left {
			t.Errorf("%d bytes: kept %d, left out %d, want %d and %d", size, len(got), gotLeft, len(want), left)
		}
	}
}

func TestOutputCutsNoCharacter(t *testing.T) {
	for shift := range 4 {
		o := newOutput(1 << 40)
		o.collect(strings.NewReader(strings.Repeat("x", shift) + strings.Repeat("日", keep)))
		got, left := o.text()
		if !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") || left == 0 {
			t.Errorf("shift %d: a character was cut", shift)
		}
	}
}

func TestOutputLimitIsTold(t *testing.T) {
	o := newOutput(10)
	o.add([]byte("0123456789"))
	select {
	case <-o.full:
		t.Fatal("told too early")
	default:
	}
	o.collect(iotest.OneByteReader(bytes.NewReader([]byte("abc"))))
	<-o.full
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n")
	f.Add("\x1b]0;x\x1b\\\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if dirty(got) {
			t.Fatalf("clean(%q) = %q is not clean", s, got)
		}
		if !dirty(s) && got != s {
			t.Fatalf("clean(%q) changed clean text to %q", s, got)
		}
	})
}
