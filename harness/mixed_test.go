package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"testing"

	window "tether/context"
	"tether/harness"
	"tether/memory"
)

// A mixer is a pure model of a server with a window of its own: what it answers, how
// it counts and what it refuses follows from the request alone. It uses all that a
// session can have in its window, and changes no file.
type mixer struct{ seed uint64 }

func (m mixer) Reply(_ context.Context, r window.Request, _ func(string)) (window.Reply, error) {
	sum := fnv.New64a()
	fmt.Fprintln(sum, m.seed, r.Fresh, r.Without, r.Prose)
	for _, msg := range r.Messages {
		fmt.Fprintln(sum, show(msg), msg.Thought)
	}
	n := int(sum.Sum64() >> 1)
	tokens := window.Size(r.Messages) * 10 / (27 + n%9)
	if holds := 3600 - int(m.seed%3)*300; tokens > holds {
		return window.Reply{Overflow: holds}, errOverflow
	}
	reply := window.Reply{Sent: fmt.Sprint(n), Shape: []string{"tools", "schema done", "schema"}[m.seed%3], Model: "mixer"}
	reply.Usage = window.Usage{Prompt: tokens, Output: 1 + n%50}
	if r.Prose {
		reply.Text = fmt.Sprintf("The odd file was read, and story %d is told of it.", n%1000)
		return reply, nil
	}
	if n%5 == 0 {
		reply.Thought = fmt.Sprintf(`{"thinking":"thought %d"}`, n%1000)
	}
	if n%31 == 7 { // the server has loaded the model anew, with less room
		reply.Window = 4500
	}
	one, two := mixed(n/32), mixed(n/4096)
	switch n / 7 % 12 {
	case 0:
		reply.Text, reply.Nudge = fmt.Sprintf("I think that %d is right.\xff", n%100), "That was no command."
	case 1, 2:
		reply.Calls = []window.Call{one, two}
	default:
		reply.Calls = []window.Call{one}
	}
	return reply, nil
}

// mixed is a call that changes no file.
func mixed(n int) window.Call {
	k := n / 16 % 400
	switch n % 16 {
	case 0:
		return window.Call{Cmd: fmt.Sprintf("mem pin the number is %d", k)}
	case 1:
		return window.Call{Cmd: "mem pin", Stdin: fmt.Sprintf("the <|im_end|> of %d\x00", k)}
	case 2, 3:
		return window.Call{Cmd: fmt.Sprintf("mem recall obs_%d", 1+k%20)}
	case 4:
		return window.Call{Cmd: "mem search story text"}
	case 5:
		return window.Call{Cmd: fmt.Sprintf("grep -n text odd.txt | head -%d", k%60)}
	case 6:
		return window.Call{Cmd: fmt.Sprintf("read gone_%d", k)}
	case 7:
		return window.Call{Cmd: `done {"ok":1}`}
	case 8:
		return window.Call{Cmd: "done", Stdin: fmt.Sprintf(`{"ok":true,"why":"number %d"}`, k)}
	case 9:
		return window.Call{Cmd: "sleep 0; printf '%s' waiting"}
	}
	return window.Call{Cmd: fmt.Sprintf("read odd.txt %d:%d", k+1, k+40+k%60)}
}

// mixing sets all that there is.
func mixing(seed uint64) func(*harness.Agent) {
	return func(a *harness.Agent) {
		a.Budget.Window, a.Budget.Reserve = 5000, 500
		a.Budget.Mode = []window.Mode{window.Batch, window.Batch, window.EveryTurn, window.Off}[seed%4]
		a.Compact, a.Project, a.Limits.Steps = seed%3 != 2, true, 15
		a.Gates = []harness.Gate{{Cmd: "test -f never"}}
		form, err := harness.ParseForm([]byte(`{"type":"object","required":["ok","why"],"properties":{"ok":{"type":"boolean"},"why":{"type":"string"}}}`))
		if a.Form = form; err != nil {
			panic(err)
		}
	}
}

// carry takes the session of p to its end, from wherever it is: 15 steps, a word of
// the person, and 15 more.
func (p *place) carry(m harness.Model) {
	p.t.Helper()
	h := p.history()
	said := func(h harness.History) bool {
		return slices.ContainsFunc(h.Turns, func(t window.Turn) bool { return t.User != "" })
	}
	var ended *harness.EndedError
	if !said(h) {
		if h.Outcome == nil {
			if _, err := p.resume(m, nil); err != nil && !errors.As(err, &ended) && !errors.Is(err, errOverflow) {
				p.t.Fatal(err)
			}
			h = p.history()
		}
		a, end := p.agent(m)
		if err := h.Say(p.t.Context(), a.Store, p.session.ID, "Mind the <|im_start|>port,\nand go on."); err != nil {
			p.t.Fatal(err)
		}
		end()
	}
	if h = p.history(); h.Outcome == nil || said(h) {
		if _, err := p.resume(m, nil); err != nil && !errors.As(err, &ended) && !errors.Is(err, errOverflow) {
			p.t.Fatal(err)
		}
	}
}

// cut makes the session a new one with some events of it.
func (p *place) cut(events []memory.Event) *place {
	p.t.Helper()
	q := *p
	a, end := p.agent(nil)
	defer end()
	var err error
	if q.session, err = a.Store.Adopt(p.t.Context(), "", events, "cut"); err != nil {
		p.t.Fatal(err)
	}
	return &q
}

// halfway says whether the newest of events are a part of something: a command without
// its turn, the first of several calls, a request for a summary without its record.
func halfway(events []memory.Event) bool {
	turned := false
	for _, e := range slices.Backward(events) {
		switch e.Kind {
		case "intent":
			if !turned {
				return true
			}
		case "turn":
			turned = true
		case "reply":
			var r harness.Received
			if json.Unmarshal(e.Body, &r) == nil && turned && len(r.Calls) > 1 {
				return true
			}
		case "vain", "message", "setup", "resume", "stop", "compact":
			return false
		case "request":
			var s harness.Sent
			return json.Unmarshal(e.Body, &s) == nil && s.Summary != nil
		}
	}
	return false
}

// TestMixed: whatever a session holds (summaries, folds, pins, what was recalled,
// thoughts, notes of the project, reports that do not fit, gates, refused requests, a
// server with less room, a word of the person), and wherever it is killed, every
// window comes out of the log as it was sent. Unless it was killed in the middle of
// something, it asks on as if it never had been.
func TestMixed(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(6) {
		p := newPlace(t, mixing(seed))
		if err := os.WriteFile(filepath.Join(p.ws, "AGENTS.md"), []byte("Use <tabs>.\n```\nnever \"spaces\"\n```\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		rec := &recorded{Model: mixer{seed}}
		if _, err := p.do(rec); err != nil && !errors.Is(err, errOverflow) {
			t.Fatal(err)
		}
		p.carry(rec)
		h, events := p.history(), p.events()
		same(t, fmt.Sprintf("seed %d", seed), h, rec.requests)
		kinds["summaries"] += len(h.Compacted)
		kinds["folds"] += h.Sent[len(h.Sent)-1].Folds.Folded
		for i, turn := range h.Turns {
			for name, is := range map[string]bool{"pin": turn.Pin, "recall": turn.Recall, "thought": turn.Thought != "", "user": turn.User != "", "how " + h.Steps[i].How: true, "gate": h.Steps[i].Shown} {
				if is {
					kinds[name]++
				}
			}
		}
		for _, r := range h.Received {
			if r.Overflow > 0 {
				kinds["overflow"]++
			}
			if r.Holds > 0 {
				kinds["holds"]++
			}
		}
		asked, sent := windows(t, h), 0
		for i, e := range events {
			if e.Kind == "request" {
				sent++
			}
			if i < 2 || i == len(events)-1 || (i+7*int(seed))%37 != 0 {
				continue
			}
			name := fmt.Sprintf("seed %d killed after event %d (%s)", seed, i, e.Kind)
			q, again := p.cut(events[:i+1]), &recorded{Model: mixer{seed}}
			q.carry(again)
			h := q.history()
			same(t, name, h, append(slices.Clone(rec.requests[:sent]), again.requests...))
			if !halfway(events[:i+1]) {
				kinds["same"]++
				sameRequests(t, name, windows(t, h), asked)
			}
		}
	}
	t.Log(kinds)
	for _, name := range []string{"summaries", "folds", "pin", "recall", "thought", "user", "how missed", "how unfit", "how repeated", "overflow", "holds", "same"} {
		if kinds[name] == 0 {
			t.Errorf("nothing had any of: %s", name)
		}
	}
}
