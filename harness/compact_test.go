package harness_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	window "tether/context"
	"tether/harness"
	"tether/memory"
)

// A teller is a model that writes a summary when it is asked for one.
type teller struct {
	harness.Model
	tell  func(n int) (window.Reply, error) // of the nth request for a summary
	asked int
}

func (m *teller) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	if !r.Prose {
		return m.Model.Reply(ctx, r, stream)
	}
	m.asked++
	return m.tell(m.asked)
}

// story is a reply that is a summary.
func story(n int) (window.Reply, error) {
	return window.Reply{Text: fmt.Sprintf("Story %d: the odd file was read, and it holds some text.", n), Usage: window.Usage{Prompt: 900, Cached: 100, CacheTold: true, Output: 20}}, nil
}

// compacting sets a small window and summaries.
func compacting(a *harness.Agent) {
	a.Compact, a.Budget.Window, a.Budget.Reserve, a.Limits.Steps = true, 4500, 500, 40
}

// TestCompact: summaries come before anything is folded, the log tells each window
// as it was sent, and what the requests for them cost is counted.
func TestCompact(t *testing.T) {
	m := &teller{Model: new(long), tell: story}
	rec := &recorded{Model: m}
	h := replayed(t, rec, compacting)
	same(t, "compact", h, rec.requests)
	if m.asked < 2 || len(h.Compacted) != m.asked {
		t.Fatalf("%d summaries were asked for, the log has %+v", m.asked, h.Compacted)
	}
	if want := (harness.Count{Prompt: 900 * m.asked, Cached: 100 * m.asked, Output: 20 * m.asked, CacheTold: true}); h.Tokens != want || h.Outcome.Tokens != want {
		t.Errorf("tokens %+v and %+v, want %+v", h.Tokens, h.Outcome.Tokens, want)
	}
	if h.Outcome.Steps != 40 || len(h.Turns) != 40 {
		t.Errorf("%d steps and %d turns: a request for a summary is none", h.Outcome.Steps, len(h.Turns))
	}
	at := 0
	for i, c := range h.Compacted {
		if c.From < at || c.To > c.Turns-2 || c.First != h.Turns[c.From].ID || c.Last != h.Turns[c.To-1].ID || h.Sent[c.N-1].Summary == nil {
			t.Errorf("summary %d: %+v", i, c)
		}
		at = c.To
	}
	last := rec.requests[len(rec.requests)-1].Messages
	if text := last[1].Text; !strings.HasPrefix(text, "Write <some> \"files\".") || !strings.Contains(text, fmt.Sprintf("Story %d: ", m.asked)) || strings.Contains(text, "Story 1") != (m.asked <= 2) || !strings.Contains(text, "[obs_1 to obs_") {
		t.Errorf("the task is shown as\n%s", text)
	}
}

// TestCompactLeavesTheLog: the log before a summary is the same, byte for byte, and
// what was summarised can be recalled.
func TestCompactLeavesTheLog(t *testing.T) {
	a, _ := agent(t, t.TempDir(), "/dev/null")
	var before []memory.Event
	a.Model = &teller{Model: new(long), tell: func(n int) (window.Reply, error) {
		if n == 1 {
			var err error
			if before, err = a.Store.Events(t.Context(), a.Session.ID); err != nil {
				t.Fatal(err)
			}
		}
		return story(n)
	}}
	compacting(a)
	write(t, a, "odd.txt", odd)
	if _, err := a.Do(t.Context(), "Look around."); err != nil {
		t.Fatal(err)
	}
	after, err := a.Store.Events(t.Context(), a.Session.ID)
	if err != nil || len(before) == 0 {
		t.Fatal(len(before), err)
	}
	for i, e := range before {
		if got := after[i]; got.Seq != e.Seq || got.Kind != e.Kind || !bytes.Equal(got.Body, e.Body) {
			t.Fatalf("event %d was %s %s and is %s %s", i, e.Kind, e.Body, got.Kind, got.Body)
		}
	}
	h := history(t, a)
	for _, turn := range h.Turns[h.Compacted[0].From:h.Compacted[0].To] {
		if o, err := a.Store.Recall(t.Context(), a.Session.ID, turn.ID); err != nil || o.Output != turn.Output {
			t.Errorf("%s: %v, %q", turn.ID, err, o.Output)
		}
	}
}

// write makes a file in the workspace of a.
func write(t *testing.T, a *harness.Agent, name, text string) {
	t.Helper()
	if err := a.Shell.Env.Box.Files().WriteFile(name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestCompactFails: a summary that does not come, whatever comes in its place,
// leaves the turns to be folded. No turn is asked about twice.
func TestCompactFails(t *testing.T) {
	for name, tell := range map[string]func(int) (window.Reply, error){
		"empty": func(int) (window.Reply, error) { return window.Reply{Text: " \n"}, nil },
		"a call": func(int) (window.Reply, error) {
			return window.Reply{Text: "done", Calls: []window.Call{{Cmd: "done"}}}, nil
		},
		"overflow": func(int) (window.Reply, error) { return window.Reply{Overflow: 3500}, errOverflow },
		"an error": func(int) (window.Reply, error) {
			return window.Reply{Partial: "The"}, errors.New("the server went away")
		},
		"no reply": func(int) (window.Reply, error) { return window.Reply{}, errors.New("the server went away") },
	} {
		t.Run(name, func(t *testing.T) {
			m := &teller{Model: new(long), tell: tell}
			rec := &recorded{Model: m}
			warned := 0
			h := replayed(t, rec, func(a *harness.Agent) {
				compacting(a)
				a.Notify = func(e harness.Event) {
					if strings.HasPrefix(e.Output, "there is no summary") {
						warned++
					}
				}
			})
			same(t, name, h, rec.requests)
			if h.Outcome.Stop != harness.Steps || len(h.Turns) != 40 || len(h.Compacted) != 0 {
				t.Errorf("%s after %d turns, %+v", h.Outcome.Stop, len(h.Turns), h.Compacted)
			}
			if last := h.Sent[len(h.Sent)-1]; m.asked == 0 || m.asked > 12 || warned != m.asked || last.Folds.Folded == 0 {
				t.Errorf("asked %d times, warned %d times, folded %+v", m.asked, warned, last.Folds)
			}
			to := 0
			for _, s := range h.Sent {
				if s.Summary != nil && s.Summary.From < to {
					t.Errorf("turn %d is asked about again", s.Summary.From)
				} else if s.Summary != nil {
					to = s.Summary.To
				}
			}
		})
	}
}

// TestCompactOnOverflow: a server that holds less than it said is recovered from
// once, with a summary; and the steps are not given back.
func TestCompactOnOverflow(t *testing.T) {
	m := &teller{Model: &narrow{new(long), 5000, 3000, 1}, tell: story}
	rec := &recorded{Model: m}
	h := replayed(t, rec, func(a *harness.Agent) {
		a.Compact, a.Limits.Steps = true, 12
	})
	same(t, "overflow", h, rec.requests)
	i := 0
	for i < len(h.Received) && h.Received[i].Overflow == 0 {
		i++
	}
	if i+2 >= len(h.Sent) || h.Sent[i+1].Summary == nil || h.Sent[i+2].Summary != nil || h.Sent[i+2].Turns != h.Sent[i].Turns || h.Outcome.Steps != 12 {
		t.Fatalf("request %d of %+v is not followed by a summary and the same again; %d steps", i+1, h.Sent, h.Outcome.Steps)
	}
}

// TestCompactInterrupted: a stop between two spans keeps what is summarised, and
// the session goes on from there with the same windows.
func TestCompactInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &teller{Model: new(long)}
	m.tell = func(n int) (window.Reply, error) {
		if n == 2 {
			cancel(harness.ErrInterrupted)
			return window.Reply{}, ctx.Err()
		}
		return story(n)
	}
	a, _ := agent(t, t.TempDir(), "/dev/null")
	rec := &recorded{Model: m}
	a.Model = rec
	compacting(a)
	a.Setup.System = "System."
	write(t, a, "odd.txt", odd)
	if out, err := a.Do(ctx, "Look around."); out.Stop != harness.Interrupted || err != nil {
		t.Fatalf("%s, %v", out.Stop, err)
	}
	h := history(t, a)
	if len(h.Compacted) != 1 {
		t.Fatalf("%+v", h.Compacted)
	}
	if out, err := a.Resume(t.Context(), &h); out.Stop != harness.Steps || err != nil {
		t.Fatalf("%s, %v", out.Stop, err)
	}
	h = history(t, a)
	same(t, "resumed", h, rec.requests)
	if len(h.Compacted) < 2 || m.asked != len(h.Compacted)+1 {
		t.Errorf("%d summaries of %d", len(h.Compacted), m.asked)
	}
}

// TestCompactReplay: random sessions with summaries, folds, recalls and words of a
// person in between come out of the log as they were sent.
func TestCompactReplay(t *testing.T) {
	told := 0
	for seed := range uint64(6) {
		draw := rand.New(rand.NewPCG(seed, 7))
		m := &recorded{Model: &teller{Model: scribe{draw}, tell: func(n int) (window.Reply, error) {
			if draw.IntN(3) == 0 {
				return window.Reply{}, errors.New("no")
			}
			return window.Reply{Text: scribe{draw}.words(60) + " and that was all of it."}, nil
		}}}
		m.tokens = func(n int) int { return n * 10 / (25 + len(m.requests)%20) }
		h := replayed(t, m, func(a *harness.Agent) {
			a.Compact, a.Budget.Window, a.Budget.Reserve, a.Limits.Steps = true, 2500+300*int(seed), 500, 25
		})
		told += len(h.Compacted)
		same(t, fmt.Sprintf("seed %d", seed), h, m.requests)
	}
	if told == 0 {
		t.Error("nothing was summarised")
	}
}

// TestCompactBroken: a compaction that a log cannot have stands for nothing, and is
// told.
func TestCompactBroken(t *testing.T) {
	log := func(body string) []memory.Event {
		return []memory.Event{
			event("setup", `{"system":"S","prompt":"P","budget":{"Window":8192}}`),
			event("observation", `{"id":"obs_1","cmd":"ls","output":"a\n"}`), event("turn", `{"obs":"obs_1","next":"Next?","step":1}`),
			event("compact", body), event("request", `{"n":1,"turns":1,"summaries":1}`),
		}
	}
	for _, body := range []string{`{"from":0,"to":2}`, `{"from":-1,"to":1}`, `{"from":1,"to":1}`, `{`, `{"from":"x"}`} {
		h := harness.Replay(log(body))
		req, err := h.Window(1)
		if len(h.Bad) != 1 || err != nil || len(req.Messages) != 4 {
			t.Errorf("%s: %v, %v, %+v", body, h.Bad, err, req.Messages)
		}
	}
	h := harness.Replay(log(`{"from":0,"to":1,"text":"It was."}`))
	if req, err := h.Window(1); err != nil || len(h.Bad) > 0 || len(req.Messages) != 2 {
		t.Errorf("%v, %v, %+v", err, h.Bad, req)
	}
	h = harness.Replay(append(log(`{}`), event("request", `{"n":2,"turns":1,"summary":{"from":0,"to":9}}`)))
	if _, err := h.Window(2); err == nil {
		t.Error("a request for a summary of turns that are not there has a window")
	}
}

// A jumper looks at ever more, and once, when the window is nearly 85 % full, at so much
// that it passes a band.
type jumper struct {
	long
	b     *window.Budget
	jumps int
}

func (m *jumper) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	if full := m.b.Full(r.Messages); m.jumps > 0 && full >= 81 && full < 85 {
		m.jumps--
		return window.Reply{Calls: []window.Call{{Cmd: "read odd.txt 1:700"}}}, nil
	}
	return m.long.Reply(ctx, r, stream)
}

// TestRemind: near the end of the window the model is told to come to an end, once
// for each band and once for a jump over several, where it arose.
func TestRemind(t *testing.T) {
	for name, c := range map[string]struct {
		jumps int
		want  []int // the bands
	}{"step by step": {0, []int{85, 90, 95}}, "a jump": {1, []int{90, 95}}} {
		t.Run(name, func(t *testing.T) {
			a, _ := agent(t, t.TempDir(), "/dev/null")
			a.Model, a.Limits.Steps = &jumper{b: &a.Budget, jumps: c.jumps}, 80
			a.Budget.Window, a.Budget.Elide, a.Budget.Head, a.Budget.Tail, a.Budget.Fold, a.Budget.Low = 16384, 40_000, 100, 100, 0.99, 0.4
			write(t, a, "odd.txt", odd)
			if _, err := a.Do(t.Context(), "Look around."); err != nil {
				t.Fatal(err)
			}
			h := history(t, a)
			var got []int
			for i, turn := range h.Turns {
				line, text, ok := strings.Cut(turn.Next, "\nThe window is ")
				var percent int
				if _, err := fmt.Sscanf(text, "%d %% full. Start nothing new", &percent); ok && (err != nil || line == "") {
					t.Errorf("turn %d: %q", i, turn.Next)
				} else if ok {
					got = append(got, percent/5*5)
				}
			}
			if last := h.Sent[len(h.Sent)-1]; !reflect.DeepEqual(got, c.want) || last.Folds.Folded == 0 {
				t.Errorf("reminded in the bands %d, want %d; folded %+v", got, c.want, last.Folds)
			}
		})
	}
}
