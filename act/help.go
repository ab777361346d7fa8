package act

import (
	"context"
	"fmt"
)

var helpCommand = &Command{
	Name:    "help",
	Args:    "[NAME]",
	Summary: "explain a command",
	Detail:  "Lists the commands, or explains one. NAME --help is the same.\nexample: help edit",
	Run: func(_ context.Context, env *Env, args []string) error {
		if len(args) == 0 {
			fmt.Fprint(env.Out, env.shell.List())
			env.Say("For one of them: help %s", env.shell.Names()[0])
			return nil
		}
		c := env.shell.command(args[0])
		if c == nil {
			return &Error{NotFound, "you do not have that: " + args[0], "help"}
		}
		fmt.Fprint(env.Out, c.Help())
		return nil
	},
}
