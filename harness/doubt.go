package harness

import (
	"tether/act"
	window "tether/context"
)

// doubts says whether a done is to be questioned: nothing else judges it, and it
// comes right after a command that failed. Once in a run is enough: the failure may
// be what was to be found out.
func (r *run) doubts() bool { return len(r.Gates) == 0 && r.slipped != act.OK && !r.doubted }

// doubt ends a done that is questioned. The same done again counts.
func (r *run) doubt(call window.Call, res act.Result) act.Result {
	r.questioned = true
	r.state.doubt(call)
	r.tell(Event{Type: EventWarning, N: r.steps, Output: "done right after a command that failed: the model is asked once whether that is right"})
	return act.Result{Status: act.Failed, Output: window.Text("doubt", nil), Changed: res.Changed, Gates: res.Gates, Report: res.Report}
}

// doubt books that.
func (s *state) doubt(call window.Call) {
	s.doubted = true
	s.guard.Unsee(call)
}
