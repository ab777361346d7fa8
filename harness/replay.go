package harness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tether/act"
	window "tether/context"
	"tether/memory"
)

// A History is a session as its log tells it.
type History struct {
	Setup    Setup // with what later runs of the session changed
	Turns    []window.Turn
	Steps    []Turned // one a turn
	Sent     []Sent
	Received []Received   // by request; one that got no reply has an empty Sent, at the end it may be missing
	Unknown  *Intended    // a command that was begun and has no observation
	Outcome  *Outcome     // nil while a run goes on, or if it was killed
	Gates    []GateResult // how each gate stood last
	Tokens   Count        // of all requests
	Bad      []Bad        // events that could not be read
	Asked    []Asked      // of the network, and what it answered

	Compacted []Compacted // in order; one that could not be read has no turns

	state
	observed map[string]memory.Observation
	orphan   string        // the observation of a command that has no turn yet
	gate     bool          // a gate has failed since the newest turn
	begun    int           // requests before the newest run
	answered int           // replies of the model that was asked last
	tree     string        // how the newest run left the workspace; "" if it was killed
	spoken   bool          // a person has said something since the newest run
	earlier  time.Duration // of the runs before the newest one
	began    time.Time     // the newest run, and
	newest   time.Time     // what it did last
}

// A Bad event is one whose body is not what its kind says. The rest of the
// session is good without it.
type Bad struct {
	Seq  int64
	Kind string
	Err  error
}

// Replay reads the events of one session. An event that cannot be read is left
// out, or stands for what it must have been, and is in Bad.
func Replay(events []memory.Event) History {
	var h History
	for _, e := range events {
		h.add(e)
	}
	return h
}

// add takes the next event.
func (h *History) add(e memory.Event) {
	switch e.Kind {
	case kindIntent, kindTurn, kindVain, kindMessage:
		h.pending = nil // it was taken, or is no longer an answer to what is asked
	}
	switch e.Kind {
	case kindSetup, kindResume:
		h.earlier, h.began, h.newest = h.spent(), e.At, e.At
	case kindRequest, kindReply, kindIntent, kindGate, kindStop:
		if !h.began.IsZero() { // one that ended before it was set up took no time
			h.newest = e.At
		}
	}
	if err := h.take(e); err != nil {
		h.Bad = append(h.Bad, Bad{e.Seq, e.Kind, err})
	}
}

// spent is how long all runs took, by the clock of the machine.
func (h *History) spent() time.Duration { return h.earlier + max(h.newest.Sub(h.began), 0) }

// take reads e by its kind. What it adds to a list it adds also if it cannot be
// read, or everything behind would have another number.
func (h *History) take(e memory.Event) error {
	switch e.Kind {
	case kindSetup, kindResume:
		return h.setUp(e)
	case kindRequest:
		return h.sent(e.Body)
	case kindReply:
		return h.received(e.Body)
	case kindIntent:
		h.Unknown = new(Intended)
		return json.Unmarshal(e.Body, h.Unknown)
	case kindNetwork:
		var a Asked
		err := json.Unmarshal(e.Body, &a)
		if err == nil {
			h.Asked = append(h.Asked, a)
		}
		return err
	case kindVain:
		return h.vain(e.Body)
	case kindCompact:
		return h.compacted(e.Body)
	case memory.KindObservation:
		return h.observe(e.Body)
	case kindTurn:
		return h.turn(e.Body)
	case kindMessage:
		var said Said
		err := json.Unmarshal(e.Body, &said)
		h.push(window.Turn{ID: h.next(), User: cmp.Or(said.Text, window.Text("lost", nil))}, Turned{Obs: h.next(), Step: h.steps})
		h.told(h.Tokens)
		h.spoken = true
		return err
	case kindGate:
		var g GateResult
		err := json.Unmarshal(e.Body, &g)
		if err == nil {
			h.judged(g)
		}
		return err
	case kindStop:
		var end Ended
		err := json.Unmarshal(e.Body, &end)
		if err == nil {
			h.Outcome, h.tree = &end.Outcome, end.Tree
		}
		return err
	}
	return nil
}

// setUp takes how a run of the session was made: the first one, or one that went
// on with it.
func (h *History) setUp(e memory.Event) error {
	h.Outcome, h.tree, h.spoken = nil, "", false
	var now Setup // not into the old one: requests point into that
	if err := json.Unmarshal(e.Body, &now); err != nil {
		return err
	}
	if now.System != "" {
		h.shell = now.Shell
	}
	if now.Model != h.Setup.Model {
		h.answered = 0
	}
	now.System, now.Prompt = cmp.Or(now.System, h.Setup.System), cmp.Or(now.Prompt, h.Setup.Prompt)
	h.Setup, h.begun = now, len(h.Sent)
	for _, line := range now.Gates {
		h.gateOf(line)
	}
	return nil
}

func (h *History) sent(body []byte) error {
	var s Sent
	err := json.Unmarshal(body, &s)
	if err != nil && len(h.Sent) > 0 {
		s = h.Sent[len(h.Sent)-1] // its folds can only have grown
		s.Summary = nil
	}
	s.N, s.Wire = len(h.Sent)+1, h.Setup.Wire
	if err != nil {
		s.Turns = len(h.Turns)
	}
	for len(h.Received) < len(h.Sent) {
		h.Received = append(h.Received, Received{N: len(h.Received) + 1})
	}
	h.Sent = append(h.Sent, s)
	h.requests = len(h.Sent)
	if s.Summary != nil {
		h.tried = s.Summary.To
	}
	return err
}

func (h *History) received(body []byte) error {
	var r Received
	err := json.Unmarshal(body, &r)
	if err != nil || len(h.Received) >= len(h.Sent) {
		return err
	}
	r.CacheTold = r.CacheTold || r.Cached > 0 // logs of before that field
	h.Tokens = h.Tokens.Plus(Count{r.Prompt, r.Cached, r.Output, r.CacheTold})
	h.Received = append(h.Received, r)
	if r.Sent != "" {
		h.answered++
	}
	h.model = cmp.Or(r.Model, h.model)
	if form, _, _ := strings.Cut(r.Shape, " "); h.Sent[len(h.Sent)-1].Summary == nil {
		h.form = cmp.Or(form, h.form)
	}
	if r.Error == "" && r.Overflow == 0 && h.Sent[len(h.Sent)-1].Summary == nil {
		h.pending = &answer{window.Reply{Calls: r.Calls, Text: r.Text, Nudge: r.Nudge, Miss: r.Miss, Cut: r.Cut, Thought: r.Thought}, h.Sent[len(h.Sent)-1].Fresh}
	}
	return nil
}

func (h *History) vain(body []byte) error {
	var v Vain
	err := json.Unmarshal(body, &v)
	if i := h.Unknown; i != nil {
		h.ran(window.Call{Cmd: i.Cmd, Stdin: i.Stdin}, false, act.Result{Output: v.Output})
	}
	h.Unknown, h.again, h.steps = nil, true, max(h.steps, v.Step)
	return err
}

func (h *History) observe(body []byte) error {
	var o memory.Observation
	err := json.Unmarshal(body, &o)
	if err != nil && h.Unknown != nil { // that there was one is known all the same
		o = memory.Observation{ID: h.Unknown.Obs, Cmd: h.Unknown.Cmd, Stdin: h.Unknown.Stdin, Output: window.Text("lost", nil)}
	}
	if h.observed == nil {
		h.observed = map[string]memory.Observation{}
	}
	h.observed[o.ID] = o
	if h.Unknown != nil {
		h.orphan = o.ID
	}
	h.Unknown = nil
	return err
}

// turn takes what the window shows of a turn. Of one that cannot be read the
// observation is left.
func (h *History) turn(body []byte) error {
	var d Turned
	err := json.Unmarshal(body, &d)
	if err != nil {
		d = Turned{Obs: h.next(), Step: h.steps + 1, Changed: true, Dir: h.shell.Dir, Files: h.files}
	}
	o, ok := h.observed[d.Obs]
	if !ok {
		o.Output = window.Text("lost", nil)
	}
	h.push(window.Turn{
		ID: d.Obs, Call: window.Call{Cmd: o.Cmd, Stdin: o.Stdin}, Said: d.Said, Output: o.Output, Status: o.Status, Next: d.Next, Recall: d.Recall, Pin: d.Pin, Thought: d.Thought,
	}, d)
	h.replayed(h.Turns[len(h.Turns)-1], d, h.gate)
	for _, line := range d.Gates {
		h.gateOf(line)
		h.Setup.Seals = d.Seals
	}
	h.gate, h.orphan = false, ""
	return err
}

func (h *History) push(t window.Turn, d Turned) {
	h.Turns, h.Steps = append(h.Turns, t), append(h.Steps, d)
}

// next is the id of the turn that comes next.
func (h *History) next() string { return obs(len(h.Turns) + 1) }

// judged takes how a gate stood.
func (h *History) judged(g GateResult) {
	*h.gateOf(g.Cmd) = g
	if g.Status != 0 {
		h.gate = true
		h.tries++
	}
}

// gateOf is the entry of the gate with that line, which is made if there is none.
func (h *History) gateOf(line string) *GateResult {
	for i := range h.Gates {
		if h.Gates[i].Cmd == line {
			return &h.Gates[i]
		}
	}
	h.Gates = append(h.Gates, GateResult{Cmd: line})
	return &h.Gates[len(h.Gates)-1]
}

// Window computes request n again, counted from 1, from the log alone. It
// returns an error if there was no such request.
func (h *History) Window(n int) (window.Request, error) {
	if n < 1 || n > len(h.Sent) {
		return window.Request{}, fmt.Errorf("there is no request %d; the session has %d", n, len(h.Sent))
	}
	s := h.Sent[n-1]
	if s.Turns > len(h.Turns) {
		return window.Request{}, fmt.Errorf("request %d shows %d turns and the log has %d", n, s.Turns, len(h.Turns))
	}
	p, b := h.parts(s), s.budget(h.Setup.Budget)
	if s.Summary != nil {
		if s.Summary.From < 0 || s.Summary.To <= s.Summary.From || s.Summary.To > len(p.Turns) {
			return window.Request{}, fmt.Errorf("request %d: %w", n, errSpan)
		}
		return window.Request{Messages: b.Summarise(p, *s.Summary), Prose: true}, nil
	}
	return window.Request{Messages: b.Messages(p), Fresh: s.Fresh, Without: s.Without}, nil
}

// budget is b as it was when s was sent.
func (s Sent) budget(b window.Budget) window.Budget {
	b.Bytes, b.Window, b.Reserve, b.Seen = s.Bytes, cmp.Or(s.Window, b.Window), cmp.Or(s.Reserve, b.Reserve), s.Seen
	return b
}
