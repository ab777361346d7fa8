package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	window "tether/context"
	"tether/harness"
)

var errOverflow = errors.New("the prompt is too long")

// A narrow model is one whose server holds less than it said: size bytes, which
// it calls holds tokens. It refuses at most so many requests in a row.
type narrow struct {
	harness.Model
	size, holds, refusals int
}

func (m *narrow) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	if window.Size(r.Messages) > m.size && m.refusals > 0 {
		m.refusals--
		return window.Reply{Overflow: m.holds}, errOverflow
	}
	return m.Model.Reply(ctx, r, stream)
}

// long is a model that looks at ever more.
type long int

func (m *long) Reply(context.Context, window.Request, func(string)) (window.Reply, error) {
	*m++
	return window.Reply{Calls: []window.Call{{Cmd: fmt.Sprintf("read odd.txt %d:%d", *m, 60+*m)}}}, nil
}

// TestOverflow: a server that holds less than it said is asked again with the
// past folded, and the log shows both windows as they were sent.
func TestOverflow(t *testing.T) {
	for name, holds := range map[string]int{"it says how much it holds": 4000, "it holds what it said and counts otherwise": 8192} {
		t.Run(name, func(t *testing.T) {
			m := &recorded{Model: &narrow{new(long), 7000, holds, 9}}
			h := replayed(t, m, func(a *harness.Agent) { a.Limits.Steps = 12 })
			same(t, name, h, m.requests)
			if h.Outcome.Stop != harness.Steps || h.Outcome.Steps != 12 {
				t.Errorf("the run ended with %s after %d steps: %s", h.Outcome.Stop, h.Outcome.Steps, h.Outcome.Error)
			}
			i := 0
			for i < len(h.Received) && h.Received[i].Overflow != holds {
				i++
			}
			if i+1 >= len(h.Sent) || h.Sent[i+1].Folds.Folded <= h.Sent[i].Folds.Folded || h.Sent[i+1].Turns != h.Sent[i].Turns {
				t.Errorf("after request %d of %+v nothing was folded", i+1, h.Sent)
			}
		})
	}
}

// A silent model is one whose server holds so many tokens, leaves out the beginning of
// what is longer, and answers the rest as if nothing were amiss.
type silent struct {
	harness.Model
	holds int
}

func (m *silent) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	reply, err := m.Model.Reply(ctx, r, stream)
	n := 0
	for _, msg := range r.Messages {
		n += (len(msg.Text)+4)/4 + 10
	}
	if reply.Usage.Prompt = n; n > m.holds {
		reply.Usage.Prompt = m.holds - 40
		reply.Calls = []window.Call{{Cmd: "write lost.txt", Stdin: "the task is gone"}}
	}
	return reply, err
}

// TestTruncated: a server that cuts a request without a word is found by what it
// counted. Nothing of its answer is run, the past is folded and it is asked once more,
// and the log shows both windows as they were sent.
func TestTruncated(t *testing.T) {
	m := &recorded{Model: &silent{new(long), 2600}}
	var warned []string
	h := replayed(t, m, func(a *harness.Agent) {
		a.Limits.Steps = 14
		a.Notify = func(e harness.Event) {
			if e.Type == harness.EventWarning {
				warned = append(warned, e.Output)
			}
		}
	})
	same(t, "a server that cuts", h, m.requests)
	if h.Outcome.Stop != harness.Steps || h.Outcome.Steps != 14 {
		t.Errorf("the run ended with %s after %d steps: %s", h.Outcome.Stop, h.Outcome.Steps, h.Outcome.Error)
	}
	i := slices.IndexFunc(h.Received, func(r harness.Received) bool { return r.Overflow > 0 })
	if i < 0 || i+1 >= len(h.Sent) || h.Sent[i+1].Folds.Folded <= h.Sent[i].Folds.Folded || h.Sent[i+1].Window > 2600 {
		t.Fatalf("nothing was folded: %+v", h.Sent)
	}
	if len(warned) == 0 || !strings.Contains(warned[0], "cut the request without saying so") {
		t.Errorf("the person was told %q", warned)
	}
	for _, turn := range h.Turns {
		if strings.Contains(turn.Call.Cmd, "lost") {
			t.Errorf("the answer to a part of the request was run: %+v", turn.Call)
		}
	}
}

// TestTruncatedInVain: a server that cuts what cannot be folded ends the run with an
// error that names both numbers.
func TestTruncatedInVain(t *testing.T) {
	a, _ := agent(t, t.TempDir(), "/dev/null")
	m := &recorded{Model: &silent{new(long), 1000}}
	a.Model, a.Setup.System = m, strings.Repeat("You work in a folder by commands. ", 900)
	a.Budget.Window = 32768 // and the server has less, and does not say so
	out, err := a.Do(t.Context(), "Look around.")
	var cut *harness.TruncatedError
	if !errors.As(err, &cut) || cut.Read != 960 || cut.Sent < 7000 || len(m.requests) != 1 {
		t.Errorf("after %d requests: %v", len(m.requests), err)
	}
	if !strings.Contains(out.Error, "it read 960 tokens") || out.Steps != 1 || len(history(t, a).Turns) != 0 {
		t.Errorf("outcome %+v", out)
	}
}

// A smaller model is one whose server says after its first reply that it holds less
// than it was asked for.
type smaller struct {
	harness.Model
	said bool
}

func (m *smaller) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	reply, err := m.Model.Reply(ctx, r, stream)
	if !m.said {
		m.said, reply.Window = true, 4096
	}
	return reply, err
}

// TestHolds: from the word of its server on a window is smaller, also for who replays
// the log or goes on with the session.
func TestHolds(t *testing.T) {
	m := &recorded{Model: &smaller{new(long), false}}
	h := replayed(t, m, func(a *harness.Agent) { a.Limits.Steps = 8 })
	same(t, "a smaller server", h, m.requests)
	if h.Sent[0].Window != 8192 || h.Sent[1].Window != 4096 || h.Sent[7].Window != 4096 {
		t.Errorf("the windows were %d, %d and %d tokens", h.Sent[0].Window, h.Sent[1].Window, h.Sent[7].Window)
	}
}

// TestOverflowTwice: what is too much also when folded is an error that says
// what to do, and it is asked about twice, not more often; what cannot be folded is
// asked about once.
func TestOverflowTwice(t *testing.T) {
	for _, c := range []struct {
		fits, holds, requests int
		words                 string
	}{
		{0, 512, 1, "nothing is left to fold"},
		{3000, 1500, 3 + 2, "still too much"},
	} {
		a, _ := agent(t, t.TempDir(), "/dev/null")
		if err := os.WriteFile(filepath.Join(a.Shell.Env.Box.Policy().Root, "odd.txt"), []byte(odd), 0o644); err != nil {
			t.Fatal(err)
		}
		refusing := &narrow{new(long), c.fits, c.holds, 9}
		m := &recorded{Model: refusing}
		a.Model, a.Budget.Elide = m, 900
		a.Notify = func(e harness.Event) {
			if e.Type == harness.EventWarning && c.fits > 0 {
				refusing.size = 0 // from now on nothing fits
			}
		}
		out, err := a.Do(t.Context(), "Look around.")
		if !errors.Is(err, errOverflow) || !strings.Contains(fmt.Sprint(err), "give the server a larger window") || len(m.requests) < c.requests-1 || len(m.requests) > c.requests+1 {
			t.Errorf("after %d requests: %v", len(m.requests), err)
		}
		if out.Stop != harness.Failed || !strings.Contains(out.Error, c.words) {
			t.Errorf("outcome %+v", out)
		}
		h, refused := history(t, a), 0
		for i, r := range h.Received {
			if r.Overflow > 0 {
				refused++
			}
			if i > 0 && r.Overflow > 0 && reflect.DeepEqual(m.requests[i], m.requests[i-1]) {
				t.Errorf("request %d is the one before it, which was refused", i+1)
			}
		}
		if want := min(c.requests, 2); refused != want {
			t.Errorf("%d requests were refused, want %d: %+v", refused, want, h.Received)
		}
	}
}

// TestHoldsAfterResume: a session that is taken up again and again keeps to what its
// server holds, until it is asked for another window.
func TestHoldsAfterResume(t *testing.T) {
	asked, steps := 5000, 2
	p := newPlace(t, func(a *harness.Agent) { a.Budget.Window, a.Limits.Steps = asked, steps })
	m := &tape{replies: calls("read odd.txt 1:2", "read odd.txt 2:3", "read odd.txt 3:4", "read odd.txt 4:5", "read odd.txt 5:6", "read odd.txt 6:7")}
	m.replies[0].Window = 4500
	if _, err := p.do(m); err != nil {
		t.Fatal(err)
	}
	for _, again := range []struct{ asked, want int }{{5000, 4500}, {5000, 4500}, {6000, 6000}} {
		asked, steps = again.asked, steps+1
		if _, err := p.resume(m, nil); err != nil {
			t.Fatal(err)
		}
		h := p.history()
		if got := h.Sent[len(h.Sent)-1].Window; got != again.want {
			t.Errorf("asked for %d, request %d is for a window of %d, want %d", again.asked, len(h.Sent), got, again.want)
		}
		if asked == 6000 { // killed as soon as it was taken up
			events := p.events()
			for events[len(events)-1].Kind != "resume" {
				events = events[:len(events)-1]
			}
			p = p.cut(events)
			if _, err := p.resume(m, nil); err != nil {
				t.Fatal(err)
			}
			if h := p.history(); h.Sent[len(h.Sent)-1].Window != 6000 {
				t.Errorf("after a kill the window is %d", h.Sent[len(h.Sent)-1].Window)
			}
		}
	}
}
