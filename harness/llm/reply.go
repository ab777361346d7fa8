package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	window "tether/context"
)

// Reply returns the model's next message, read. Pieces of its text go to
// stream as they arrive, if stream is not nil.
//
// What can be mended here is: a server that is loading its model is waited
// for, a reply that broke off or was empty is asked for once more, a model
// that takes no tools is constrained. A reply that its server could not read
// twice is a bad turn, not an error: it comes back with a Nudge. The error
// otherwise is a *ServerError (Class Overflow: the reply holds the size of the
// server's window, to fold for it and ask again), a
// *CutError, an *UnreachableError, a *MissingModelError or the context's.
func (m *Model) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	t := turn{Model: m, request: r, stream: stream, until: time.Now().Add(m.cfg.FirstToken)}
	for {
		rep, err := t.once(ctx)
		if err == nil && t.again(rep) {
			continue
		}
		if err == nil {
			m.learn(t.request, rep)
			rep.Partial = t.partial
			return rep, nil
		}
		if ctx.Err() != nil {
			return window.Reply{Partial: t.partial}, ctx.Err()
		}
		if again, err := t.mend(ctx, err); err != nil {
			return window.Reply{Overflow: t.overflow(err), Partial: t.partial}, err
		} else if !again {
			rep = t.badTurn()
			m.learn(t.request, rep)
			return rep, nil
		}
	}
}

// A turn is the state of one Reply: what has been tried already.
type turn struct {
	*Model
	request                            window.Request
	stream                             func(string)
	until                              time.Time // loading is waited for until then
	emptied, cut, misread, untool, mum bool
	mused, hushed                      bool   // the newest reply is nothing but thought; it was asked for with less
	loops                              int    // replies that were ended because they repeated themselves
	fault                              string // the server's words on what it could not read
	partial                            string // what came of the attempts that broke off
}

// once sends the request one time.
func (t *turn) once(ctx context.Context) (window.Reply, error) {
	p := t.prompt(t.request)
	if p.stream = !t.mum; t.hushed {
		p = p.quieter()
	}
	req := p.build()
	body, err := json.Marshal(req)
	if err != nil {
		return window.Reply{}, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wire, beat, stop := watch(inner, t.cfg.FirstToken, t.cfg.Idle)
	defer stop()
	s := &sink{began: time.Now(), stream: t.stream, beat: beat, limit: p.maxThought(), over: func() { cancel(errMused) }, halt: func() { cancel(errLooping) }}
	raw, usage, err := t.send(wire, req, s)
	if err != nil && context.Cause(inner) == errMused {
		raw, err = Raw{Thinking: s.thinking.String() + s.content.String(), Finish: "length"}, nil
	}
	if err != nil && context.Cause(inner) == errLooping {
		raw, err = s.raw(), nil
		raw.Finish, t.loops = "length", t.loops+1
	}
	t.mused = err == nil && raw.mused()
	if err != nil {
		if context.Cause(wire) == errStalled && ctx.Err() == nil {
			err = &CutError{errStalled}
		}
		t.keep(s)
		return window.Reply{}, err
	}
	rep := Read(raw, t.cfg.Commands, t.cfg.Dialects...)
	if calls := findFenced(raw.Content); p.form == fenced && len(calls) > 0 && !rep.Cut {
		rep = window.Reply{Calls: calls}
	}
	if p.form == constrained && rep.Recovered == dialectObject {
		rep.Recovered = "" // the form that was asked for
	}
	for i := range rep.Calls {
		if p.form == constrained {
			rep.Calls[i].Cmd = unshelled(rep.Calls[i].Cmd, p.Commands)
		}
	}
	if p.form == prose { // the whole text, whatever it looks like
		rep.Text, rep.Miss, rep.Nudge = visible(strings.ToValidUTF8(raw.Content, "\uFFFD")), "", ""
	}
	if t.info.Server != "script" { // a script gives the same numbers each time
		usage.FirstToken, usage.Total = s.first, time.Since(s.began)
	}
	if s.holds > 0 {
		t.narrow(s.holds)
		rep.Window = s.holds
	}
	sum := sha256.Sum256(body)
	rep.Thought = raw.Thought
	rep.Usage, rep.Sent, rep.Shape, rep.Model = usage, hex.EncodeToString(sum[:]), p.shape(), s.model
	return rep, nil
}

// keep keeps what has come of an attempt that fails.
func (t *turn) keep(s *sink) {
	raw := s.raw()
	text := raw.Content
	for _, c := range raw.ToolCalls {
		text += c.Name + " " + c.Arguments
	}
	t.partial = strings.ToValidUTF8(cmp.Or(text, t.partial), "\uFFFD")
}

// again reports whether an empty reply is worth one more try. The second one
// is sampled: the likeliest reply would be empty again.
func (t *turn) again(rep window.Reply) bool {
	if t.hush() {
		return true
	}
	if t.loops == 1 && rep.Cut && !t.request.Fresh { // sampled otherwise it may not
		t.request.Fresh = true
		return true
	}
	empty := len(rep.Calls) == 0 && rep.Text == "" && rep.Miss == "" && !rep.Cut
	if !empty || t.emptied || t.info.Server == "script" {
		return false
	}
	t.emptied, t.request.Fresh = true, true
	return true
}

// mend decides what to do about err: try again, give the turn up as a bad one
// (neither), or return an error.
func (t *turn) mend(ctx context.Context, err error) (again bool, _ error) {
	var cut *CutError
	if errors.As(err, &cut) && !t.cut {
		t.cut = true
		t.mum = cut.Cause != errStalled // an answer in one piece tells what a stream hides
		return true, nil
	}
	var se *ServerError
	if !errors.As(err, &se) {
		return false, err
	}
	switch {
	case t.doWithout(se):
		return true, nil
	case se.Class == Loading && time.Now().Before(t.until):
		t.cfg.Log(cmp.Or(se.waiting(), "the model is being loaded"))
		return true, wait(ctx, cmp.Or(se.Retry, t.cfg.pause))
	case se.Class == Tools && !t.untool:
		t.untool = true
		t.dropTools(se)
		return true, nil
	case se.Class == Format:
		again, t.misread, t.mum, t.fault = !t.misread, true, true, se.Text
		t.request.Fresh = true
		return again, nil
	case se.Class == Overflow && se.Limit > 0:
		t.narrow(se.Limit)
	}
	return false, err
}

// overflow is the window of a server to which the request was too long, and 0
// if err says something else. A server that does not name it has the one that it
// named when it was opened.
func (t *turn) overflow(err error) int {
	var se *ServerError
	if !errors.As(err, &se) || se.Class != Overflow {
		return 0
	}
	return cmp.Or(se.Limit, t.Info().Window)
}

// wait lets d pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// badTurn is the reply in place of one that the server could not read.
func (t *turn) badTurn() window.Reply {
	return window.Reply{Nudge: nudge("no_call", t.cfg.Commands), Miss: t.fault}
}

// dropTools goes on without tools, for a model that takes none.
func (m *Model) dropTools(se *ServerError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cfg.Log(fmt.Sprintf("going on without native tool calls: %s", se.Text))
	m.info.Native, m.wire.Result = false, window.RoleUser
	if m.unconstrain(); m.cfg.Constrain != "off" {
		m.constrain()
	}
}

// narrow takes the server's word for the size of the window.
func (m *Model) narrow(limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info.Window = min(m.info.Window, limit)
}

// missLimit is how many replies in a row may hold no call before a model is
// constrained: one may be an accident.
const missLimit = 2

// learn counts misses, and constrains a model that cannot call otherwise.
// That changes the past once, and so costs one reading of the whole prompt.
func (m *Model) learn(r window.Request, rep window.Reply) {
	if r.Prose {
		return // it was not to hold a call
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(rep.Calls) > 0:
		m.misses = 0
	case !rep.Cut:
		m.misses++
	}
	if m.misses >= missLimit && m.cfg.Constrain == "auto" && m.form != constrained && !slices.Contains(m.drop, "response_format") && !slices.Contains(m.drop, "output_config") && m.info.Server != "script" {
		m.constrain()
		m.misses = 0
		m.cfg.Log("the model's replies hold no calls: from here they are decoded under a schema")
	}
}
