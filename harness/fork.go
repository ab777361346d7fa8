package harness

import (
	"encoding/json"
	"fmt"

	"tether/memory"
)

// Until are the events of a session up to the end of step n, with which another
// session can begin. Step 0 is the beginning, before the model was asked. The
// error says why there is no such beginning.
func Until(events []memory.Event, n int) ([]memory.Event, error) {
	end, steps, done := 0, 0, false
	for i, e := range events {
		switch e.Kind {
		case kindSetup:
			end = max(end, i+1)
		case kindTurn:
			var t Turned
			if json.Unmarshal(e.Body, &t) != nil {
				continue // it belongs to the step before the next one that can be read
			}
			if steps = max(steps, t.Step); t.Step <= n {
				end, done = i+1, t.Done
			}
		}
	}
	switch {
	case n < 0 || n > steps:
		return nil, fmt.Errorf("there is no step %d; the session has %d", n, steps)
	case end == 0:
		return nil, fmt.Errorf("the session has not begun")
	case done:
		return nil, fmt.Errorf("step %d is the end of the session, and nothing is left to do after it\ngive it more to do with: tether send, or name an earlier step", n)
	}
	return events[:end], nil
}
