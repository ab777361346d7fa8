package act

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPatchGivesTheNewText makes a file and a change of it, writes the change as a
// diff in the ways of models, and applies it: the new text must come out, or the
// refusal of something that is there twice.
func TestPatchGivesTheNewText(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	refused := 0
	for i := range 2000 {
		old := make([]string, 3+rng.IntN(20))
		for j := range old {
			old[j] = fmt.Sprintf("%sline %d", strings.Repeat("    ", rng.IntN(3)), rng.IntN(12))
		}
		from := rng.IntN(len(old))
		to := min(len(old), from+1+rng.IntN(3))
		fresh := []string{fmt.Sprintf("    new %d", i), "", "end"}[:1+rng.IntN(3)]
		want := strings.Join(splice(old, from, to, fresh), "\n")
		patch := diffOf(rng, old, from, to, fresh)
		sections, err := parsePatch(patch)
		if err != nil || len(sections) != 1 {
			t.Fatalf("%v, %d sections of:\n%s", err, len(sections), patch)
		}
		doc := parseDocument([]byte(strings.Join(old, "\n") + "\n"))
		for _, b := range sections[0].blocks {
			if _, err = b.apply(&doc, "a.txt"); err != nil {
				break
			}
		}
		switch got := doc.text(); {
		case err != nil && !strings.Contains(err.Error(), "times"):
			t.Fatalf("%v\n%s\nof\n%s", err, patch, strings.Join(old, "\n"))
		case err != nil:
			refused++
		case got != want:
			t.Fatalf("got\n%s\nwant\n%s\nby\n%s\nof\n%s", got, want, patch, strings.Join(old, "\n"))
		}
	}
	if refused > 400 {
		t.Errorf("%d of 2000 were refused", refused)
	}
}

// diffOf writes a change as a hunk: with a right number or none, with a head or
// without, with some lines around or none.
func diffOf(rng *rand.Rand, old []string, from, to int, fresh []string) string {
	around := rng.IntN(4)
	begin, end := max(0, from-around), min(len(old), to+around)
	var b strings.Builder
	if rng.IntN(2) == 0 {
		b.WriteString("--- a/a.txt\n+++ b/a.txt\n")
	}
	if rng.IntN(3) == 0 {
		b.WriteString("@@\n")
	} else {
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", begin+1, rng.IntN(9), begin+1, rng.IntN(9))
	}
	write := func(mark string, lines []string) {
		for _, l := range lines {
			b.WriteString(strings.TrimRight(mark+l, " ") + "\n")
		}
	}
	write(" ", old[begin:from])
	write("-", old[from:to])
	write("+", fresh)
	write(" ", old[to:end])
	return b.String()
}

func FuzzPatch(f *testing.F) {
	f.Add("a\nb\nc\n", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+x\n\\ No newline at end of file\n")
	f.Add("\ta\n\tb\n", "*** Begin Patch\n*** Update File: x\n@@ a\n-    b\n+    x\n*** End of File\n*** End Patch\n")
	f.Add("a\n", "-a\n+b\n")
	f.Fuzz(func(t *testing.T, file, text string) {
		sections, err := parsePatch(text)
		if err != nil {
			return
		}
		doc := parseDocument([]byte(file))
		for _, s := range sections {
			for _, b := range s.blocks {
				before := strings.Join(doc.lines, "\n")
				if m, err := b.apply(&doc, "a.go"); err != nil && strings.Join(doc.lines, "\n") != before {
					t.Fatalf("a refused hunk changed the file: %v %v", m, err)
				}
			}
		}
	})
}
