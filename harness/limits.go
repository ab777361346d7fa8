package harness

import "time"

// Limits end a run that does not end by itself. Zero is no limit, except for
// Steps. Steps and Tokens count from the task, or from what the person said last.
type Limits struct {
	Steps  int           `json:"steps"`  // replies of the model; 0 is DefaultSteps
	Time   time.Duration `json:"time"`   // of one run; nanoseconds in JSON
	Tokens int           `json:"tokens"` // prompt and output of all requests together
}

// DefaultSteps is how many replies a task may take. The twelve small tasks
// of docs/results.md need 2 to 12; real ones in a small project up to 30.
const DefaultSteps = 40

// left is how many more replies l allows.
func (s *state) left(l Limits) int { return l.Steps - (s.steps - s.base) }
