package act

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Command is one built-in. It is data: the list in the prompt, the help, the
// schema that constrains decoding and the check of flags are all made from it.
type Command struct {
	Name    string // the first word of the line
	Args    string // a synopsis: "FILE [A:B]"
	Summary string // a few words for List; the whole line of List is at most 48 bytes
	Detail  string // for Help, which is at most 280 bytes
	Flags   []Flag // parsed by the shell, wherever they stand

	// Run does the work. It writes content to env.Out and closing sentences with
	// env.Say. Its error is an *Error for what the model can mend, or a fault of
	// tether or the sandbox, which ends the run.
	Run func(ctx context.Context, env *Env, args []string) error

	// Text is how many words come before free text: 1 in "write FILE TEXT…".
	// What follows them on the line is taken as it stands, and is the stdin when
	// there is none. Zero for a command without free text; -1 when the text
	// begins right after the name.
	Text int
	// Program says that a real program has this name and the model knows it:
	// what the built-in does not do (other flags, scripts) goes to the program
	// when sh is granted.
	Program bool
	// Raw leaves flags to Run.
	Raw bool
	// Quote puts quotes into a line where a shell would take apart what is one word
	// for this command; nil for one with words like any other.
	Quote func(line string) string
	// ByName says that the command is for those who ask for it: it is not among the
	// tools of a run in which nobody named any.
	ByName bool

	own *Own // made by the user: the sandbox runs it
}

// A Flag is one option of a Command.
type Flag struct {
	Name  string // without dashes, one letter
	Value string // what its argument is called; empty for a switch
	Usage string // a few words
}

// fixed returns how many words of the line, the name included, are no free
// text.
func (c *Command) fixed() int {
	if c.Text < 0 {
		return 1
	}
	return 1 + c.Text
}

// usage is the first level of help: one line.
func (c *Command) usage() string { return strings.TrimSpace(c.Name + " " + c.Args) }

// Help is the second level of help, at most 280 bytes: usage, detail, flags.
func (c *Command) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n%s\n", c.usage(), c.Detail)
	for _, f := range c.Flags {
		if f.Usage != "" {
			fmt.Fprintf(&b, "  %s  %s\n", strings.TrimSpace("-"+f.Name+" "+f.Value), f.Usage)
		}
	}
	return b.String()
}

// line is the command's line in List.
func (c *Command) line() string { return c.usage() + " - " + c.Summary }

// flag returns the flag of that name.
func (c *Command) flag(name string) (Flag, bool) {
	i := slices.IndexFunc(c.Flags, func(f Flag) bool { return f.Name == name })
	if i < 0 {
		return Flag{}, false
	}
	return c.Flags[i], true
}

// parseFlags takes the flags out of words. bad is the first word that is no flag of
// c although it looks like one; rest has the words without flags, so that a
// corrected line can be shown.
func (c *Command) parseFlags(words []string) (flags map[string]string, rest []string, bad string) {
	flags = map[string]string{}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return flags, append(rest, words[i+1:]...), bad
		}
		if w[0:min(1, len(w))] == "[" && slices.Contains(strings.Fields(c.Args), w) {
			continue // copied from the usage line: an argument that may be left out
		}
		if len(w) < 2 || w[0] != '-' {
			rest = append(rest, w)
			continue
		}
		value := words[i+1:]
		used, ok := c.take(flags, strings.TrimLeft(w, "-"), value)
		if !ok && bad == "" {
			bad = w
		}
		i += used
	}
	return flags, rest, bad
}

// take reads one word of flags ("rn", "n5", "n") into flags and returns how
// many of the words behind it were a value.
func (c *Command) take(flags map[string]string, word string, next []string) (used int, ok bool) {
	for i, r := range word {
		f, ok := c.flag(string(r))
		switch {
		case !ok:
			return 0, false
		case f.Value == "":
			flags[f.Name] = "on"
		case len(word) > i+1:
			flags[f.Name] = strings.TrimPrefix(word[i+1:], "=")
			return 0, true
		case len(next) > 0:
			flags[f.Name] = next[0]
			return 1, true
		default:
			return 0, false
		}
	}
	return 0, word != ""
}
