package main

import (
	"fmt"
	"maps"
	"slices"

	"tether/act"
)

// commands are all that a shell can be granted: the built-in ones, and those that
// c defines.
func (c Config) commands() ([]*act.Command, error) {
	all := act.Builtins()
	for _, name := range slices.Sorted(maps.Keys(c.Command)) {
		def := c.Command[name]
		own := act.Own{Name: name, Summary: def.Summary, Usage: def.Usage}
		switch run := def.Run.(type) {
		case string:
			own.Shell = run
		case []any:
			for _, word := range run {
				text, ok := word.(string)
				if !ok {
					return nil, fmt.Errorf("command.%s has %v in run, which takes words in quotes", name, word)
				}
				own.Argv = append(own.Argv, text)
			}
		}
		cmd, err := own.Command()
		if err != nil {
			return nil, fmt.Errorf("command.%s %w", name, err)
		}
		all = append(all, cmd)
	}
	return all, nil
}

// granted are the commands of a shell under c. A command that somebody defines is
// there to be used: it is granted unless the tools were named.
func (c Config) granted() ([]*act.Command, error) {
	all, err := c.commands()
	if err != nil {
		return nil, err
	}
	names := c.Run.Tools
	if slices.Equal(names, Default().Run.Tools) {
		names = slices.AppendSeq(slices.Clone(names), maps.Keys(c.Command))
	}
	return act.Grant(c.withoutWeb(all, names))
}
