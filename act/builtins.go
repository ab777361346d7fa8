package act

import (
	"fmt"
	"slices"
	"strings"
)

// Builtins returns the built-in commands in the order of help. It is the place
// that answers what a model can do; packages that act does not know bring their
// own commands, and the program appends them.
func Builtins() []*Command {
	return []*Command{
		shCommand, readCommand, writeCommand, appendCommand, editCommand,
		grepCommand, findCommand, webCommand, memCommand, skillCommand, askCommand, doneCommand, helpCommand,
	}
}

// reserved are the words that are commands of tether for some agent. An agent
// that was not granted one is told so, instead of reaching the builtin or the
// program of bash that happens to have the same name.
var reserved = []string{
	"sh", "read", "write", "append", "edit", "mem", "web", "done", "ask", "help",
	"skill", "kb", "mcp", "agent", "wait", "tool", "term",
}

// Grant returns the commands with the given names, in the order of cmds. The
// error names the unknown ones.
func Grant(cmds []*Command, names []string) ([]*Command, error) {
	var granted []*Command
	var known []string
	for _, c := range cmds {
		known = append(known, c.Name)
		if slices.Contains(names, c.Name) {
			granted = append(granted, c)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("no command is named %q; there are %s", n, strings.Join(known, ", "))
		}
	}
	return granted, nil
}
