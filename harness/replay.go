package harness

import (
	"cmp"
	"encoding/json"
	"fmt"

	window "tether/context"
	"tether/memory"
)

// A History is a session as its log tells it.
type History struct {
	Setup    Setup
	Turns    []window.Turn
	Steps    []Turned // one a turn
	Sent     []Sent
	Received []Received // by request; fewer than Sent if the last one got no reply
	Unknown  *Intended  // a command that was begun and has no observation
	Outcome  *Outcome   // nil while the run goes on, or if it was killed
}

// Replay reads the events of one session.
func Replay(events []memory.Event) (History, error) {
	var h History
	observed := map[string]memory.Observation{}
	for _, e := range events {
		if err := h.add(e, observed); err != nil {
			return h, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
	}
	return h, nil
}

func (h *History) add(e memory.Event, observed map[string]memory.Observation) error {
	switch e.Kind {
	case kindSetup:
		return json.Unmarshal(e.Body, &h.Setup)
	case kindRequest:
		return appendJSON(&h.Sent, e.Body)
	case kindReply:
		return appendJSON(&h.Received, e.Body)
	case kindIntent:
		h.Unknown = new(Intended)
		return json.Unmarshal(e.Body, h.Unknown)
	case kindVain:
		h.Unknown = nil
	case memory.KindObservation:
		h.Unknown = nil
		var o memory.Observation
		err := json.Unmarshal(e.Body, &o)
		observed[o.ID] = o
		return err
	case kindTurn:
		var t Turned
		if err := json.Unmarshal(e.Body, &t); err != nil {
			return err
		}
		o := observed[t.Obs]
		h.Steps = append(h.Steps, t)
		h.Turns = append(h.Turns, window.Turn{
			ID: t.Obs, Call: window.Call{Cmd: o.Cmd, Stdin: o.Stdin}, Said: t.Said, Output: o.Output, Status: o.Status, Next: t.Next,
		})
	case kindStop:
		h.Outcome = new(Outcome)
		return json.Unmarshal(e.Body, h.Outcome)
	}
	return nil
}

// appendJSON appends the value of body to list.
func appendJSON[T any](list *[]T, body []byte) error {
	var v T
	err := json.Unmarshal(body, &v)
	*list = append(*list, v)
	return err
}

// Window computes request n again, counted from 1, from the log alone. It
// returns an error if there was no such request.
func (h History) Window(n int) (window.Request, error) {
	if n < 1 || n > len(h.Sent) {
		return window.Request{}, fmt.Errorf("there is no request %d; the session has %d", n, len(h.Sent))
	}
	s := h.Sent[n-1]
	if s.Turns > len(h.Turns) {
		return window.Request{}, fmt.Errorf("request %d shows %d turns and the log has %d", n, s.Turns, len(h.Turns))
	}
	b := h.Setup.Budget
	b.Bytes, b.Window, b.Reserve = s.Bytes, cmp.Or(s.Window, b.Window), cmp.Or(s.Reserve, b.Reserve)
	p := window.Parts{System: h.Setup.System, Task: h.Setup.Prompt, Turns: h.Turns[:s.Turns], Folds: s.Folds}
	return window.Request{Messages: b.Messages(p), Fresh: s.Fresh, Without: s.Without}, nil
}
