package harness_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// TestOverflowTwice: what is too much also when folded is an error that says
// what to do, and it is asked about twice, not more often.
func TestOverflowTwice(t *testing.T) {
	a, _ := agent(t, t.TempDir(), "/dev/null")
	m := &recorded{Model: &narrow{new(long), 0, 512, 9}}
	a.Model = m
	out, err := a.Do(t.Context(), "Look around.")
	if !errors.Is(err, errOverflow) || !strings.Contains(fmt.Sprint(err), "give the server a larger window") || len(m.requests) != 2 {
		t.Errorf("after %d requests: %v", len(m.requests), err)
	}
	if out.Stop != harness.Failed || !strings.Contains(out.Error, "still too much") {
		t.Errorf("outcome %+v", out)
	}
	if h := history(t, a); !reflect.DeepEqual([]int{h.Received[0].Overflow, h.Received[1].Overflow}, []int{512, 512}) {
		t.Errorf("the log has %+v", h.Received)
	}
}
