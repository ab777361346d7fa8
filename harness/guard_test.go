package harness_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	window "tether/context"
	"tether/harness"
)

// TestGuard: a dialogue is a string, a call a letter. A letter alone is a call
// that was run and changed nothing, one with ! a call that changed a file, one
// with ? a call that must be refused. A . is a reply that led to nothing.
func TestGuard(t *testing.T) {
	cases := []struct {
		dialogue string
		warnings int
	}{
		{"", 0},
		{"abcdef", 0},
		{"a!b!a!b!", 0},     // each one changes something
		{"aa?", 1},          // the same call twice in a row
		{"aa?a?", 2},        // a warning each
		{"aa?a?a?", 3},      //
		{"aa?a?a?a?", 4},    // the fourth ends the run
		{"abab", 0},         // once more, another call between, is sense
		{"ababa?", 1},       // the third time is a cycle
		{"ababa?b?a?", 3},   // and so is the whole of it
		{"abcabca?b?c?", 3}, // a longer one
		{"aa?b!a", 1},       // a change makes everything new
		{"ab!ab!ab!a", 0},   // a test between changes
		{"a!a?", 1},         // its own change is none since it ran
		{"aa?ba", 1},        // a refused call was not run
		{"aa?a?b", 2},       // another call after two warnings
		{"a.b.c.", 3},       // replies that lead to nothing count as well
		{"aa?.a?", 3},       //
	}
	for _, c := range cases {
		var g harness.Guard
		for i := 0; i < len(c.dialogue); i++ {
			if c.dialogue[i] == '.' {
				g.Warn()
				continue
			}
			call := window.Call{Cmd: c.dialogue[i : i+1]}
			mark := byte(0)
			if i+1 < len(c.dialogue) {
				mark = c.dialogue[i+1]
			}
			switch mark {
			case '?':
				i++
				if g.Refuse(call) == "" || !g.Repeats(call) {
					t.Errorf("%s: call %d was not refused", c.dialogue, i)
				}
				continue
			case '!':
				i++
			}
			if g.Refuse(call) != "" {
				t.Errorf("%s: call %d was refused", c.dialogue, i)
			}
			g.Ran(call, mark == '!')
		}
		if g.Warnings != c.warnings || g.Stalled() != (c.warnings >= harness.MaxWarnings) {
			t.Errorf("%s: %d warnings, stalled %v; want %d", c.dialogue, g.Warnings, g.Stalled(), c.warnings)
		}
	}
}

// TestGuardSameDone: a done with other words, or a capital, is the same done.
func TestGuardSameDone(t *testing.T) {
	for _, c := range []struct {
		cmd  string
		same bool
	}{{"done", true}, {"Done all", true}, {"sh done it works", true}, {"donex", false}, {"echo done", false}} {
		var g harness.Guard
		g.Ran(window.Call{Cmd: "done Fixed."}, false)
		if got := g.Repeats(window.Call{Cmd: c.cmd}); got != c.same {
			t.Errorf("%s: repeats is %v", c.cmd, got)
		}
	}
}

// TestBarred: a reply in the place of a call that was made before may not begin as that
// call, and one in the place of a write in vain may not write, nor print the text.
func TestBarred(t *testing.T) {
	const text = "\na\nEOF"
	for _, c := range []struct {
		lines []string
		want  []string // barred from the last reply, which is asked for anew
	}{
		{[]string{"ls", "ls", "ls"}, []string{"ls"}},
		{[]string{"python3 -V", "python3 -V", "ls"}, []string{"python3"}},
		{[]string{"sh -c ls", "sh -c ls", "ls"}, nil}, // sh is every program
		{[]string{"cat odd.txt", "cat odd.txt", "ls"}, []string{"cat odd.txt"}},
		{[]string{"cat > a.txt <<'EOF'" + text, "cat > a.txt <<'EOF'" + text, "ls"}, []string{"cat > a.txt"}},
		{[]string{"cat <<'EOF'" + text, "cat <<'EOF'" + text, "ls"}, []string{"cat <", "cat<"}},
		{[]string{"write a.txt < a\n", "ls", "cat > a.txt <<'EOF'" + text, "ls"}, []string{"write", "cat >", "cat <", "cat<"}},
	} {
		p, m := newPlace(t, nil), &tape{replies: calls(c.lines...)}
		p.do(m)
		if last := m.asked[len(c.lines)-1]; !last.Fresh || !slices.Equal(last.Without, c.want) {
			t.Errorf("%q: asked anew %v, without %q, want %q", c.lines, last.Fresh, last.Without, c.want)
		}
	}
}

// TestGuardLooksAtStdin: the same line with another text is another call.
func TestGuardLooksAtStdin(t *testing.T) {
	var g harness.Guard
	g.Ran(window.Call{Cmd: "append a", Stdin: "1"}, false)
	if g.Repeats(window.Call{Cmd: "append a", Stdin: "2"}) || !g.Repeats(window.Call{Cmd: "append a", Stdin: "1"}) {
		t.Error("stdin does not count")
	}
}

// TestGuardDone: a done with other words is the same done, and comes to nothing
// again as long as nothing has changed, whatever was looked at meanwhile.
func TestGuardDone(t *testing.T) {
	var g harness.Guard
	done, again := window.Call{Cmd: "done It works."}, window.Call{Cmd: "done", Stdin: "Really."}
	g.Ran(done, false)
	g.Ran(window.Call{Cmd: "read a"}, false)
	if !g.Repeats(again) || g.Refuse(again) == "" {
		t.Error("another done after a look was let through")
	}
	g.Ran(window.Call{Cmd: "write a"}, true)
	if g.Refuse(again) != "" || g.Warnings != 1 {
		t.Errorf("a done after a change was refused; %d warnings, want 1", g.Warnings)
	}
	if g.Refuse(window.Call{Cmd: "donec"}) != "" || g.Repeats(window.Call{Cmd: "done_all"}) {
		t.Error("a program whose name begins so was taken for it")
	}
}

// TestGuardIdle counts the calls since the last change.
func TestGuardIdle(t *testing.T) {
	var g harness.Guard
	for i, changed := range []bool{false, false, true, false} {
		g.Ran(window.Call{Cmd: string(rune('a' + i))}, changed)
		if want := []int{1, 2, 0, 1}[i]; g.Idle() != want {
			t.Errorf("after call %d: idle %d, want %d", i, g.Idle(), want)
		}
	}
}

// TestGuardProperties plays models of chance against the guard.
func TestGuardProperties(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var g harness.Guard
		since := map[window.Call]int{} // runs of each call since the last change
		kinds, left := 1+r.IntN(5), 0
		for step := 0; !g.Stalled(); step++ {
			call := window.Call{Cmd: string(rune('a' + r.IntN(kinds)))}
			was := g.Warnings
			refused := g.Refuse(call) != ""
			switch {
			case refused && since[call] == 0:
				t.Fatalf("seed %d: %s was refused and is new", seed, call.Cmd)
			case refused != (g.Warnings == was+1) || !refused && g.Warnings != was:
				t.Fatalf("seed %d: refused %v, warnings from %d to %d", seed, refused, was, g.Warnings)
			case refused && !g.Repeats(call):
				t.Fatalf("seed %d: %s was refused and is no repetition", seed, call.Cmd)
			case !refused:
				changed := r.IntN(20) == 0 && step < 200
				if changed {
					since, left = map[window.Call]int{}, 0
				}
				since[call]++
				g.Ran(call, changed)
			}
			// Without a change nothing runs more than twice, and so the end comes.
			if left++; since[call] > 2 || left > 2*kinds+harness.MaxWarnings {
				t.Fatalf("seed %d: %d calls of %d kinds since the last change, %s ran %d times", seed, left, kinds, call.Cmd, since[call])
			}
		}
	}
}

// TestGuardLetsProgressBe: as long as files change no model is stopped,
// however often it says the same.
func TestGuardLetsProgressBe(t *testing.T) {
	var g harness.Guard
	test, fix := window.Call{Cmd: "go test"}, window.Call{Cmd: "edit a.go"}
	for range 1000 {
		for _, call := range []window.Call{test, fix} {
			if g.Refuse(call) != "" {
				t.Fatalf("%s was refused", call.Cmd)
			}
			g.Ran(call, call == fix)
		}
	}
	if g.Warnings != 0 {
		t.Errorf("%d warnings, want none", g.Warnings)
	}
}

// TestGuardCycle: a letter is a call that changes a file and prints what it printed
// before, one with a number a call that prints that. With ? it is refused.
func TestGuardCycle(t *testing.T) {
	for _, dialogue := range []string{
		"a b a b a? b? a?",                // a file written in two ways by turns
		"a b c a b c a? b? c?",            // and in three
		"a b c d a b c d a?",              // and in four
		"a b c d e a b c d e a b",         // a longer one is not looked for
		"a b1 a b2 a b3 a b4",             // a test that says something else
		"a b a c a b a d",                 // no order
		"a b a b a? c a b",                // something else was done
		"sleep_1 sleep_1 sleep_1 sleep_1", // what waits
	} {
		var g harness.Guard
		for _, word := range strings.Fields(dialogue) {
			word, refused := strings.CutSuffix(word, "?")
			call := window.Call{Cmd: strings.ReplaceAll(strings.TrimRight(word, "12345"), "_", " ")}
			if strings.HasPrefix(word, "sleep") {
				call.Cmd = strings.ReplaceAll(word, "_", " ")
			}
			if got := g.Refuse(call) != ""; got != refused {
				t.Errorf("%s: refused is %v at %s", dialogue, got, word)
			}
			if !refused {
				g.Ran(call, true)
				g.Printed(call, word)
			}
		}
	}
}
