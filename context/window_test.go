package window

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

// history is n turns with outputs of size characters each.
func history(n, size int) []Turn {
	var turns []Turn
	for i := range n {
		t := Turn{
			ID:     fmt.Sprintf("obs_%d", i+1),
			Call:   Call{Cmd: fmt.Sprintf("grep step%d src", i+1)},
			Output: strings.Repeat(fmt.Sprintf("src/a.go:%d: step\n", i+1), 1+size/18),
			Next:   "Next command?",
		}
		if i%4 == 3 {
			t.Call = Call{Cmd: "write notes.txt", Stdin: "first\nsecond\n"}
			t.Status, t.Next = 1, Text("next_failed", nil)
		}
		turns = append(turns, t)
	}
	return turns
}

func parts(turns []Turn) Parts {
	return Parts{System: System(Framing{Commands: "read     show a file\ndone     finish"}), Task: "Fix it.", Turns: turns}
}

// dump writes msgs as a golden file shows them.
func dump(msgs []Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "--- %s %s\n", m.Role, m.ID)
		if m.Call != nil {
			fmt.Fprintf(&b, "$ %s\n%s", m.Call.Cmd, m.Call.Stdin)
		}
		if m.Text != "" {
			b.WriteString(m.Text + "\n")
		}
	}
	return b.String()
}

// TestGolden keeps whole windows, so that a change's diff shows what a model
// will read.
func TestGolden(t *testing.T) {
	small := Default
	small.Window, small.Reserve = 3000, 1000
	said := history(1, 100)
	said = append(said, Turn{ID: "obs_2", Said: "I would now open the file.", Next: Text("no_call", Values{"Example": "read a.go"})})
	cases := []struct {
		name  string
		b     Budget
		turns []Turn
	}{
		{"empty", Default, nil},
		{"two", Default, history(2, 100)},
		{"said", Default, said},
		{"clipped", Default, history(1, 5000)},
		{"folded", small, history(12, 700)},
		{"dropped", small, history(150, 100)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := parts(nil)
			for i := range c.turns { // as a session would: one turn after the other
				p.Turns = c.turns[:i+1]
				p.Folds = c.b.Next(p)
			}
			got := dump(c.b.Messages(p))
			file := filepath.Join("testdata", c.name+".golden")
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

// TestPrefix: between folds each window begins with the one before it, and no
// window is over its budget, for random histories.
func TestPrefix(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := Default
		b.Window, b.Reserve = 8000+r.IntN(24000), 1000
		p, before, folds := parts(nil), "", 0
		for i := range 40 {
			p.Turns = append(p.Turns, Turn{
				ID:     fmt.Sprint("obs_", i+1),
				Call:   Call{Cmd: "write a.txt", Stdin: strings.Repeat("x\n", r.IntN(300))},
				Output: strings.Repeat("line of output\n", r.IntN(400)),
				Next:   "Next command?",
			})
			was := p.Folds
			p.Folds = b.Next(p)
			msgs := b.Messages(p)
			if got := b.cost(msgs); got > b.Usable() {
				t.Fatalf("seed %d turn %d: %d tokens of %d", seed, i, got, b.Usable())
			}
			now := dump(msgs)
			if was == p.Folds && !strings.HasPrefix(now, before) {
				t.Fatalf("seed %d turn %d: not an extension of the window before", seed, i)
			}
			if was != p.Folds {
				folds++
			}
			before = now
		}
		if folds > 16 { // two and a half turns a fold, at 8,000 tokens and 800 a turn
			t.Errorf("seed %d: %d folds in 40 turns: the cache is never warm", seed, folds)
		}
	}
}

// TestModes: off never folds, every-turn folds all but the newest K.
func TestModes(t *testing.T) {
	p := parts(history(6, 100))
	every := Default
	every.Mode = EveryTurn
	if got := every.Next(p); got != (Folds{Folded: 4}) {
		t.Errorf("every-turn: %+v, want 4 folded", got)
	}
	off := Default
	off.Mode, off.Window = Off, 2600
	p.Turns = history(40, 600)
	p.Folds = off.Next(p)
	if got := off.cost(off.Messages(p)); p.Folds.Dropped == 0 || got > off.Usable() {
		t.Errorf("off: %+v is %d tokens of %d", p.Folds, got, off.Usable())
	}
}

// TestRecalled: what was asked for again is not folded again.
func TestRecalled(t *testing.T) {
	p := parts(history(6, 100))
	p.Turns[0].Recall = true
	p.Folds = Folds{Folded: 4}
	msgs := Default.Messages(p)
	if strings.Contains(msgs[3].Text, "folded") || !strings.Contains(msgs[5].Text, "folded") {
		t.Errorf("recalled: %q, other: %q", msgs[3].Text, msgs[5].Text)
	}
}

// TestFraming holds the bytes that every session pays: 600 without the list
// of commands (DESIGN 4). The JSON of the tool itself is counted in llm.
func TestFraming(t *testing.T) {
	n := len(System(Framing{})) + 1 + len(Text("reply_form", nil))
	if n > 400 {
		t.Errorf("framing is %d bytes, want at most 400 beside the tool's 200", n)
	}
	names := []string{"sh", "read", "write", "append", "edit", "grep", "find", "web", "mem", "skill", "done", "ask", "help"}
	fenced := System(Framing{Fenced: true, Names: names, Commands: "not told"})
	if len(fenced) > 350 || !strings.Contains(fenced, "read, edit, grep, find, web, mem, skill, ask, help.") || strings.Contains(fenced, "not told") {
		t.Errorf("framing in the fenced form is %d bytes, want at most 350 with its commands in a line: %s", len(fenced), fenced)
	}
}

// TestFencedTexts: what is said otherwise to a model that answers with blocks of shell
// stands beside a text for the others, takes the same values, and names no stdin, of
// which such a model knows nothing.
func TestFencedTexts(t *testing.T) {
	n := 0
	for name := range texts {
		other, fenced := strings.CutSuffix(name, "_fenced")
		if !fenced || other == "system" {
			continue
		}
		n++
		if !Has(other) {
			t.Errorf("%s stands beside no text", name)
		}
		for _, value := range []string{"", "x"} {
			got := Text(name, Values{"File": value, "Failed": value, "Done": value, "Line": value, "Write": value})
			if strings.Contains(got, "stdin") || strings.Count(got, "```")%2 != 0 {
				t.Errorf("%s is %q", name, got)
			}
		}
	}
	if n == 0 {
		t.Error("there is no such text")
	}
}

func TestCalibrate(t *testing.T) {
	b := Default
	msgs := []Message{{Role: RoleUser, Text: strings.Repeat("word ", 800)}}
	for range 20 {
		b.Calibrate(msgs, 1000+perMessage+perRequest)
	}
	if b.Bytes < 3.99 || b.Bytes > 4.01 {
		t.Errorf("bytes per token %v, want 4", b.Bytes)
	}
	for _, absurd := range []int{-1, 0, 1, 300, 1 << 40} {
		if c := b; true {
			if c.Calibrate(msgs, absurd); c.Bytes > 4.01 || c.Bytes < minBytes {
				t.Errorf("bytes per token %v after a count of %d", c.Bytes, absurd)
			}
		}
	}
	if b.Calibrate(msgs, 2000+perMessage+perRequest); b.Bytes != 2 {
		t.Errorf("bytes per token %v, want 2 at once", b.Bytes)
	}
}

func FuzzClip(f *testing.F) {
	f.Add(strings.Repeat("a line\n", 500), 2400, 900, 900)
	f.Add("\xff\xfe", 0, 0, 0)
	f.Add(strings.Repeat("é", 3000), 2400, 900, 900)
	f.Fuzz(func(t *testing.T, s string, limit, head, tail int) {
		if limit < 0 || head < 0 || tail < 0 || limit > 1e6 || head > 1e6 || tail > 1e6 {
			return
		}
		got := Clip(s, limit, head, tail, "obs_1")
		if !utf8.ValidString(got) {
			t.Errorf("not UTF-8: %q", got)
		}
		if n := utf8.RuneCountInString(got); n > max(limit, head+tail+100) {
			t.Errorf("%d characters for limit %d, head %d, tail %d", n, limit, head, tail)
		}
	})
}

// FuzzMessages: whatever the outputs hold, the window is within its budget,
// the task is whole, and every result stands behind its call.
func FuzzMessages(f *testing.F) {
	f.Add("ls", "out\n", "", 9, 2000)
	f.Add("write a", "\x00\xff", "in", 60, 4096)
	f.Fuzz(func(t *testing.T, cmd, out, stdin string, n, size int) {
		b := Default
		b.Window = 2000 + b.Reserve + size%20000
		if n < 0 || size < 0 || n > 200 || cmd == "" || len(cmd)+len(stdin)+len(out) > 1500 {
			return
		}
		p := Parts{System: "s", Task: "task"}
		for i := range n {
			p.Turns = append(p.Turns, Turn{ID: fmt.Sprint(i), Call: Call{cmd, stdin}, Output: strings.Repeat(out, i%50)})
			p.Folds = b.Next(p)
		}
		msgs := b.Messages(p)
		if got := b.cost(msgs); got > b.Usable() {
			t.Errorf("%d tokens of %d", got, b.Usable())
		}
		if msgs[1].Text != "task" {
			t.Errorf("task is %q", msgs[1].Text)
		}
		for i := 2; i < len(msgs); i += 2 {
			if msgs[i].Role != RoleAssistant || msgs[i+1].Role != RoleTool || msgs[i].ID != msgs[i+1].ID {
				t.Fatalf("message %d: %+v before %+v", i, msgs[i], msgs[i+1])
			}
		}
	})
}

func BenchmarkMessages(b *testing.B) {
	p := parts(history(50, 10_000))
	for b.Loop() {
		p.Folds = Default.Next(p)
		Default.Messages(p)
	}
}

// TestUser: what a person says in the middle is shown as theirs and stays,
// whatever is folded and dropped around it.
func TestUser(t *testing.T) {
	small := Default
	small.Window, small.Reserve = 3000, 1000
	for _, mode := range []Mode{Batch, EveryTurn, Off} {
		small.Mode = mode
		p := parts(nil)
		for i, turn := range history(120, 100) {
			if p.Turns = append(p.Turns, turn); i%20 == 5 {
				p.Turns = append(p.Turns, Turn{ID: "said", User: fmt.Sprintf("Mind rule %d.", i)})
			}
			p.Folds = small.Next(p)
		}
		msgs := small.Messages(p)
		if got := small.cost(msgs); got > small.Usable() {
			t.Errorf("%s: %d tokens of %d", mode, got, small.Usable())
		}
		got, said := dump(msgs), 0
		for i := 5; i < 120; i += 20 {
			if strings.Contains(got, fmt.Sprintf("--- user said\nThe user says: Mind rule %d.\n", i)) {
				said++
			}
		}
		if said != 6 {
			t.Errorf("%s: %d of 6 messages of the user are shown:\n%s", mode, said, got)
		}
		if p.Folds.Dropped == 0 {
			t.Errorf("%s: nothing was dropped: %+v", mode, p.Folds)
		}
		if n := leftOut(p); p.Folds.Dropped > 0 && !strings.Contains(got, fmt.Sprintf("[%d older steps are not shown ", n)) {
			t.Errorf("%s: %d steps are left out, and the window does not say so:\n%s", mode, n, got)
		}
	}
}
