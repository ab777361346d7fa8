package harness

import (
	"context"
	"time"

	window "tether/context"
)

// Hand runs calls that a person gives, one after the other whatever comes of
// them. They are recorded like a model's, so that they can be shown again. told
// gets each turn and the time that its command took; an error of it ends the
// run. The status is that of the last call.
func (a *Agent) Hand(ctx context.Context, task string, calls []window.Call, told func(window.Turn, time.Duration) error) (int, error) {
	r := a.newRun(task)
	err := r.setUp(ctx)
	for i := 0; i < len(calls) && err == nil; i++ {
		err = r.hand(ctx, calls[i], told)
	}
	cancelled := context.Cause(ctx)
	if _, ended := r.end(ctx, Done, err); ended != nil {
		return 0, ended
	}
	return r.status, cancelled
}

// hand runs one call.
func (r *run) hand(ctx context.Context, call window.Call, told func(window.Turn, time.Duration) error) error {
	r.steps++
	res := r.act(ctx, call)
	if res.Err != nil {
		return res.Err
	}
	r.status = res.Status
	r.add(window.Turn{Call: call, Output: res.Output, Status: res.Status}, r.turned(res))
	return told(r.parts.Turns[len(r.parts.Turns)-1], r.took)
}
