package harness

import (
	"context"

	"tether/act"
	window "tether/context"
	"tether/memory"
)

// A Model answers what it is shown. Package llm has the real ones and the
// scripted one.
type Model interface {
	// Reply returns the model's next message, read. As text arrives it is also
	// passed to stream, unless stream is nil. An error means that there is no
	// reply at all; a message that makes no sense is a Reply with a Nudge.
	Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error)
}

// An Agent carries out one task. Its fields are set once, before Do.
type Agent struct {
	Model   Model
	Shell   *act.Shell     // what the model may use
	Check   *act.Shell     // what gates run in, as programs
	Budget  window.Budget  // of the window, with the server's real size
	Gates   []Gate         // what must succeed before done counts
	Form    *Form          // what the report of done must be; nil: any text
	Limits  Limits         //
	Store   *memory.Store  // the event log
	Session memory.Session // made by Store.NewSession
	Setup   Setup          // for the log: how the session was set up

	Protect    []string // patterns of the files that the gates are made of: a change of one is never a pass
	GateChange string   // GateFails ("" too) or GateReports: what a change of a gate's own script means
	Network    *Network // what commands asked the network for; nil: nobody listens
	Project    bool     // what AGENTS.md says is shown with the task
	Compact    bool     // the model is asked for summaries of older turns before they are folded

	// Notify follows the run; nil is nobody. It is called from the goroutine
	// of Do and must not block.
	Notify func(Event)
	// Stop names the reason that a model's or sandbox's error ends the run
	// with; nil makes every one Failed.
	Stop func(error) Stop
}

// Do carries out task and returns what came of it. The outcome is whole also
// when there is an error: the error says why the run ended as it did, in words
// for the user. It is nil for every end that the model brought about.
func (a *Agent) Do(ctx context.Context, task string) (Outcome, error) {
	return a.carry(ctx, func(ctx context.Context) (*run, error) { return a.begin(ctx, task) })
}

// carry carries out what start has made ready; Resume comes this way too.
func (a *Agent) carry(ctx context.Context, start func(context.Context) (*run, error)) (Outcome, error) {
	if a.Limits.Steps == 0 {
		a.Limits.Steps = DefaultSteps
	}
	if a.Limits.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.Limits.Time, errTime)
		defer cancel()
	}
	r, err := start(ctx)
	if err != nil {
		return r.end(ctx, "", err)
	}
	stop, err := r.loop(ctx)
	return r.end(ctx, stop, err)
}

// loop is the whole of an agent: ask, run, look, until done counts.
func (r *run) loop(ctx context.Context) (Stop, error) {
	if stop := r.over(); stop != "" {
		return stop, nil // it was killed between its last turn and its end
	}
	for r.left(r.Limits) > 0 {
		reply, err := r.ask(ctx)
		if err != nil {
			return "", err
		}
		if len(reply.Calls) == 0 {
			r.missed(reply)
		}
		for _, call := range reply.Calls {
			if hint := r.guard.Refuse(call); hint != "" {
				r.repeated(call, hint)
				break
			}
			res := r.act(ctx, call)
			if res.Err != nil {
				return "", res.Err
			}
			if res.Done {
				res = r.verify(ctx, call, res)
			}
			if res.Done || res.Err != nil {
				return Done, res.Err
			}
			if res.Asked {
				return r.wait(call, res), nil
			}
			if r.vain(ctx, res) {
				break // it leaves no trace; the model is sampled anew
			}
			r.note(call, res)
			if res.Status != act.OK {
				break // the rest was meant for another state of things
			}
		}
		if stop := r.over(); stop != "" {
			return stop, nil
		}
	}
	return Steps, nil
}
