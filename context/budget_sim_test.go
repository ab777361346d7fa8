package window

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// A tokenizer says how many tokens a server makes of a text: bytes a token of each
// kind, drawn from what was measured on real ones and a little beyond.
type tokenizer struct {
	plain, digit, mixed, sign, other, row float64
	message, request                      int
}

func drawTokenizer(r *rand.Rand) tokenizer {
	between := func(low, high float64) float64 { return low + r.Float64()*(high-low) }
	return tokenizer{
		plain: between(2.2, 5), digit: between(1, 3), mixed: between(1.1, 2.5), sign: between(1.1, 3), other: between(1, 6), row: between(2, 60),
		message: 3 + r.IntN(12), request: 60 + r.IntN(240),
	}
}

// text counts s in its own way: it shares the kinds of bytes with Weight and nothing
// else.
func (k tokenizer) text(s string) float64 {
	n := 0.0
	for i := 0; i < len(s); i++ {
		same := i > 1 && s[i] == s[i-1] && s[i] == s[i-2]
		switch kind := kindOf[s[i]]; {
		case kind == kindOther:
			n += 1 / k.other
		case kind == kindDigit:
			n += 1 / k.digit
		case kind == kindLetter && (i > 0 && kindOf[s[i-1]] == kindDigit || i+1 < len(s) && kindOf[s[i+1]] == kindDigit):
			n += 1 / k.mixed
		case kind == kindLetter:
			n += 1 / k.plain
		case same:
			n += 1 / k.row
		case kind == kindBlank:
			n += 1 / k.plain
		default:
			n += 1 / k.sign
		}
	}
	return n
}

func (k tokenizer) count(msgs []Message) int {
	n := float64(k.request)
	for _, m := range msgs {
		n += float64(k.message) + k.text(m.Text)
		if m.Call != nil {
			n += k.text(m.Call.Cmd) + k.text(m.Call.Stdin) + 15
		}
	}
	return int(n)
}

// written is t if the model can have written it in a reply of so many tokens; else its
// text is shorter.
func (k tokenizer) written(t Turn, reply int) Turn {
	for k.text(t.Call.Stdin) > 0.9*float64(reply) {
		t.Call.Stdin = t.Call.Stdin[:len(t.Call.Stdin)*3/4]
	}
	return t
}

// source is text of a program.
var source = func() string {
	text, err := os.ReadFile("window.go")
	if err != nil {
		panic(err)
	}
	return string(text)
}()

// printed is an output of about n characters, of one of the sorts that commands print.
func printed(r *rand.Rand, n int) string {
	draw := func(alphabet string) string {
		var b strings.Builder
		all := []rune(alphabet)
		for i := range n {
			if b.WriteRune(all[r.IntN(len(all))]); i%70 == 69 {
				b.WriteByte('\n')
			}
		}
		return b.String()
	}
	whole := func(s string) string { return s[:min(n, len(s))] }
	switch r.IntN(12) {
	case 0:
		return draw("0123456789abcdef")
	case 1:
		return draw("0123456789,.")
	case 2:
		return draw("让小模型在笔记本电脑上完成真正的工作修改代码运行它")
	case 3:
		return draw("😀🎉🚀✅❌🔥 ")
	case 4:
		return draw("ABCDEFabcdefXYZxyz0123456789+/")
	case 5:
		return strings.Repeat("=", n)
	case 6:
		return draw("{}[]();:,.<>+-*/&|!")
	case 7:
		return "\xff\xfe" + whole(source) + "\x00"
	case 8, 9:
		return strings.Repeat("ok\n", n/60)
	}
	at := r.IntN(len(source) / 2)
	return strings.ToValidUTF8(strings.Repeat(source[at:min(at+n, len(source))], 1+n/len(source)), "")
}

// drawnTurn is a turn as a session may have it: mostly short calls with any output,
// now and then a file written, words that are no call, something recalled or pinned.
func drawnTurn(r *rand.Rand, id string, reply int) Turn {
	t := Turn{ID: id, Call: Call{Cmd: "grep -n " + id + " src"}, Output: printed(r, r.IntN(1+r.IntN(4000))), Next: "Next command?"}
	switch r.IntN(20) {
	case 0, 1, 2:
		t.Call, t.Output = Call{"write a.go", printed(r, r.IntN(1+reply))}, "a.go has 12 lines."
	case 3:
		t.Call, t.Said, t.Status = Call{}, printed(r, 900), 2
	case 4:
		t.Recall, t.Call.Cmd = true, "mem recall obs_1"
	case 5:
		t.Pin, t.Call.Cmd, t.Output = true, "mem pin the port is 8080", "It stays: the port is 8080"
	case 6, 7:
		t.Status = 1
	}
	return t
}

// TestNoOverflow: 1,000 runs of 40 turns at 4k, 8k and 32k against servers that
// count otherwise than is estimated. No request is more than the window holds, and
// no reply has less room than it takes.
func TestNoOverflow(t *testing.T) {
	var all simulated
	t.Run("runs", func(t *testing.T) {
		var mu sync.Mutex
		for seed := range uint64(1000) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				got := simulate(t, seed)
				mu.Lock()
				defer mu.Unlock()
				all.add(got)
			})
		}
	})
	t.Logf("%d requests: %d overflows, %d cut, %d folds; the fullest window was %.0f %%", all.requests, all.overflows, all.truncated, all.folds, 100*all.most)
	if all.overflows > 0 || all.truncated > 0 {
		t.Errorf("%d requests of %d were too long, %d left no room for a reply", all.overflows, all.requests, all.truncated)
	}
	if all.folds < 1000 {
		t.Errorf("%d folds in all: the runs are too short to show anything", all.folds)
	}
}

// A simulated run, or several, by what a server saw of it.
type simulated struct {
	requests, overflows, truncated, folds int
	most                                  float64 // share of the window that was filled
}

func (s *simulated) add(one simulated) {
	s.requests, s.overflows = s.requests+one.requests, s.overflows+one.overflows
	s.truncated, s.folds, s.most = s.truncated+one.truncated, s.folds+one.folds, max(s.most, one.most)
}

// simulate is a run of 40 turns, as seed draws them, against a server whose
// tokenizer holds another number of bytes than the estimate.
func simulate(t *testing.T, seed uint64) (run simulated) {
	r := rand.New(rand.NewPCG(seed, 3))
	server := drawTokenizer(r)
	b := Default
	b.Window, b.Mode = []int{4096, 8192, 32768}[seed%3], []Mode{Batch, Batch, EveryTurn, Off}[seed%4]
	p := parts(nil)
	p.Task = "Make the tests pass. " + printed(r, r.IntN(600))
	for i := range 40 {
		if i > 0 && r.IntN(25) == 0 {
			p.Turns = append(p.Turns, Turn{ID: fmt.Sprint("said_", i), User: "Mind the port."})
		}
		if i > 0 {
			p.Turns = append(p.Turns, server.written(drawnTurn(r, fmt.Sprint("obs_", i), 4000), ReserveOf(b.Window, b.Reserve)))
		}
		was, w := p.Folds, b.next(p) // as Next and Messages, in half the time
		p.Folds = *w.folds()
		msgs := w.messages()
		n := server.count(msgs)
		run.requests++
		if n >= b.Window {
			run.overflows++
			t.Logf("turn %d, %s at %d: %d tokens, estimated %d at %.2f bytes a token, by %+v", i, b.Mode, b.Window, n, b.cost(msgs), b.Bytes, server)
		}
		if n+200 > b.Window {
			run.truncated++
		}
		if run.most = max(run.most, float64(n)/float64(b.Window)); was != p.Folds {
			run.folds++
		}
		cut, seen := b.Cut(p, msgs, n)
		if b.Seen = seen; cut {
			t.Errorf("turn %d: %d tokens of %d are taken for a part", i, n, seen.Cost)
		}
		b.Calibrate(msgs, n)
	}
	return run
}

// TestAppendOnly: outside folds each window begins with the one before it, over
// 1,000 random histories in every mode; folding what is folded changes nothing; and
// every window is one that a server takes.
func TestAppendOnly(t *testing.T) {
	kept, folds, modes := 0, 0, []Mode{Batch, EveryTurn, Off}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 4))
		b := Default
		b.Window, b.Mode, b.Keep, b.Bytes = 2048+r.IntN(8000), modes[seed%3], 1+r.IntN(3), 1.5+3*r.Float64()
		p := parts(nil)
		var before []Message
		for i := range 12 {
			p.Turns = append(p.Turns, drawnTurn(r, fmt.Sprint("obs_", i+1), ReserveOf(b.Window, b.Reserve)))
			was := p.Folds
			p.Folds = b.Next(p)
			if again := b.Next(p); again != p.Folds {
				t.Fatalf("seed %d: folded %+v, and again %+v", seed, p.Folds, again)
			}
			msgs := b.Messages(p)
			if w := b.ledger(p); w.tokens() > b.Usable() {
				t.Fatalf("seed %d: the window folds on by itself", seed)
			}
			if was == p.Folds {
				if kept++; !strings.HasPrefix(dump(msgs), dump(before)) {
					t.Fatalf("seed %d, turn %d: not an extension of the window before", seed, i)
				}
			} else {
				folds++
			}
			sound(t, b, p, msgs)
			before = msgs
		}
	}
	if kept < 3000 || folds < 1000 {
		t.Errorf("%d windows went on from the one before, %d were folded: too few of one sort", kept, folds)
	}
}

// sound: the window is within its budget, UTF-8, begins with the task whole, and
// each result stands behind its call.
func sound(t *testing.T, b Budget, p Parts, msgs []Message) {
	t.Helper()
	if got := b.cost(msgs); got > b.Usable() {
		t.Fatalf("%d tokens of %d: %+v", got, b.Usable(), p.Folds)
	}
	if !strings.HasPrefix(msgs[1].Text, Neutral(valid(p.Task))) || msgs[0].Role != RoleSystem || msgs[1].Role != RoleUser {
		t.Fatalf("the window begins with %q, %q", msgs[0].Text, msgs[1].Text)
	}
	if !utf8.ValidString(dump(msgs)) {
		t.Fatal("the window is not UTF-8")
	}
	for i, m := range msgs {
		if i > 1 && m.Role == RoleUser {
			continue // a word of the person
		}
		if (m.Role == RoleTool) != (i > 1 && msgs[i-1].Role == RoleAssistant) || m.Role == RoleTool && m.ID != msgs[i-1].ID {
			t.Fatalf("message %d is %s %s behind %s %s", i, m.Role, m.ID, msgs[i-1].Role, msgs[i-1].ID)
		}
	}
}

// TestCallsWhole: a model's own call is shown whole or not at all, whatever the
// window: one that is shortened would be copied, marks and all.
func TestCallsWhole(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := Default
		b.Window = 2048 + r.IntN(4000)
		p, calls := parts(nil), map[string]Call{}
		for i := range 20 {
			turn := drawnTurn(r, fmt.Sprint("obs_", i+1), 4000)
			turn.Call.Cmd, turn.Call.Stdin = valid(turn.Call.Cmd), valid(turn.Call.Stdin)
			calls[turn.ID], p.Turns = turn.Call, append(p.Turns, turn)
			p.Folds = b.Next(p)
			for _, m := range b.Messages(p) {
				if m.Call != nil && *m.Call != calls[m.ID] {
					t.Fatalf("seed %d: %s is shown as %+v, and was %+v", seed, m.ID, *m.Call, calls[m.ID])
				}
			}
		}
	}
}

// TestForced: where not even the newest call fits the model is told of it, and not
// left to make it again; and it goes on from there, with the prefix as it was.
func TestForced(t *testing.T) {
	b := Default
	b.Window = 2048
	p := parts([]Turn{
		{ID: "obs_1", Call: Call{Cmd: "ls"}, Output: "a.go\n", Next: "Next command?"},
		{ID: "obs_2", Call: Call{Cmd: "write big.go", Stdin: strings.Repeat("line\n", 1500)}, Output: "big.go has 1,500 lines.", Next: "Next command?"},
	})
	p.Folds = b.Next(p)
	msgs := b.Messages(p)
	if len(msgs) != 2 || !strings.Contains(msgs[1].Text, "[2 older steps are not shown") || !strings.Contains(msgs[1].Text, "[obs_2 folded: `write big.go`") {
		t.Fatalf("the window is\n%s", dump(msgs))
	}
	before := dump(msgs)
	p.Turns = append(p.Turns, Turn{ID: "obs_3", Call: Call{Cmd: "ls"}, Output: "a.go\nbig.go\n", Next: "Next command?"})
	if f := b.Next(p); f != p.Folds {
		t.Fatalf("folded on: %+v", f)
	}
	if now := dump(b.Messages(p)); !strings.HasPrefix(now, before) || !strings.Contains(now, "a.go\nbig.go") {
		t.Errorf("the window is\n%s\nand was\n%s", now, before)
	}
}

// TestFits: words that are never folded are counted before the first request: where
// they fit, every history does.
func TestFits(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		b := Default
		b.Window = 2048 + r.IntN(8000)
		p := parts(nil)
		p.Task = "Do it. " + printed(r, r.IntN(12000))
		if need, have := b.Fits(p.System, p.Task); need > have {
			continue
		}
		p.Turns = []Turn{drawnTurn(r, "obs_1", 8000), drawnTurn(r, "obs_2", 8000)}
		p.Folds = b.Next(p)
		sound(t, b, p, b.Messages(p))
	}
	small := Default
	small.Window = 2048
	if need, have := small.Fits("system", strings.Repeat("a word ", 800)); need <= have {
		t.Errorf("a task of %d tokens fits into %d", need, have)
	}
}

// TestWeight: dense text is known for what it is, with the tokens that two tokenizers
// made of such text (see budget_size.go): none holds less than half of what is
// estimated, noise excepted.
func TestWeight(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		qwen, smollm float64 // bytes a token, measured
	}{
		"source": {source[:4000], 3.68, 2.93},
		"digits": {strings.Repeat("3141592653", 240), 1.00, 1.00},
		"hex":    {strings.Repeat("9f86d081884c7d65", 150), 1.14, 1.12},
		"base64": {strings.Repeat("Zm9v7Yyb0aGVy3RleHQK", 120), 1.36, 1.24},
		"table":  {strings.Repeat("1234,56.78,c\n", 120), 1.07, 1.00},
		"signs":  {strings.Repeat("{}[]();:,.<>+-*/&|!?", 50), 1.51, 1.24},
		"cjk":    {strings.Repeat("让小模型在笔记本电脑上完成真正的工作", 50), 4.78, 1.87},
		"emoji":  {strings.Repeat("😀🎉🚀✅", 100), 3.42, 1.34},
		"row":    {strings.Repeat("=", 2400), 63, 63},
	} {
		for _, per := range []float64{c.qwen, c.smollm} {
			real := float64(len(c.text)) / per
			if est := float64(Default.Tokens(Weight(c.text))); est < real/2 || est > 20 && est > 40*real {
				t.Errorf("%s: estimated %.0f tokens, a tokenizer made %.0f", name, est, real)
			}
		}
	}
	if Weight("") != 0 || Weight("plain words here") != 16 {
		t.Errorf("plain text weighs %d and %d", Weight(""), Weight("plain words here"))
	}
}

// TestCut: what a server read of a request is told from what it left out.
func TestCut(t *testing.T) {
	whole := parts(history(8, 1500))
	msgs := Default.Messages(whole)
	cost := Default.cost(msgs)
	before := parts(whole.Turns[:7])
	_, seen := Default.Cut(before, Default.Messages(before), Default.cost(Default.Messages(before)))
	for _, c := range []struct {
		name   string
		seen   Seen
		tokens int
		cut    bool
		known  bool
	}{
		{"as estimated", seen, cost, false, true},
		{"a tokenizer that makes less of it", Seen{}, cost * 6 / 10, false, true},
		{"a tokenizer that makes more of it", seen, cost * 2, false, true},
		{"most is missing", Seen{}, cost * 3 / 10, true, false},
		{"less than the request before", seen, seen.Tokens - 200, true, false},
		{"only what was new is counted", seen, cost - seen.Cost + 450, false, false},
		{"nothing is counted", seen, 0, false, false},
	} {
		b := Default
		b.Seen = c.seen
		if got, now := b.Cut(whole, msgs, c.tokens); got != c.cut || (now.Tokens > 0) != c.known {
			t.Errorf("%s: %d tokens of %d, before %d: %v, %+v", c.name, c.tokens, cost, c.seen.Tokens, got, now)
		}
	}
	b := Default
	b.Seen, whole.Folds.Folded = seen, 5
	if cut, _ := b.Cut(whole, b.Messages(whole), b.cost(b.Messages(whole))); cut {
		t.Error("a window that was folded is smaller, and taken for one that was cut")
	}
}
