package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	window "tether/context"
)

// kindCompact is an event that puts a summary in the place of turns; its body is a
// Compacted. The turns stay in the log, and mem recall shows each.
const kindCompact = "compact"

// Compacted is a summary that stands for turns from here on.
type Compacted struct {
	window.Summary
	First string `json:"first"` // the ids of the span's first and
	Last  string `json:"last"`  // last turn
	N     int    `json:"n"`     // the request that it was asked for with
	Turns int    `json:"turns"` // of the session so far
}

// compact asks for a summary of older turns if the window is full enough. A
// summary that does not come leaves its turns alone, for ever, and they are folded
// as all are: so no turn is asked about twice, and a failure costs one request. The
// error is that of the log or of ctx; what was summarised before it stays.
func (r *run) compact(ctx context.Context) error {
	if !r.Compact {
		return nil
	}
	for _, span := range r.Budget.Spans(r.parts, r.tried) {
		r.tried = span.To
		req := window.Request{Messages: r.Budget.Summarise(r.parts, span), Prose: true}
		reply, err := r.exchange(ctx, Sent{Summary: &span}, req)
		if r.logErr != nil || cancelled(ctx) != "" {
			return errors.Join(r.logErr, context.Cause(ctx))
		}
		text := ""
		if err == nil {
			text = r.Store.Redact(r.Budget.Digest(reply))
		}
		if text == "" {
			r.tell(Event{Type: EventWarning, N: r.steps, Output: "there is no summary, so the past is folded: " + unusable(reply, err)})
		}
		if err != nil {
			return nil // the server that failed would fail again
		}
		if text != "" {
			if err := r.summarised(ctx, window.Summary{Span: span, Text: text}); err != nil {
				return err
			}
		}
	}
	return nil
}

// unusable says why a reply is no summary.
func unusable(reply window.Reply, err error) string {
	switch {
	case reply.Overflow > 0:
		return "the request for it was too long"
	case err != nil:
		return err.Error()
	case len(reply.Calls) > 0:
		return "the model sent a call"
	}
	return "the model wrote nothing of use"
}

// summarised commits a summary to the log and to the window.
func (r *run) summarised(ctx context.Context, s window.Summary) error {
	c := Compacted{Summary: s, First: obs(s.From + 1), Last: obs(s.To), N: r.requests, Turns: len(r.parts.Turns)}
	if err := r.log(ctx, kindCompact, c); err != nil {
		return err
	}
	r.parts.Summaries = append(r.parts.Summaries, s)
	r.outcome.Folds++
	r.tell(Event{Type: EventCompact, N: r.steps, Obs: c.First + " to " + c.Last, Folded: s.To - s.From, Output: s.Text})
	return nil
}

// errSpan is of a compaction whose turns cannot be.
var errSpan = errors.New("it stands for turns that it cannot stand for")

// compacted takes a summary of the log. One that cannot be read takes its place in
// the list, where it stands for nothing: requests count them.
func (h *History) compacted(body []byte) error {
	var c Compacted
	err := json.Unmarshal(body, &c)
	least := 0
	for _, o := range h.Compacted {
		least = max(least, o.To)
	}
	if err == nil && (c.From < least || c.To <= c.From || c.To > len(h.Turns)) {
		err = fmt.Errorf("turns %d to %d: %w", c.From+1, c.To, errSpan)
	}
	if err != nil {
		c = Compacted{Turns: len(h.Turns)}
	}
	h.Compacted = append(h.Compacted, c)
	return err
}

// parts are what request s could show of the session.
func (h *History) parts(s Sent) window.Parts {
	p := window.Parts{System: h.Setup.System, Task: h.Setup.Prompt, Turns: h.Turns[:s.Turns], Folds: s.Folds}
	for _, c := range h.Compacted[:min(s.Summaries, len(h.Compacted))] {
		p.Summaries = append(p.Summaries, c.Summary)
	}
	return p
}

// bands are how full the window is, in percent, when the model is reminded to come
// to an end (requirements ZUT-60).
var bands = []int{85, 90, 95}

// remind adds to the line that closes a turn that the window is nearly full: once
// for each band, and one reminder for a jump over several. It stands where it
// arose, and stays there, and a session that is resumed goes on with the bands that
// are left. A window in which folding has made room is not full.
func (r *run) remind(next string) string {
	band := 0
	for _, b := range bands {
		if r.used >= b {
			band = b
		}
	}
	if next == "" || band <= r.band {
		return next
	}
	r.band = band
	failed := ""
	if r.failed {
		failed = "failed"
	}
	return next + "\n" + window.Text("reminder", window.Values{"Percent": strconv.Itoa(r.used), "Failed": failed})
}

// full notes how full the window is with a request of msgs that its server counted
// as so many tokens; 0 is one that does not count.
func (r *run) full(msgs []window.Message, tokens int) {
	if r.used = r.Budget.Full(msgs); tokens > 0 {
		r.used = 100 * tokens / r.Budget.Usable()
	}
}
