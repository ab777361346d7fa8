package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"testing"

	window "tether/context"
	"tether/harness"
	"tether/memory"
)

// A pure model answers the same to the same request, whoever asks and when.
type pure struct{}

func (pure) Reply(_ context.Context, r window.Request, _ func(string)) (window.Reply, error) {
	sum := fnv.New32()
	for _, m := range r.Messages {
		fmt.Fprintln(sum, show(m))
	}
	n := int(sum.Sum32() % 500)
	reply := window.Reply{Calls: []window.Call{{Cmd: fmt.Sprintf("read odd.txt %d:%d", n+1, n+70)}}, Sent: fmt.Sprint(n)}
	if r.Prose {
		reply.Calls, reply.Text = nil, fmt.Sprintf("The odd file was read, and story %d is told of it.", n)
	}
	reply.Usage.Prompt = window.Size(r.Messages) * 10 / (28 + n%9)
	return reply, nil
}

// windows are the requests of h, each once also if it was sent again.
func windows(t *testing.T, h harness.History) []window.Request {
	t.Helper()
	var all []window.Request
	for i := range h.Sent {
		r, err := h.Window(i + 1)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(all); n == 0 || !reflect.DeepEqual(all[n-1], r) {
			all = append(all, r)
		}
	}
	return all
}

// TestCompactKilled: a session that was killed at any event asks, taken up again,
// for the same bytes as one that never was, summaries and all. Only a kill between
// the request for a summary and its record costs that summary, and no other.
func TestCompactKilled(t *testing.T) {
	p := newPlace(t, compacting)
	p.set = func(a *harness.Agent) { compacting(a); a.Limits.Steps = 18 }
	want, err := p.do(pure{})
	if err != nil || want.Stop != harness.Steps {
		t.Fatal(want, err)
	}
	whole, events := p.session, p.events()
	asked, first := windows(t, p.history()), p.history()
	if len(first.Compacted) < 2 || want.Folds < 2 {
		t.Fatalf("%d summaries, %d folds", len(first.Compacted), want.Folds)
	}
	lost, near := 0, 0
	for i := 2; i < len(events)-1; i++ {
		open := between(events[:i])
		switch {
		case open || events[i-1].Kind == "compact":
			near++
		case i%9 != 0:
			continue
		}
		p.session = whole
		n := 0
		p.become(func(e memory.Event) any {
			if n++; n < i {
				return e.Body
			}
			return nil
		})
		got, err := p.resume(pure{}, nil)
		if err != nil || got.Stop != harness.Steps || got.Steps != want.Steps {
			t.Fatalf("killed after event %d (%s): %+v, %v", i, events[i-1].Kind, got, err)
		}
		h := p.history()
		if !open {
			sameRequests(t, fmt.Sprintf("killed after event %d (%s)", i, events[i-1].Kind), windows(t, h), asked)
			if got.Folds != want.Folds {
				t.Errorf("killed after event %d: %d folds, want %d", i, got.Folds, want.Folds)
			}
			continue
		}
		lost++
		at := 0
		for _, s := range h.Sent {
			if s.Summary != nil && s.Summary.From < at {
				t.Errorf("killed after event %d: turn %d is asked about again", i, s.Summary.From)
			} else if s.Summary != nil {
				at = s.Summary.To
			}
		}
		if len(h.Compacted) == 0 && len(first.Compacted) > 2 {
			t.Errorf("killed after event %d: no summary at all", i)
		}
	}
	if lost < 4 || near < 6 {
		t.Errorf("%d kills in the middle of a summary, %d near one", lost, near)
	}
}

// between says whether the newest of events belong to a summary that is not
// recorded.
func between(events []memory.Event) bool {
	for i := len(events) - 1; i >= 0; i-- {
		switch events[i].Kind {
		case "request":
			var s harness.Sent
			return json.Unmarshal(events[i].Body, &s) == nil && s.Summary != nil
		case "reply":
		default:
			return false
		}
	}
	return false
}
