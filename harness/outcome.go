package harness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Stop says in a word why a run ended.
type Stop string

// The reasons. Their exit statuses are fixed (DESIGN 8).
const (
	Done        Stop = "done"        // every gate passed
	GateFailed  Stop = "gate_failed" // a gate failed and the tries are spent
	GateError   Stop = "gate_error"  // a gate could not judge (not run, or its files were changed), and the tries are spent
	Steps       Stop = "steps"       // out of steps
	Time        Stop = "time"        // out of time
	Tokens      Stop = "tokens"      // out of tokens
	Stalled     Stop = "stalled"     // loop, cycle, no progress
	Waiting     Stop = "waiting"     // for an answer or an approval
	Unreachable Stop = "unreachable" // no model server
	NoModel     Stop = "no_model"    // model missing, or refused by the server; a script at its end
	Config      Stop = "config"      // configuration error
	Sandbox     Stop = "sandbox"     // the sandbox cannot be had
	Interrupted Stop = "interrupted" // SIGINT
	Terminated  Stop = "terminated"  // SIGTERM
	Hangup      Stop = "hangup"      // SIGHUP: the terminal was closed
	Failed      Stop = "error"       // error inside tether
)

// Exit is the exit status of a process that ends for this reason.
func (s Stop) Exit() int {
	switch s {
	case Done:
		return 0
	case GateFailed, GateError:
		return 3
	case Steps, Time, Tokens:
		return 4
	case Stalled:
		return 5
	case Waiting:
		return 6
	case Unreachable:
		return 7
	case NoModel:
		return 8
	case Config:
		return 9
	case Sandbox:
		return 78
	case Interrupted:
		return 130
	case Terminated:
		return 143
	case Hangup:
		return 129
	}
	return 1
}

// ErrInterrupted, ErrTerminated and ErrHangup are the causes with which a front
// end cancels the context of a run after SIGINT, SIGTERM and SIGHUP.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrTerminated  = errors.New("terminated")
	ErrHangup      = errors.New("hangup")
	errTime        = errors.New("the time limit is reached")
)

// cancelled names the reason for which ctx ended; empty if it did not.
func cancelled(ctx context.Context) Stop {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return ""
	case errors.Is(cause, errTime), errors.Is(cause, context.DeadlineExceeded):
		return Time
	case errors.Is(cause, ErrTerminated):
		return Terminated
	case errors.Is(cause, ErrHangup):
		return Hangup
	default:
		return Interrupted
	}
}

// An Outcome is what came of a run. Its JSON is the object of run --json.
type Outcome struct {
	V       int          `json:"v"` // version of the format: 1
	Session string       `json:"session"`
	Task    string       `json:"task"`
	Stop    Stop         `json:"stop"`
	Exit    int          `json:"exit"`
	Report  string       `json:"report"`          // what the model said with done, or asked with ask
	Unfit   string       `json:"unfit,omitempty"` // why the newest report does not fit the schema, if it does not
	Steps   int          `json:"steps"`           // replies of the model
	Model   string       `json:"model"`
	Sandbox string       `json:"sandbox"` // the profile
	Network string       `json:"network"` // what commands could reach: off, proxy, host
	Gates   []GateResult `json:"gates"`
	Tokens  Count        `json:"tokens"`
	Folds   int          `json:"folds"` // how often the past was folded or summarised
	Seconds float64      `json:"seconds"`
	Changed []string     `json:"changed"` // files, as the workspace shows them
	Planted []string     `json:"planted"` // what commands left for other programs to run or believe
	Error   string       `json:"error,omitempty"`
}

// Failure is the outcome of a run that could not begin.
func Failure(task string, stop Stop, err error) Outcome {
	return Outcome{V: 1, Task: task, Stop: stop, Exit: stop.Exit(), Gates: []GateResult{}, Changed: []string{}, Planted: []string{}, Error: err.Error()}
}

// A TaskError says that a task is too long for the model's window.
type TaskError struct {
	Need, Have int // tokens
}

// Error names both numbers and the way out.
func (e *TaskError) Error() string {
	return fmt.Sprintf("the task is about %d tokens and may be %d of this window\nput the long part into a file of the workspace and name the file in the task", e.Need, e.Have)
}

// A Count sums tokens over the requests of a run.
type Count struct {
	Prompt int `json:"prompt"`
	Cached int `json:"cached"`
	Output int `json:"output"`
	// CacheTold is false where no server said what it still held of a prompt:
	// then Cached is 0 and means nothing.
	CacheTold bool `json:"cache_told"`
}

// Plus is the sum of c and d.
func (c Count) Plus(d Count) Count {
	return Count{c.Prompt + d.Prompt, c.Cached + d.Cached, c.Output + d.Output, c.CacheTold || d.CacheTold}
}

// seconds rounds d to milliseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
