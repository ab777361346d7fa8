package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tether/act"
	window "tether/context"
	"tether/memory"
	"tether/memory/failpoint"
)

// A run is the state of one Do: the turns so far and what they cost.
type run struct {
	*Agent
	parts    window.Parts
	guard    Guard
	outcome  Outcome
	started  time.Time
	changed  func() []string            // files that differ from the start
	took     time.Duration              // of the newest command
	results  map[window.Call]act.Result // the newest result of each call that was run
	logErr   error                      // of an effect that could not be recorded
	steps    int                        // replies
	requests int
	status   int  // of the newest act by hand
	again    bool // the newest call was in vain: the next reply is sampled anew
	broke    bool // a command has failed and nothing has changed since
	shown    bool // the newest failure of a gate showed a file
	failed   bool // a gate has failed and nothing has changed since
	tries    int  // of the gates
}

// begin checks that the task fits, and commits the set-up to the log. The run
// can be ended also if there is an error.
func (a *Agent) begin(ctx context.Context, task string) (*run, error) {
	if a.Limits.Steps == 0 {
		a.Limits.Steps = DefaultSteps
	}
	r := a.newRun(task)
	a.tell(Event{Type: EventStart, Session: a.Session.ID, Task: task, Model: a.Setup.Model})
	r.parts = window.Parts{System: a.Setup.System, Task: prompt(task, a.facts(ctx, task))}
	if need, have := a.Budget.Tokens(len(r.parts.Task)), a.Budget.Usable()/2; need > have {
		return r, &TaskError{need, have}
	}
	return r, r.setUp(ctx)
}

// newRun is a run of which nothing has happened.
func (a *Agent) newRun(task string) *run {
	r := &run{Agent: a, started: time.Now(), results: map[window.Call]act.Result{}, changed: func() []string { return nil }}
	r.outcome = Outcome{V: 1, Session: a.Session.ID, Task: task, Model: a.Setup.Model, Sandbox: a.Setup.Sandbox, Gates: []GateResult{}, Changed: []string{}}
	for _, g := range a.Gates {
		r.outcome.Gates = append(r.outcome.Gates, GateResult{Cmd: g.Cmd})
	}
	return r
}

// setUp commits how the run is made, and notes how the workspace looks.
func (r *run) setUp(ctx context.Context) error {
	r.Setup.Prompt, r.Setup.Budget = r.parts.Task, r.Budget
	if err := r.log(ctx, kindSetup, r.Setup); err != nil {
		return err
	}
	files := r.Shell.Env.Box.Files()
	before := files.Snapshot(ctx)
	r.changed = func() []string { return before.Changed(files.Snapshot(context.Background())) }
	return nil
}

// prompt is the task as the model reads it. The gates are not in it: told of a
// command that must succeed in the end, a 1.5B model runs that command again and
// again and changes nothing (docs/results.md). It learns of one when it fails.
func prompt(task, facts string) string {
	text := window.Text("task", map[string]any{"Task": task, "Facts": facts})
	return strings.ToValidUTF8(text, "\uFFFD") // a file name may be anything
}

// ask gets the model's next reply. If the reply is a call that was made before
// and nothing has changed since, the model is sampled once more, differently,
// before anything of it enters the history.
func (r *run) ask(ctx context.Context) (window.Reply, error) {
	r.steps++
	reply, err := r.request(ctx, r.again, r.barred()...)
	switch {
	case err != nil, r.again:
	case len(reply.Calls) == 0:
		reply, err = r.request(ctx, true, r.barred()...)
	case r.guard.Repeats(reply.Calls[0]):
		without := r.barred()
		// sh is every program, and without it little is left: it is barred only
		// from a model that has not listened yet.
		if word, _, _ := strings.Cut(reply.Calls[0].Cmd, " "); word != "sh" || r.guard.Warnings > 0 {
			without = append(without, word)
		}
		reply, err = r.request(ctx, true, without...)
	}
	return reply, err
}

// vain says whether res is a write of what the file held already. A model that
// meant to change a file and copied it is sampled once more, differently, before
// the copy enters the history, where it would be copied again.
func (r *run) vain(ctx context.Context, res act.Result) bool {
	if r.again = res.Idle && !r.again && r.steps < r.Limits.Steps; r.again {
		r.logErr = errors.Join(r.logErr, r.log(ctx, kindVain, Intended{Obs: r.next()}))
	}
	return r.again
}

// barred are the commands that make no sense now: a done while a gate fails
// and nothing has changed since, a write after one that was in vain.
func (r *run) barred() []string {
	var words []string
	if r.failed {
		words = append(words, "done")
	}
	if r.again {
		words = append(words, "write")
	}
	return words
}

// act runs call. The intent is committed before and the observation after: a
// command without an observation in the log has an unknown outcome.
func (r *run) act(ctx context.Context, call window.Call) act.Result {
	r.tell(Event{Type: EventAct, N: r.steps, Cmd: call.Cmd, Stdin: call.Stdin})
	if err := r.log(ctx, kindIntent, Intended{r.next(), call.Cmd, call.Stdin}); err != nil {
		return act.Result{Err: err}
	}
	if err := failpoint.Here("harness/intent"); err != nil {
		return act.Result{Err: err}
	}
	r.Shell.Unready = r.failed
	began := time.Now()
	res := r.Shell.Do(ctx, call.Cmd, call.Stdin)
	r.took = time.Since(began)
	if err := failpoint.Here("harness/acted"); err != nil {
		return act.Result{Err: err}
	}
	r.guard.Ran(call, res.Changed)
	switch {
	case res.Changed:
		r.failed, r.broke = false, false
	case res.Status != act.OK:
		r.broke = true
	}
	r.results[same(call)] = res
	r.takeUp(res.Gates)
	return res
}

// next is the id of the observation that is about to be made.
func (r *run) next() string { return fmt.Sprintf("obs_%d", len(r.parts.Turns)+1) }

// maxIdle is how many calls may change nothing before the model is asked to act.
// Of the solved small tasks none looked around more than three times in a row.
const maxIdle = 4

// note adds the turn of call and the line that asks for the next step. Only
// where done could be right does it name done: a small model takes the offer.
func (r *run) note(call window.Call, res act.Result) {
	next, data := "next", any(nil)
	switch {
	case r.failed:
		next, data = "next_gate", r.shown
	case res.Broken:
		next = "next_broken"
	case res.Status != act.OK:
		next = "next_failed"
	case r.broke:
		next = "next_broke"
	case r.guard.Idle() >= maxIdle:
		next = "next_idle"
	}
	r.add(window.Turn{Call: call, Output: res.Output, Status: res.Status, Next: window.Text(next, data)}, r.took)
}

// missed adds a turn in which the model made no call that could be run.
func (r *run) missed(reply window.Reply) {
	r.guard.Warn()
	said := reply.Text
	if said == "" {
		said = reply.Miss
	}
	r.tell(Event{Type: EventWarning, N: r.steps, Output: reply.Nudge})
	r.add(window.Turn{Said: said, Status: act.Usage, Next: reply.Nudge}, 0)
}

// repeated adds the turn of a call that was not run again.
func (r *run) repeated(call window.Call, text string) {
	was := r.results[same(call)]
	out := window.Text(text, map[string]string{"Output": strings.TrimSpace(window.Clip(was.Output, 600, 300, 200, ""))})
	r.tell(Event{Type: EventAct, N: r.steps, Cmd: call.Cmd, Stdin: call.Stdin})
	r.tell(Event{Type: EventWarning, N: r.steps, Output: "the same call again, with nothing changed: not run"})
	r.add(window.Turn{Call: call, Output: out, Status: act.Failed, Next: window.Text("next_repeat", map[string]bool{"Failed": was.Status != act.OK, "Done": !r.failed && !r.broke})}, 0)
}

// add commits a turn to the log and to the window.
func (r *run) add(t window.Turn, took time.Duration) {
	t.ID = r.next()
	// The log holds text. What is none must be mended before both see it, or
	// the window that is computed again would differ.
	for _, s := range []*string{&t.Output, &t.Said, &t.Call.Cmd, &t.Call.Stdin} {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
	r.parts.Turns = append(r.parts.Turns, t)
	// The effect has happened: it is recorded even if the run was just
	// interrupted.
	ctx := context.Background()
	err := errors.Join(
		r.Store.Observe(ctx, r.Session.ID, memory.Observation{ID: t.ID, Cmd: t.Call.Cmd, Stdin: t.Call.Stdin, Output: t.Output, Status: t.Status}),
		r.log(ctx, kindTurn, Turned{Obs: t.ID, Said: t.Said, Next: t.Next, MS: took.Milliseconds(), Step: r.steps}))
	if err != nil {
		r.logErr = errors.Join(r.logErr, err)
	}
	r.tell(Event{Type: EventObservation, N: r.steps, Obs: t.ID, Status: t.Status, Output: r.Budget.Observe(t), Seconds: seconds(took)})
}

// spent says whether the run is over although the model would go on.
func (r *run) spent() Stop {
	switch used := r.outcome.Tokens.Prompt + r.outcome.Tokens.Output; {
	case r.guard.Stalled():
		return Stalled
	case r.Limits.Tokens > 0 && used >= r.Limits.Tokens:
		return Tokens
	case r.tries >= MaxTries:
		return r.gateStop()
	}
	return ""
}

// end commits how the run ended and tells it.
func (r *run) end(ctx context.Context, stop Stop, err error) (Outcome, error) {
	if c := cancelled(ctx); c != "" {
		stop, err = c, nil
	}
	if err != nil {
		stop = Failed
		if r.Agent.Stop != nil {
			stop = r.Agent.Stop(err)
		}
	}
	o := &r.outcome
	o.Stop, o.Exit, o.Steps, o.Seconds = stop, stop.Exit(), r.steps, seconds(time.Since(r.started))
	if stop == Done {
		o.Exit = r.status
	}
	if err != nil {
		o.Error = err.Error()
	}
	o.Changed = append(o.Changed, r.changed()...)
	logged := r.log(context.Background(), kindStop, o)
	r.tell(Event{Type: EventResult, Result: o})
	return *o, errors.Join(err, r.logErr, logged)
}

// log appends an event of the session.
func (r *run) log(ctx context.Context, kind string, body any) error {
	_, err := r.Store.Append(ctx, r.Session.ID, kind, body)
	return err
}
