package act

import "fmt"

// The statuses of a Result. A command that was run in the sandbox may have any
// other one between 0 and 255.
const (
	OK       = 0   // done
	Failed   = 1   // understood, and it did not work
	Usage    = 2   // not understood
	TimedOut = 124 // stopped at the time limit
	Denied   = 126 // not allowed, or a person has to approve it first
	NotFound = 127 // not available to this agent
)

// An Error is a failure that the model can do something about.
type Error struct {
	Status int    // one of the statuses; never OK
	Msg    string // the cause, lower case, one line
	Hint   string // a command that works, printed after "try: "; may be empty
}

// Error returns the text that the model reads: one line, or two with a hint.
func (e *Error) Error() string {
	if e.Hint == "" {
		return "error: " + e.Msg
	}
	return "error: " + e.Msg + "\ntry: " + e.Hint
}

// failed returns an Error with the status Failed.
func failed(hint, format string, args ...any) *Error {
	return &Error{Failed, fmt.Sprintf(format, args...), hint}
}

// misuse returns an Error with the status Usage.
func misuse(hint, format string, args ...any) *Error {
	return &Error{Usage, fmt.Sprintf(format, args...), hint}
}
