package act

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditKeepsTheFile changes one line of many kinds of files, in both forms, and
// looks at everything else: line ends, mark, mode, the missing final newline.
func TestEditKeepsTheFile(t *testing.T) {
	root := t.TempDir()
	s := NewShell(Env{Box: newBox(t, root, 0)}, Builtins())
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 120 {
		n := 1 + rng.IntN(90)
		at := 1 + rng.IntN(n)
		end, mark, last, mode := "\n", "", "", os.FileMode(0o644)
		if rng.IntN(2) == 0 {
			end = "\r\n"
		}
		if rng.IntN(3) == 0 {
			mark = bom
		}
		if rng.IntN(2) == 0 {
			last = end
		}
		if rng.IntN(2) == 0 {
			mode = 0o755
		}
		all := make([]string, n)
		for j := range all {
			all[j] = fmt.Sprintf("\tline %d é", j+1)
		}
		name := filepath.Join(root, "file.txt")
		check(t, os.RemoveAll(name))
		check(t, os.WriteFile(name, []byte(mark+strings.Join(all, end)+last), mode))
		line, stdin := fmt.Sprintf("edit file.txt %d:%d", at, at), "\tnew line\n"
		if i%2 == 0 {
			line, stdin = "edit file.txt", "<<<<<<< SEARCH\n"+all[at-1]+"\n=======\n\tnew line\n>>>>>>> REPLACE\n"
		}
		r := s.Do(context.Background(), line, stdin)
		all[at-1] = "\tnew line"
		got, err := os.ReadFile(name)
		check(t, err)
		if want := mark + strings.Join(all, end) + last; r.Status != OK || string(got) != want {
			t.Fatalf("%s: status %d\n%s\ngot %q\nwant %q", line, r.Status, r.Output, got, want)
		}
		info, err := os.Stat(name)
		check(t, err)
		if info.Mode().Perm() != mode || !r.Changed {
			t.Fatalf("mode %v, want %v; changed %v", info.Mode().Perm(), mode, r.Changed)
		}
	}
}

func TestDocumentComesBack(t *testing.T) {
	for _, text := range []string{"", "\n", "a", "a\n", "a\r\n", "a\r\nb", "a\nb\r\n", bom, bom + "a\r\n", "\n\n", "\r", "a\rb"} {
		if got := string(parseDocument([]byte(text)).bytes()); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add("a\nb\nc\n", "<<<<<<< SEARCH\nb\n=======\nx\n>>>>>>> REPLACE\n")
	f.Add("\ta\n\tb\n", "<<<<<<< SEARCH\n    b\n=======\n    x\n>>>>>>> REPLACE\n")
	f.Fuzz(func(t *testing.T, file, text string) {
		doc := parseDocument([]byte(file))
		blocks, err := parseBlocks(text)
		if err != nil {
			return
		}
		for _, b := range blocks {
			before := strings.Join(doc.lines, "\n")
			if m, err := b.apply(&doc, "a.go"); err != nil && strings.Join(doc.lines, "\n") != before {
				t.Fatalf("a refused block changed the file: %v %v", m, err)
			}
		}
	})
}

func TestPlaceholders(t *testing.T) {
	for line, want := range map[string]bool{
		"# ... rest of the code":                      true,
		"// existing code":                            true,
		"// ... existing methods ...":                 true,
		"    ... rest unchanged":                      true,
		"<!-- rest of the file unchanged":             true,
		"# ...":                                       true,
		"# remaining functions here":                  true,
		"// rest unchanged":                           true,
		"# (rest unchanged)":                          true,
		"/* existing code */":                         true,
		"{/* ... */}":                                 true,
		"// ...rest of file...":                       true,
		"[rest of the code remains the same]":         true,
		"<rest of file>":                              true,
		"... existing code ...":                       true,
		"// unchanged":                                true,
		"# unchanged code":                            true,
		"// keep the rest":                            true,
		"# [...]":                                     true,
		"// [existing code]":                          true,
		"// existing imports...":                      true,
		"-- existing code":                            true,
		"// Remaining code unchanged":                 true,
		"    # the rest of the function is unchanged": true,
		"// same as before":                           true,
		"// other functions call this":                false,
		"# same function as in lib":                   false,
		"# the file that was there before":            false,
		"# keep the file open":                        false,
		"const [rest, more] = [1, 2]":                 false,
		"// unchanged since 1999":                     false,
		"# the rest is history":                       false,
		"x = [...]":                                   false,
		"...":                                         false,
		"    ...  # not implemented":                  false,
		"print('... and so on')":                      false,
		"# existing users keep access":                false,
	} {
		if got := placeholder("a.py", line, "") != ""; got != want {
			t.Errorf("placeholder(%q) = %v, want %v", line, got, want)
		}
	}
	if got := placeholder("a.py", "# ...", "a\n# ...\nb"); got != "" {
		t.Errorf("a line that the old text has is refused: %q", got)
	}
}
