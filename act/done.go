package act

import (
	"context"
	"strings"
)

var doneCommand = &Command{
	Name:    "done",
	Args:    "REPORT",
	Summary: "say that the task is finished",
	Detail:  "Ends the task. REPORT says in a sentence or two what was done; it may also\nstand in stdin. The result is checked first.\nexample: done Fixed last_n; the test passes.",
	Text:    -1,
	Run: func(_ context.Context, env *Env, _ []string) error {
		env.Done(strings.TrimSpace(env.Stdin))
		return nil
	},
}
