package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/act"
	window "tether/context"
	"tether/memory"
	"tether/memory/failpoint"
)

// A run is one Do or Resume: what is known of the session, and what it costs.
type run struct {
	*Agent
	state
	parts      window.Parts
	outcome    Outcome
	started    time.Time
	spent      time.Duration   // by earlier runs of the session
	changed    func() []string // files that differ from the start of this run
	before     []string        // files that earlier runs changed
	tree       func() string   // is another one when files of the workspace have changed
	took       time.Duration   // of the newest command
	status     int             // of the newest act by hand
	used       int             // percent of the window that the newest request filled
	misfit     bool            // the newest act was a done whose report does not fit
	questioned bool            // the newest act was a done that was questioned
	logErr     error           // of an effect that could not be recorded
	unread     []string        // files about the project that cannot be shown, and why
}

// begin checks that the task fits, and commits the set-up to the log. The run
// can be ended also if there is an error.
func (a *Agent) begin(ctx context.Context, task string) (*run, error) {
	r := a.newRun(task)
	err := r.frame(ctx, task)
	a.tell(Event{Type: EventStart, Session: a.Session.ID, Task: task, Model: a.Setup.Model, Sandbox: a.Setup.Sandbox, Network: a.Setup.Network, Facts: r.Setup.Facts})
	for _, line := range r.unread {
		a.tell(Event{Type: EventWarning, Output: line})
	}
	if err != nil {
		return r, err
	}
	return r, r.setUp(ctx)
}

// frame makes the part of the window that stays, and checks that it fits.
func (r *run) frame(ctx context.Context, task string) error {
	r.parts.System, r.parts.Task = r.Setup.System, r.Store.Redact(r.opening(ctx, task))
	if need, have := r.Budget.Fits(r.parts.System, r.parts.Task); need > have {
		return &TaskError{need, have}
	}
	r.shell = r.Shell.State()
	return nil
}

// newRun is a run of which nothing has happened.
func (a *Agent) newRun(task string) *run {
	r := &run{Agent: a, started: time.Now(), changed: func() []string { return nil }, tree: func() string { return "" }}
	r.outcome = Outcome{V: 1, Session: a.Session.ID, Task: task, Model: a.Setup.Model, Sandbox: a.Setup.Sandbox, Network: a.Setup.Network, Gates: []GateResult{}, Changed: []string{}, Planted: []string{}}
	for _, g := range a.Gates {
		r.outcome.Gates = append(r.outcome.Gates, GateResult{Cmd: g.Cmd})
	}
	return r
}

// setUp commits how the run is made, and notes how the workspace looks.
func (r *run) setUp(ctx context.Context) error {
	seals, err := r.seals()
	if err != nil {
		return err
	}
	r.Setup.Seals, r.Setup.GateChange, r.Setup.Schema = seals, r.GateChange, r.Form.schema()
	r.warnOfScripts()
	r.Setup.Prompt, r.Setup.Budget, r.Setup.Limits, r.Setup.Shell = r.parts.Task, r.Budget, r.Limits, r.shell
	if err := r.log(ctx, kindSetup, r.Setup); err != nil {
		return err
	}
	r.look(ctx)
	return nil
}

// look notes how the workspace looks, so that changed can tell what is new.
func (r *run) look(ctx context.Context) {
	r.watch()
	files := r.Shell.Env.Box.Files()
	before := files.Snapshot(ctx)
	r.tree = func() string { return files.Snapshot(context.Background()).Sum() }
	r.changed = func() []string { return before.Changed(files.Snapshot(context.Background())) }
}

// differ are the files that differ from the start of the session.
func (r *run) differ() []string { return union(r.before, r.changed()) }

// prompt is the task as the model reads it. The gates are not in it: told of a
// command that must succeed in the end, a 1.5B model runs that command again and
// again and changes nothing (docs/results.md). It learns of one when it fails.
func prompt(task, facts string) string {
	text := window.Text("task", window.Values{"Task": task, "Facts": facts})
	return strings.ToValidUTF8(text, "\uFFFD") // a file name may be anything
}

// ask gets the model's next reply. If the reply is a call that was made before
// and nothing has changed since, the model is sampled once more, differently,
// before anything of it enters the history.
func (r *run) ask(ctx context.Context) (window.Reply, error) {
	if r.logErr != nil {
		return window.Reply{}, r.logErr // nothing more may happen that the log does not know
	}
	r.steps++
	reply, err := r.answer(ctx)
	switch {
	case err != nil, reply.fresh:
	case len(reply.Calls) == 0:
		reply.Reply, err = r.request(ctx, true, r.barred()...)
	case r.guard.Repeats(reply.Calls[0]):
		without := r.barred()
		// sh is every program, and without it little is left: it is barred only
		// from a model that has not listened yet.
		if words := beginning(reply.Calls[0]); words[0] != "sh" || r.guard.Warnings > 0 {
			without = append(without, words...)
		}
		reply.Reply, err = r.request(ctx, true, without...)
	}
	r.thought = reply.Thought
	return reply.Reply, err
}

// answer is the reply that an earlier run got and did not come to, or else a new
// one.
func (r *run) answer(ctx context.Context) (answer, error) {
	if p := r.pending; p != nil {
		r.pending = nil
		return answer{r.reported(p.Reply), p.fresh}, nil
	}
	reply, err := r.request(ctx, r.again, r.barred()...)
	return answer{r.reported(reply), r.again}, err
}

// vain says whether res is a write of what the file held already. A model that
// meant to change a file and copied it is sampled once more, differently, before
// the copy enters the history, where it would be copied again.
func (r *run) vain(ctx context.Context, res act.Result) bool {
	if r.again = res.Idle && !r.again && r.left(r.Limits) > 0; r.again {
		r.logErr = errors.Join(r.logErr, r.log(context.WithoutCancel(ctx), kindVain, Vain{r.next(), r.steps, res.Output}))
		r.tell(Event{Type: EventWarning, N: r.steps, Output: "the file held exactly that: the model is asked once more"})
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
		words = append(append(words, "write", "cat >"), printing...)
	}
	return words
}

// printing is a cat that only prints the text below it: all that is left of a write
// to a model that copies and may not write.
var printing = []string{"cat <", "cat<"}

// beginning is what the reply in the place of call must not begin with: its first
// word, or its first line up to a here-document, as cat makes every file. A cat that
// only prints its text leaves every other one. There is at least one.
func beginning(call window.Call) []string {
	line, _, _ := strings.Cut(call.Cmd, "\n")
	before, _, here := strings.Cut(line, "<<")
	switch before = strings.TrimSpace(before); {
	case before == "cat" && here:
		return printing
	case strings.HasPrefix(line, "cat "):
		return []string{before}
	}
	word, _, _ := strings.Cut(line, " ")
	return []string{word}
}

// act runs call. The intent is committed before and the observation after: a
// command without an observation in the log has an unknown outcome.
func (r *run) act(ctx context.Context, call window.Call) act.Result {
	if r.logErr != nil {
		return act.Result{Err: r.logErr}
	}
	r.tell(Event{Type: EventAct, N: r.steps, Cmd: call.Cmd, Stdin: call.Stdin})
	if err := r.log(ctx, kindIntent, Intended{r.next(), call.Cmd, call.Stdin}); err != nil {
		return act.Result{Err: err}
	}
	if err := failpoint.Here("harness/intent"); err != nil {
		return act.Result{Err: err}
	}
	r.Shell.Unready, r.misfit, r.questioned = r.failed, false, false
	began := time.Now()
	// Where the model copied a marker that was shown broken, it means the whole one.
	res := r.Shell.Do(ctx, window.Plain(call.Cmd), window.Plain(call.Stdin))
	r.took = time.Since(began)
	r.report(res)
	if err := failpoint.Here("harness/acted"); err != nil {
		return act.Result{Err: err}
	}
	r.ran(call, res.Changed, res)
	r.takeUp(res.Gates)
	return res
}

// next is the id of the observation that is about to be made.
func (r *run) next() string { return obs(len(r.parts.Turns) + 1) }

func obs(n int) string { return fmt.Sprintf("obs_%d", n) }

// note adds the turn of call and the line that asks for the next step.
func (r *run) note(call window.Call, res act.Result) {
	r.add(window.Turn{Call: call, Output: res.Output, Status: res.Status, Next: r.hint(call, res)}, r.turned(res))
}

// aside reports whether a call looks something up that is none of the files: what
// made a command fail is not to be mended from there.
func aside(call window.Call) bool {
	word, _, _ := strings.Cut(strings.TrimPrefix(call.Cmd, "sh "), " ")
	return slices.Contains([]string{"mem", "skill", "help", "web"}, word)
}

// wait ends the run with a question for the user. The answer is what a person
// says next.
func (r *run) wait(call window.Call, res act.Result) Stop {
	r.outcome.Report = res.Report
	r.add(window.Turn{Call: call, Output: res.Output, Status: res.Status}, r.turned(res))
	return Waiting
}

// turned is what the log must know of a call that was run.
func (r *run) turned(res act.Result) Turned {
	how := ""
	switch {
	case r.misfit:
		how = howUnfit
	case r.questioned:
		how = howDoubted
	}
	return Turned{How: how, MS: r.took.Milliseconds(), Changed: res.Changed, Done: res.Done, Report: res.Report, Gates: res.Gates, Recall: res.Recall, Pin: res.Pin}
}

// missed adds a turn in which the model made no call that could be run.
func (r *run) missed(reply window.Reply) {
	r.guard.Warn()
	said := reply.Text
	if said == "" {
		said = reply.Miss
	}
	r.tell(Event{Type: EventWarning, N: r.steps, Output: reply.Nudge})
	r.add(window.Turn{Said: said, Status: act.Usage, Next: reply.Nudge}, Turned{How: howMissed})
}

// repeated adds the turn of a call that was not run again.
func (r *run) repeated(call window.Call, text string) {
	was := r.results[same(call)]
	out := window.Text(text, window.Values{"Output": strings.TrimSpace(window.Excerpt(was.Output, 600, 300, 200, ""))})
	r.tell(Event{Type: EventAct, N: r.steps, Cmd: call.Cmd, Stdin: call.Stdin})
	r.tell(Event{Type: EventWarning, N: r.steps, Output: "the same call again, with nothing changed: not run"})
	r.add(window.Turn{Call: call, Output: out, Status: act.Failed, Next: r.other(was)}, Turned{How: howRepeated})
}

// add commits a turn to the log and to the window.
func (r *run) add(t window.Turn, d Turned) {
	t.ID = r.next()
	// The log holds text, and no secrets. Both must be seen to before log and
	// window get it, or the window that is computed again would differ.
	for _, s := range []*string{&t.Output, &t.Said, &t.Call.Cmd, &t.Call.Stdin} {
		*s = r.Store.Redact(strings.ToValidUTF8(*s, "\uFFFD"))
	}
	t.Thought, r.thought = r.signed(r.thought), ""
	t.Recall, t.Pin, t.Next = d.Recall, d.Pin, r.remind(t.Next)
	r.parts.Turns = append(r.parts.Turns, t)
	// The effect has happened: it is recorded even if the run was just
	// interrupted.
	r.logErr = errors.Join(r.logErr, r.keep(context.Background(), t, d))
	r.tell(Event{Type: EventObservation, N: r.steps, Obs: t.ID, Status: t.Status, Output: r.Budget.Observe(t), Next: t.Next, Seconds: float64(d.MS) / 1000})
}

// keep commits a turn. One whose observation cannot be kept is none: its command
// stays a begun one of which nobody knows how it ended, which resume tells.
func (r *run) keep(ctx context.Context, t window.Turn, d Turned) error {
	d = r.complete(t, d)
	err := r.Store.Observe(ctx, r.Session.ID, memory.Observation{ID: t.ID, Cmd: t.Call.Cmd, Stdin: t.Call.Stdin, Output: t.Output, Status: t.Status})
	if err != nil {
		return err
	}
	if err := r.log(ctx, kindTurn, d); err != nil {
		return err
	}
	return r.Store.Mark(ctx)
}

// complete is d with what t and the run know.
func (r *run) complete(t window.Turn, d Turned) Turned {
	d.Obs, d.Said, d.Next, d.Step, d.Band, d.Thought = t.ID, t.Said, t.Next, r.steps, r.band, t.Thought
	now := r.Shell.State()
	d.Dir, d.Seen = now.Dir, news(r.shell, now)
	if len(d.Gates) > 0 {
		d.Seals = r.Setup.Seals
	}
	if d.Shown = r.shown && r.failed; d.Changed {
		all := r.differ()
		d.Files = all[:min(len(all), maxNamed)]
	}
	r.remember(d)
	return d
}

// over says whether the run is over although the model would go on.
func (r *run) over() Stop {
	switch used := r.outcome.Tokens.Prompt + r.outcome.Tokens.Output; {
	case r.done:
		return Done
	case r.guard.Stalled():
		return Stalled
	case r.Limits.Tokens > 0 && used-r.basis >= r.Limits.Tokens:
		return Tokens
	case r.tries >= MaxTries:
		return r.gateStop()
	}
	return ""
}

// end commits how the run ended and tells it.
func (r *run) end(ctx context.Context, stop Stop, err error) (Outcome, error) {
	switch c := cancelled(ctx); {
	case r.logErr != nil:
		err = r.logErr // also of a run that is done: the log does not show it
	case c != "":
		stop, err = c, nil
	}
	if err != nil {
		stop = Failed
		if r.Agent.Stop != nil {
			stop = r.Agent.Stop(err)
		}
	}
	o := &r.outcome
	o.Stop, o.Exit, o.Steps, o.Seconds, o.Unfit = stop, stop.Exit(), r.steps, seconds(r.spent+time.Since(r.started)), r.amiss
	if stop == Done {
		o.Exit = r.status
	}
	if err != nil {
		o.Error = err.Error()
	}
	o.Changed = append([]string{}, r.differ()...)
	logged := r.log(context.Background(), kindStop, Ended{*o, r.tree()})
	r.tell(Event{Type: EventResult, Result: o})
	return *o, errors.Join(err, logged)
}

// log appends an event of the session.
func (r *run) log(ctx context.Context, kind string, body any) error {
	_, err := r.Store.Append(ctx, r.Session.ID, kind, body)
	return err
}
