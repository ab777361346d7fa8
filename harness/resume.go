package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tether/act"
	window "tether/context"
	"tether/memory"
	"tether/memory/failpoint"
)

// An EndedError says that a session cannot simply go on.
type EndedError struct {
	Session string
	Stop    Stop
	Used    int // steps or tokens, if those are used up
}

// Error says why, and how to go on all the same.
func (e *EndedError) Error() string {
	switch e.Stop {
	case Done:
		return fmt.Sprintf("session %[1]s is done\ngive it more to do: tether send %[1]s TEXT; or go back to step N: tether fork %[1]s@N", e.Session)
	case Steps:
		return fmt.Sprintf("session %[1]s has used its %[2]d steps\nraise them: tether resume %[1]s --max-steps %[3]d", e.Session, e.Used, 2*e.Used)
	case Tokens:
		return fmt.Sprintf("session %[1]s has used %[2]d tokens, and may not use more\nraise them: tether resume %[1]s --max-tokens %[3]d", e.Session, e.Used, 2*e.Used)
	case Waiting:
		return fmt.Sprintf("session %[1]s waits for an answer\ngive it: tether send %[1]s TEXT", e.Session)
	}
	return fmt.Sprintf("session %[1]s ended with %[2]s, and would again\ntell it what to do: tether send %[1]s TEXT; or go back to step N: tether fork %[1]s@N", e.Session, e.Stop)
}

// Resumable says whether a session that ended for this reason can go on without
// a word from a person. "" is one that was killed.
func (s Stop) Resumable() bool {
	return !slices.Contains([]Stop{Done, GateFailed, GateError, Stalled, Waiting}, s)
}

// Ready returns nil if the session can go on within l, or an *EndedError.
func (h *History) Ready(session string, l Limits) error {
	l.Steps = cmp.Or(l.Steps, DefaultSteps)
	used := h.Tokens.Prompt + h.Tokens.Output - h.basis
	switch {
	case h.Outcome != nil && !h.spoken && !h.Outcome.Stop.Resumable():
		return &EndedError{Session: session, Stop: h.Outcome.Stop}
	case h.done: // it only has to be said
		return nil
	case h.left(l) <= 0:
		return &EndedError{session, Steps, h.steps - h.base}
	case l.Tokens > 0 && used >= l.Tokens:
		return &EndedError{session, Tokens, used}
	}
	return nil
}

// ByHand says whether the session is of commands that a person gave: there is no
// model to go on with it.
func (h *History) ByHand() bool {
	return h.Setup.Root != "" && h.Setup.Model == "" && h.Setup.System == ""
}

// Shape is the form in which calls were asked for last, in the words of
// package llm.
func (h *History) Shape() string {
	for i, r := range slices.Backward(h.Received) {
		if r.Shape != "" && h.Sent[i].Summary == nil {
			return r.Shape
		}
	}
	return ""
}

// Misses is how many of the newest replies held no call.
func (h *History) Misses() int {
	n := 0
	for i, r := range slices.Backward(h.Received) {
		if h.Sent[i].Summary != nil {
			continue
		}
		if len(r.Calls) > 0 {
			break
		}
		if r.Sent != "" && !r.Cut {
			n++
		}
	}
	return n
}

// Replies is how many replies the model called name has given of late: 0 if it is
// not the one that was asked last.
func (h *History) Replies(name string) int {
	if name != h.Setup.Model {
		return 0
	}
	return h.answered
}

// Mend completes what a run that was killed has left half done. A command of
// which nobody knows how it ended is shown to the model as that, and never run
// again by itself. A done that nobody was told of counts when the model says it
// again. What Mend adds is committed, so that every later Replay finds
// the same session, and nothing more to mend.
func (h *History) Mend(ctx context.Context, store *memory.Store, session string) error {
	if i := h.Unknown; i != nil {
		o := memory.Observation{ID: h.next(), Cmd: i.Cmd, Stdin: i.Stdin, Status: act.Failed, Output: window.Text("interrupted", nil)}
		if err := h.commit(ctx, store, session, memory.KindObservation, o); err != nil {
			return err
		}
	}
	if h.orphan == "" {
		return nil
	}
	o := h.observed[h.orphan]
	d := Turned{Obs: h.next(), Step: h.steps + 1, Changed: true, Files: h.files, Dir: h.shell.Dir}
	if n := len(h.Sent); n > 0 {
		d.Step = max(h.steps, h.Sent[n-1].Step)
	}
	switch {
	case o.Output == window.Text("interrupted", nil):
		d.How = howInterrupted
	case !h.gate && same(window.Call{Cmd: o.Cmd}).Cmd == "done":
		if d.How = howInterrupted; o.Status == act.OK {
			d.Next = h.Setup.text("next_changed", nil)
		}
	case o.Status == act.OK:
		d.Next = h.Setup.text("next", nil)
	default:
		d.Next = h.Setup.text("next_failed", nil)
	}
	return h.commit(ctx, store, session, kindTurn, d)
}

// Say adds what a person has to say to the session. It is the newest of what the
// model reads when the session goes on.
func (h *History) Say(ctx context.Context, store *memory.Store, session, text string) error {
	if err := h.Mend(ctx, store, session); err != nil {
		return err
	}
	words := []string{h.Setup.Prompt, text}
	for _, t := range h.Turns {
		words = append(words, t.User)
	}
	b := h.budget()
	if need, have := b.Fits(h.Setup.System, words...); need > have && b.Window > 0 {
		return &TaskError{need, have}
	}
	return h.commit(ctx, store, session, kindMessage, Said{h.next(), strings.ToValidUTF8(text, "\uFFFD")})
}

// commit adds an event to the log and to h.
func (h *History) commit(ctx context.Context, store *memory.Store, session, kind string, body any) error {
	e, err := store.Append(ctx, session, kind, body)
	if err == nil {
		h.add(e)
	}
	return err
}

// budget is the budget after the newest reply.
func (h *History) budget() window.Budget {
	n := len(h.Sent)
	if n == h.begun { // nothing was asked since
		return h.Setup.Budget
	}
	b := h.Sent[n-1].budget(h.Setup.Budget)
	if req, err := h.Window(n); err == nil && n == len(h.Received) {
		if r := h.Received[n-1]; r.Overflow > 0 {
			b = b.Narrowed(r.Overflow, req.Messages)
		} else {
			b.Seen = h.seen(b, n, req)
			b.Calibrate(req.Messages, r.Prompt)
			b.Window = min(b.Window, cmp.Or(r.Holds, b.Window))
		}
	}
	return b
}

// seen is what the server of request n counted, which b was the budget of, if it was
// not asked otherwise than before.
func (h *History) seen(b window.Budget, n int, req window.Request) window.Seen {
	s, r := h.Sent[n-1], h.Received[n-1]
	if s.Summary != nil || r.Prompt <= 0 {
		return b.Seen
	}
	for _, before := range slices.Backward(h.Received[:n-1]) {
		if before.Prompt > 0 && before.Shape != "" {
			one, _, _ := strings.Cut(before.Shape, " ")
			two, _, _ := strings.Cut(r.Shape, " ")
			if one != two || before.Model != r.Model {
				b.Seen = window.Seen{}
			}
			break
		}
	}
	_, now := b.Cut(h.parts(s), req.Messages, r.Prompt)
	return now
}

// Resume goes on with the session that h is the history of. The outcome and the
// error are as those of Do. What of the Setup is no longer as it was is told; the
// system prompt and the task stay, so that the next request begins with the bytes
// of the one before.
func (a *Agent) Resume(ctx context.Context, h *History) (Outcome, error) {
	if err := h.Ready(a.Session.ID, a.Limits); err != nil {
		return Failure(a.Session.Task, Failed, err), err
	}
	if err := a.keepForm(h); err != nil {
		return Failure(a.Session.Task, Failed, err), err
	}
	return a.carry(ctx, func(ctx context.Context) (*run, error) { return a.takeUp(ctx, h) })
}

// takeUp makes the run of a session as it was left.
func (a *Agent) takeUp(ctx context.Context, h *History) (*run, error) {
	told := h.changes(a.Setup, a.Budget)
	a.keepGates(h)
	r := a.newRun(a.Session.Task)
	a.tell(Event{Type: EventStart, Session: a.Session.ID, Task: a.Session.Task, Model: a.Setup.Model, Sandbox: a.Setup.Sandbox, Network: a.Setup.Network})
	for _, line := range told {
		a.tell(Event{Type: EventWarning, N: max(h.steps, 1), Output: line})
	}
	if i := h.Unknown; i != nil && failpoint.Bug("rerun-unknown") {
		a.Shell.Do(ctx, i.Cmd, i.Stdin)
	}
	err := h.Mend(ctx, a.Store, a.Session.ID)
	r.state, r.spent, r.outcome.Tokens, r.outcome.Report = h.state, h.spent(), h.Tokens, h.report
	r.before, r.outcome.Folds = h.files, h.folds()+len(h.Compacted)
	copy(r.outcome.Gates, h.Gates) // keepGates has put them first
	if err != nil {
		return r, err
	}
	asked := a.Budget.Window
	r.Budget = h.goOn(a.Budget)
	r.Shell.Restore(r.shell)
	left := Sent{Turns: len(h.Turns), Summaries: len(h.Compacted)}
	if n := len(h.Sent); n > 0 {
		left.Folds = h.Sent[n-1].Folds
		if req, err := h.Window(n); err == nil && n == len(h.Received) {
			r.full(req.Messages, h.Received[n-1].Prompt)
		}
	}
	r.parts = h.parts(left)
	if err := r.sealAgain(h); err != nil {
		return r, err
	}
	now := a.Setup
	now.Facts = h.Setup.Facts
	now.Window, now.Budget, now.Limits, now.System, now.Prompt = asked, r.Budget, r.Limits, "", ""
	if r.parts.Task == "" || r.parts.System == "" { // killed before it began, or they cannot be read
		if err := r.frame(ctx, a.Session.Task); err != nil {
			return r, err
		}
		now.System, now.Prompt, now.Shell, now.Facts = r.parts.System, r.parts.Task, r.shell, r.Setup.Facts
	}
	r.look(ctx)
	if h.tree != "" && h.tree != r.tree() {
		r.lost() // what was in vain may be right now, and what failed may succeed
		a.tell(Event{Type: EventWarning, N: max(h.steps, 1), Output: "files of the workspace have changed since"})
	}
	return r, r.log(ctx, kindResume, now)
}

// keepGates puts the session's gates before those that are new: gates only ever
// become more.
func (a *Agent) keepGates(h *History) {
	var all []Gate
	for _, g := range h.Gates {
		all = append(all, Gate{Cmd: g.Cmd})
	}
	for _, g := range a.Gates {
		if i := slices.IndexFunc(all, func(have Gate) bool { return have.Cmd == g.Cmd }); i >= 0 {
			all[i] = g
		} else {
			all = append(all, g)
		}
	}
	a.Gates, a.Setup.Gates = all, nil
	for _, g := range all {
		a.Setup.Gates = append(a.Setup.Gates, g.Cmd)
	}
}

// sealAgain holds the session to the files of its gates as they were at its
// beginning; only those of gates that are new are looked at now.
func (r *run) sealAgain(h *History) error {
	r.Setup.Seals, r.Setup.GateChange = slices.Clone(h.Setup.Seals), r.GateChange
	if h.Setup.System == "" { // killed before they were looked at
		all, err := r.seals()
		r.Setup.Seals = all
		return err
	}
	for _, g := range r.Gates {
		if slices.ContainsFunc(h.Gates, func(old GateResult) bool { return old.Cmd == g.Cmd }) {
			continue
		}
		more, err := r.sealsOf(g)
		if err != nil {
			return err
		}
		r.Setup.Seals = append(r.Setup.Seals, more...)
	}
	return nil
}

// goOn is the budget with which the session goes on where now is that of a new
// one: as it was, but for a window that is another one.
func (h *History) goOn(now window.Budget) window.Budget {
	was := h.Setup.Budget
	if was.Window == 0 {
		return now
	}
	b := h.budget()
	if now.Window != h.Setup.window() {
		b.Window, b.Reserve = now.Window, now.Reserve
	}
	return b
}

// window is the size that the budget was asked to have.
func (s Setup) window() int { return cmp.Or(s.Window, s.Budget.Window) }

// changes says what is no longer as the session left it.
func (h *History) changes(now Setup, b window.Budget) []string {
	was := h.Setup
	var all []string
	other := func(what, was, now string) {
		if was != now && was != "" {
			all = append(all, fmt.Sprintf("%s was %s and is %s now", what, was, now))
		}
	}
	other("the model", was.Model, now.Model)
	other("the workspace", was.Root, now.Root)
	other("the sandbox", was.Sandbox, now.Sandbox)
	other("the network", was.Network, now.Network)
	other("tether", was.Version, now.Version)
	if was.Budget.Window > 0 {
		other("the window", fmt.Sprintf("%d tokens", was.window()), fmt.Sprintf("%d tokens", b.Window))
	}
	if gone := without(was.Commands, now.Commands); len(gone) > 0 {
		all = append(all, "no longer granted: "+strings.Join(gone, ", "))
	}
	if more := without(now.Commands, was.Commands); len(more) > 0 && len(was.Commands) > 0 {
		all = append(all, "granted now, and not known to the model: "+strings.Join(more, ", "))
	}
	if n := len(h.Bad); n > 0 {
		all = append(all, fmt.Sprintf("%d events of the log cannot be read and are left out, the first is event %d (%s)", n, h.Bad[0].Seq, h.Bad[0].Kind))
	}
	return all
}

// without are the words of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(w string) bool { return slices.Contains(b, w) })
}
