//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScreen(t *testing.T) {
	for in, want := range map[string]string{
		// Bars: the last state stays, whatever shows it.
		"a  10%\ra  20%\ra 100%\ndone\n":                         "a 100%\ndone\n",
		"  0%|    | 0/4\r 50%|##  | 2/4\r100%|####| 4/4\n":       "100%|####| 4/4\n",
		"Counting objects: 5\rCounting objects: 10, done.\nok\n": "Counting objects: 10, done.\nok\n",
		"work |\b/\b-\b\\\bok\n":                                 "work ok\n",
		"Progress: 4 kB\r              \rDownloaded: x\n":        "Downloaded: x\n",
		"long status\r\x1b[Kshort\n":                             "short\n",
		"half\x1b[2K\rwhole\n":                                   "whole\n",
		"keep me\rkeep\x1b[K\n":                                  "keep\n",
		// Several lines at once.
		"a: wait\nb: wait\n\x1b[2A\x1b[2Ka: done\n\x1b[2Kb: done\n": "a: done\nb: done\n",
		"a: 1%\nb: 1%\n\x1b[1A\rb: 9%\x1b[1A\ra: 9%\x1b[2B\rend":    "a: 9%\nb: 9%\nend",
		"one\ntwo\nthree\x1b[1F\x1b[Jnew\n":                         "one\nnew\n",
		// What is printed over without being an earlier state is kept.
		"error: disk full\rretrying in 5 s\n": "error: disk full\nretrying in 5 s\n",
		"name,age\rbob,3\rann,4":              "name,age\nbob,3\nann,4",
		// A cleared screen is not forgotten.
		"error: x\n\x1b[2J\x1b[Hwatching\n":  "error: x\nwatching\n",
		"half a line\x1b[2J\x1b[H\nwatching": "half a line\n\nwatching",
		// Overstriking, tabulators, jumps.
		"B\bBo\bol\bld _\bx\n": "Bold x\n",
		"a\tb\n":               "a\tb\n",
		"a\x1b[40Cb\n":         "a b\n",
		"abc\x1b[2GB\n":        "aBc\n",
		"\x1b[9999999999999999999Ax\x1b[99A\x1b[99B\x1b[99Dy\n": "y\n",
		"a\r\nb\r\r\nc": "a\nb\nc",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestRecordings: what real programs print to a terminal, and what is kept of it.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/terminal/*.raw")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, golden := clean(string(raw)), strings.TrimSuffix(file, ".raw")+".golden"
		t.Logf("%-8s %6d -> %5d bytes", strings.TrimSuffix(filepath.Base(file), ".raw"), len(raw), len(got))
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s reads (go test -update writes it):\n%s", file, got)
		}
	}
}

func FuzzScreen(f *testing.F) {
	f.Add("a 1%\ra 2%\n\x1b[1A\x1b[2Kb\x1b[J\b\x1b[5Cc\x1b[3G\x1b[H")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if dirty(got) || clean(got) != got {
			t.Fatalf("clean(%q) = %q is not clean", s, got)
		}
		if len(got) > 3*len(s) { // a byte that is no text becomes three
			t.Fatalf("%d bytes became %d", len(s), len(got))
		}
	})
}
