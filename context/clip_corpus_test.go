package window

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// A labelled output is one that a real tool printed, with the lines of it that say
// what failed, as a person marked them.
type labelled struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Half    string   `json:"half"` // the rules were written on one half only
	Failed  []string `json:"failed"`
	output  string
}

func corpus(t testing.TB) []labelled {
	t.Helper()
	data, err := os.ReadFile("testdata/clip/labels.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []labelled
	for d := json.NewDecoder(strings.NewReader(string(data))); d.More(); {
		var l labelled
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		out, err := os.ReadFile(filepath.Join("testdata/clip", l.Name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		l.output = string(out)
		all = append(all, l)
	}
	return all
}

// lost counts the marked lines that are not in text.
func (l labelled) lost(text string) (lines []string) {
	for _, line := range l.Failed {
		if !strings.Contains(text, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestCorpus: of every output all lines that say what failed are shown, and no more
// characters than the budget has.
func TestCorpus(t *testing.T) {
	type sum struct{ outputs, long, lines, here, plain, chars, shown, repeats int }
	sums := map[string]*sum{"rules": {}, "held-out": {}, "later": {}, "all": {}}
	b := Default
	for _, l := range corpus(t) {
		got := b.observed(Turn{ID: "obs_7", Call: Call{Cmd: l.Command}, Output: l.output})
		lost := l.lost(got)
		for _, line := range lost {
			t.Errorf("%s (%s): it does not say %q", l.Name, l.Half, line)
		}
		if n := utf8.RuneCountInString(got); n > b.Elide {
			t.Errorf("%s: %d characters", l.Name, n)
		}
		if again := Excerpt(got, b.Elide, b.Head, b.Tail, "obs_7"); again != got {
			t.Errorf("%s: the excerpt of the excerpt is another one", l.Name)
		}
		plain := l.lost(Clip(l.output, b.Elide, b.Head, b.Tail, "obs_7"))
		all := entries(l.output)
		judgeAll(all)
		for _, half := range []string{l.Half, "all"} {
			s := sums[half]
			s.outputs++
			s.lines += len(l.Failed)
			s.here += len(l.Failed) - len(lost)
			s.plain += len(l.Failed) - len(plain)
			s.chars += utf8.RuneCountInString(l.output)
			s.shown += utf8.RuneCountInString(got)
			if utf8.RuneCountInString(l.output) > b.Elide {
				s.long++
				s.repeats += size(all) - size(collapse(all))
			}
		}
	}
	for _, half := range []string{"rules", "held-out", "later", "all"} {
		s := sums[half]
		t.Logf("%-8s %d outputs, %d of them longer than %d characters; lines that say what failed: %d, shown %d (%.1f %%), by head and tail alone %d (%.1f %%); characters %d, shown %d, saved by counting repeats %d",
			half, s.outputs, s.long, b.Elide, s.lines, s.here, 100*float64(s.here)/float64(s.lines), s.plain, 100*float64(s.plain)/float64(s.lines), s.chars, s.shown, s.repeats)
		if s.here <= s.plain {
			t.Errorf("%s: no better than head and tail", half)
		}
	}
	if all := sums["all"]; all.outputs < 60 || all.long < 40 {
		t.Errorf("%d outputs, %d long ones", all.outputs, all.long)
	}
}
