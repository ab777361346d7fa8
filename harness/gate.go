package harness

import (
	"context"
	"slices"
	"strings"
	"time"

	"tether/act"
	window "tether/context"
)

// MaxTries is how often the gates may fail. Three failures in a row of a small
// model were not followed by a success in any of the transcripts that the
// number comes from.
const MaxTries = 3

// A Gate is a command line that must succeed before done counts.
type Gate struct {
	Cmd string
	// Hidden keeps the line itself from the model: it sees only what the gate
	// prints. The benchmark uses it where the line would give the answer away.
	Hidden bool
}

// A GateResult is how a gate stands.
type GateResult struct {
	Cmd    string `json:"cmd"`
	Status int    `json:"status"`
	Tries  int    `json:"tries"`
	// Changed are files that the gate is made of and that are not what they were
	// before the first act. With the status act.Denied the gate did not judge.
	Changed []string `json:"changed,omitempty"`
}

// cannotRun says whether status is one of a gate that did not get to judge:
// timed out, not executable, not found.
func cannotRun(status int) bool {
	return status == act.TimedOut || status == act.Denied || status == act.NotFound
}

// verify runs every gate after the model said done. res is what done
// returned; it comes back as it is when all gates pass, and else as a failed
// observation that says what the first failing gate printed.
func (r *run) verify(ctx context.Context, call window.Call, res act.Result) act.Result {
	report, wrong := r.Form.Check(res.Report)
	if r.outcome.Report = res.Report; wrong != "" {
		return r.unfit(call, res, wrong)
	}
	r.outcome.Report, res.Report, r.amiss = report, report, ""
	if r.doubts() {
		return r.doubt(call, res)
	}
	for i, g := range r.Gates {
		if names := r.tampered(g, true); len(names) > 0 {
			return r.gateChanged(ctx, i, names, res)
		}
		r.Check.Env.Dir = ""
		began := time.Now()
		got := r.Check.Program(ctx, g.Cmd)
		r.report(got)
		if got.Err != nil {
			return got
		}
		if ctx.Err() != nil {
			return act.Result{Err: context.Cause(ctx)}
		}
		gate := &r.outcome.Gates[i]
		// The gate may run what the model wrote: what it is made of is looked at
		// again after it.
		if names := r.tampered(g, true); len(names) > 0 {
			return r.gateChanged(ctx, i, names, res)
		}
		gate.Status, gate.Tries, gate.Changed = got.Status, gate.Tries+1, r.tampered(g, false)
		r.tell(Event{Type: EventGate, N: r.steps, Cmd: g.Cmd, Status: got.Status, Output: got.Output, Seconds: seconds(time.Since(began)), Changed: gate.Changed})
		if err := r.log(ctx, kindGate, gate); err != nil {
			return act.Result{Err: err}
		}
		if got.Status != act.OK {
			r.tries++
			r.failed = true
			return act.Result{Status: act.Failed, Output: r.gateFailed(g, got), Changed: res.Changed, Gates: res.Gates, Report: res.Report}
		}
	}
	r.add(window.Turn{Call: call, Output: window.Text("finished", window.Values{"Gates": window.If(len(r.Gates) > 0)})}, r.turned(res))
	return res
}

// takeUp adds the checks of a skill that the model chose to follow. Gates only
// ever become more: no call takes one away.
func (r *run) takeUp(lines []string) {
	for _, line := range lines {
		if !slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Cmd == line }) {
			r.Gates = append(slices.Clip(r.Gates), Gate{Cmd: line})
			r.outcome.Gates = append(r.outcome.Gates, GateResult{Cmd: line})
			if more, err := r.sealsOf(Gate{Cmd: line}); err == nil {
				r.Setup.Seals = append(slices.Clip(r.Setup.Seals), more...)
			}
		}
	}
}

// gateFailed is what the model reads of a failed gate: what it printed, and
// the small files concerned as they are now.
func (r *run) gateFailed(g Gate, got act.Result) string {
	reason := "the check failed."
	switch {
	case cannotRun(got.Status):
		reason = "the check could not run."
	case !g.Hidden:
		reason = "this failed: " + g.Cmd
	}
	files := r.concerned(got.Output + " " + r.outcome.Task)
	r.shown = files != ""
	return window.Text("gate_failed", window.Values{
		"Reason": reason,
		"Output": strings.TrimSpace(window.Excerpt(got.Output, 1200, 500, 500, "")),
		"Files":  files,
		"Task":   window.Clip(r.outcome.Task, 600, 400, 150, ""),
	})
}

// gateStop is the reason of a run whose gates failed too often.
func (r *run) gateStop() Stop {
	for _, g := range r.outcome.Gates {
		if cannotRun(g.Status) {
			return GateError
		}
	}
	return GateFailed
}
