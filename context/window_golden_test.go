package window

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// session is a scripted session of a bit of everything: long and short outputs,
// failures, files written, words that are no call, words of the person, a recall, a
// pin, dense text, another script.
func session() []Turn {
	next := Text("next", nil)
	turns := []Turn{
		{Call: Call{Cmd: "ls"}, Output: "README.md\ngo.mod\nsrc\n", Next: next},
		{Call: Call{Cmd: "read src/a.go"}, Output: strings.Repeat("func a() int { return 1 }\n", 60), Next: next},
		{Call: Call{Cmd: "go test ./..."}, Status: 1, Output: strings.Repeat("=== RUN TestA\n", 20) + "--- FAIL: TestA (0.00s)\n    a_test.go:9: got 1, want 2\nFAIL\n", Next: Text("next_failed", nil)},
		{Call: Call{Cmd: "mem pin the answer is 2"}, Pin: true, Output: "It stays in view: the answer is 2\n", Next: next},
		{Said: "I would now change the file.", Status: 2, Next: Text("no_call", Values{"Example": "read a.go"})},
		{Call: Call{Cmd: "write src/a.go", Stdin: "package src\n\nfunc a() int { return 2 }\n"}, Output: "src/a.go has 3 lines.\n", Next: next},
		{Call: Call{Cmd: "sha256sum src/*"}, Output: strings.Repeat("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  src/a.go\n", 30), Next: next},
		{User: "Mind the other package."},
		{Call: Call{Cmd: "read 说明.md"}, Output: strings.Repeat("窗口是计算出来的，从不改变。\n", 90), Next: next},
		{Call: Call{Cmd: "mem recall obs_3"}, Recall: true, Output: "--- FAIL: TestA (0.00s)\n    a_test.go:9: got 1, want 2\n", Next: next},
		{Call: Call{Cmd: "grep -rn a( src"}, Output: strings.Repeat("src/b.go:12: x := a()\n", 90), Next: next},
	}
	for i := range 10 {
		turns = append(turns, Turn{Call: Call{Cmd: fmt.Sprintf("read src/b.go %d:%d", 40*i+1, 40*i+40)}, Output: strings.Repeat("\tx := a() // of the file\n", 40), Next: next})
	}
	for i := range turns {
		turns[i].ID = fmt.Sprintf("obs_%d", i+1)
	}
	return turns
}

// TestWindows keeps the last window of the session for each size and way of folding:
// a change's diff shows what a model will read.
func TestWindows(t *testing.T) {
	for _, size := range []int{2048, 4096, 8192} {
		for _, mode := range []Mode{Batch, EveryTurn, Off} {
			name := fmt.Sprintf("%s_%d", mode, size)
			t.Run(name, func(t *testing.T) {
				b := Default
				b.Window, b.Mode = size, mode
				p := parts(nil)
				for i := range session() {
					p.Turns = session()[:i+1]
					p.Folds = b.Next(p)
					sound(t, b, p, b.Messages(p))
				}
				msgs := b.Messages(p)
				got := fmt.Sprintf("%d of %d tokens, as estimated; %+v\n", b.cost(msgs), b.Usable(), p.Folds) + dump(msgs)
				file := filepath.Join("testdata", "windows", name+".golden")
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("window differs from %s (go test -update writes it):\n%s", file, got)
				}
			})
		}
	}
}
