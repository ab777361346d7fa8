package act

import (
	"context"
	"strings"
)

var askCommand = &Command{
	Name:    "ask",
	Args:    "QUESTION",
	Summary: "ask the user, and wait",
	Detail: "Ends your turn with a question that only the user can answer. The answer is\n" +
		"the next message. It may also stand in stdin.\nexample: ask Which of the two formats is meant?",
	Text:   -1,
	ByName: true,
	Run: func(_ context.Context, env *Env, _ []string) error {
		question := strings.TrimSpace(env.Stdin)
		if question == "" {
			return misuse("ask --help", "what is the question? usage: %s", env.cmd.usage())
		}
		env.asked, env.report = true, question
		env.Say("The question goes to the user.")
		return nil
	},
}
