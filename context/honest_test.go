package window

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var repeatMark = regexp.MustCompile(`^\[… (?:([\d,]+) more times )?the (?:line|([\d,]+) lines) above(?: ([\d,]+) more times| *, with other numbers)`)

// TestMarksAreTrue: where a mark says that the lines above come again so often, these
// lines stand above it, and they do.
func TestMarksAreTrue(t *testing.T) {
	number := func(s string) int {
		n, _ := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
		return n
	}
	marks := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		var lines []string
		for range 1 + r.IntN(8) {
			block := make([]string, 1+r.IntN(12))
			for i := range block {
				block[i] = fmt.Sprintf("%s %c", strings.Repeat("word ", r.IntN(16)), 'a'+r.IntN(26))
				if r.IntN(9) == 0 {
					block[i] = "error: " + block[i]
				}
			}
			for range 1 + r.IntN(40) {
				lines = append(lines, block...)
			}
		}
		source := "\n" + strings.Join(lines, "\n") + "\n"
		n := 110 + r.IntN(800)
		shown := strings.Split(Excerpt(source, 2*n+200, n, n, "obs_1"), "\n")
		for i, line := range shown {
			m := repeatMark.FindStringSubmatch(line)
			if m == nil || m[3] == "" {
				continue
			}
			marks++
			p, times := max(number(m[2]), 1), number(m[3])
			if i < p {
				t.Fatalf("seed %d: %q has %d lines above", seed, line, i)
			}
			block := strings.Join(shown[i-p:i], "\n") + "\n"
			if !strings.Contains(source, "\n"+strings.Repeat(block, times+1)) {
				t.Fatalf("seed %d: %q stands under\n%s", seed, line, strings.Join(shown[max(0, i-14):i], "\n"))
			}
		}
	}
	if marks < 50 {
		t.Errorf("%d marks", marks)
	}
}

// TestShortEnds: also where only the ends are left, and there are no lines in them,
// something is shown.
func TestShortEnds(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("minified;", 1000), strings.Repeat("error: x ", 1000), strings.Repeat("\x00", 5000), strings.Repeat("א", 5000),
		strings.Repeat(strings.Repeat("x", 3000)+" error: e\n", 30),
	} {
		got := Excerpt(text, 3*shortEnd, shortEnd, shortEnd, "obs_1")
		if shown := len([]rune(got)) - len([]rune(leftOutMark(len(text), "obs_1"))); shown < shortEnd*8/10 || len([]rune(got)) > 3*shortEnd {
			t.Errorf("of %.20q is shown\n%s", text, got)
		}
	}
}
