package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	window "tether/context"
)

// request asks the model with the window of this moment. If that is more than
// the server holds, the past is folded and the model asked once more: a server
// may hold less than it said, and a count of tokens is an estimate until it has
// answered. What cannot be folded is not sent again: it would be refused again.
func (r *run) request(ctx context.Context, fresh bool, without ...string) (window.Reply, error) {
	reply, err := r.send(ctx, fresh, without...)
	if err == nil || reply.Overflow == 0 {
		return reply, err
	}
	if r.Budget.Next(r.parts) == r.parts.Folds {
		return reply, fmt.Errorf("%w\nnothing is left to fold: give the server a larger window, or the model a smaller task", err)
	}
	r.warn(overflowed(reply.Overflow, err))
	if reply, err = r.send(ctx, fresh, without...); err != nil && reply.Overflow > 0 {
		err = fmt.Errorf("%w\nthe past was folded and it is still too much: give the server a larger window, or the model a smaller task", err)
	}
	return reply, err
}

// send sends the window of this moment.
func (r *run) send(ctx context.Context, fresh bool, without ...string) (window.Reply, error) {
	if stop := cancelled(ctx); stop != "" {
		return window.Reply{}, context.Cause(ctx)
	}
	if err := r.compact(ctx); err != nil {
		return window.Reply{}, err
	}
	was := r.parts.Folds
	if r.parts.Folds = r.Budget.Next(r.parts); r.parts.Folds != was {
		r.outcome.Folds++
	}
	req := window.Request{Messages: r.Budget.Messages(r.parts), Fresh: fresh, Without: without}
	reply, err := r.exchange(ctx, Sent{Fresh: fresh, Without: without}, req)
	if err == nil {
		r.full(req.Messages, reply.Usage.Prompt)
	}
	return reply, err
}

// exchange sends a request and books what it cost. What of sent is true of every
// request it fills in.
func (r *run) exchange(ctx context.Context, sent Sent, req window.Request) (window.Reply, error) {
	msgs := req.Messages
	r.requests++
	sent.N, sent.Step, sent.Turns, sent.Folds, sent.Summaries = r.requests, r.steps, len(r.parts.Turns), r.parts.Folds, len(r.parts.Summaries)
	sent.Bytes, sent.Window, sent.Reserve, sent.Seen = r.Budget.Bytes, r.Budget.Window, r.Budget.Reserve, r.Budget.Seen
	if err := r.log(ctx, kindRequest, sent); err != nil {
		return window.Reply{}, err
	}
	r.tell(Event{Type: EventThink, N: r.steps})
	reply, err := r.Model.Reply(ctx, req, nil)
	if err != nil {
		if reply.Partial != "" { // the error may be that of ctx
			err = errors.Join(err, r.log(context.WithoutCancel(ctx), kindReply, Received{N: r.requests, Partial: reply.Partial, Error: err.Error()}))
		} else if reply.Overflow > 0 { // else each request and its reply would no longer stand side by side
			err = errors.Join(err, r.log(ctx, kindReply, Received{N: r.requests, Overflow: reply.Overflow}))
			r.Budget = r.Budget.Narrowed(reply.Overflow, msgs)
		}
		return reply, err
	}
	if reply.Model != "" && r.model != "" && reply.Model != r.model {
		r.warn(fmt.Sprintf("another model answers: %s, and before it %s", reply.Model, r.model))
	}
	limit, cost := r.cut(sent, msgs, reply)
	r.model = cmp.Or(reply.Model, r.model)
	u := reply.Usage
	if limit == 0 {
		r.Budget.Calibrate(msgs, u.Prompt)
	}
	r.outcome.Tokens = r.outcome.Tokens.Plus(Count{u.Prompt, u.Cached, u.Output, u.CacheTold})
	r.tell(Event{Type: EventCache, N: r.steps, Prompt: u.Prompt, Cached: u.Cached, CacheTold: u.CacheTold, Tokens: u.Output,
		FirstToken: u.FirstToken.Milliseconds(), Folded: sent.Folds.Folded, Seconds: seconds(u.Total)})
	received := Received{
		N: r.requests, Calls: reply.Calls, Text: reply.Text, Nudge: reply.Nudge, Miss: reply.Miss, Recovered: reply.Recovered, Cut: reply.Cut,
		Partial: reply.Partial, Sent: reply.Sent, Model: reply.Model, Shape: reply.Shape, Thought: r.signed(reply.Thought), Prompt: u.Prompt, Cached: u.Cached, CacheTold: u.CacheTold, Output: u.Output,
		FirstTokenMS: u.FirstToken.Milliseconds(), MS: u.Total.Milliseconds(), Overflow: limit, Holds: reply.Window,
	}
	if limit > 0 {
		r.Budget = r.Budget.Narrowed(limit, msgs)
		return window.Reply{Overflow: limit}, errors.Join(&TruncatedError{Sent: cost, Read: u.Prompt}, r.log(ctx, kindReply, received))
	}
	r.holds(reply.Window)
	return reply, r.log(ctx, kindReply, received)
}
