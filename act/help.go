package act

import (
	"context"
	"fmt"
	"strings"

	"tether/sandbox"
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
		fmt.Fprint(env.Out, env.shell.help(c))
		return nil
	},
}

// help is the second level of help, with what commands reach of the network here.
func (s *Shell) help(c *Command) string {
	if c != shCommand || s.Env.Box == nil {
		return c.Help()
	}
	reach := map[sandbox.Network]string{sandbox.NetProxy: "Some hosts only, no terminal", sandbox.NetHost: "No terminal"}
	if word, ok := reach[s.Env.Box.Policy().Network]; ok {
		return strings.Replace(c.Help(), shReach, word, 1)
	}
	return c.Help()
}
