package act

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"tether/sandbox"
)

// An Own is a command that a user made: a program with a name and a line of help.
type Own struct {
	Name    string
	Summary string   // a few words
	Usage   string   // what comes behind the name: "FILE…"
	Argv    []string // the program and its first arguments; those of the call follow
	Shell   string   // or a line for bash, which has the arguments as "$@"
}

// ownName is what a command may be called: a word that no quotes are needed for.
var ownName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// Bounds of what help may cost in bytes: 12 tokens a line of the list, 70 for the
// help of a command, at four bytes a token.
const (
	maxListLine = 48
	maxHelp     = 280
)

// Command returns the command, or an error in words for the user. It runs in the
// sandbox, with the arguments of the call as they are and its stdin as stdin.
func (o Own) Command() (*Command, error) {
	c := &Command{
		Name: o.Name, Args: o.Usage, Summary: o.Summary, Raw: true, own: &o,
		Detail: o.Summary + ".",
		Run:    func(context.Context, *Env, []string) error { return errProgram },
	}
	taken := slices.ContainsFunc(Builtins(), func(b *Command) bool { return b.Name == o.Name })
	switch {
	case !ownName.MatchString(o.Name):
		return nil, fmt.Errorf("is no name for a command: write it with a-z, 0-9, - and _")
	case taken || isReserved(o.Name) || slices.Contains(keywords, o.Name) || slices.Contains(shells, o.Name) || o.Name == "cd" || o.Name == "apply_patch":
		return nil, fmt.Errorf("is the name of a command that there is already: take another one")
	case (len(o.Argv) == 0) == (strings.TrimSpace(o.Shell) == ""):
		return nil, fmt.Errorf("has nothing to run: run is a line for the shell, or a list of a program and its arguments")
	case len(o.Argv) > 0 && o.Argv[0] == "":
		return nil, fmt.Errorf("has a program without a name in run")
	case strings.TrimSpace(o.Summary) == "":
		return nil, fmt.Errorf("has no summary: a model reads it to know what the command is for")
	case strings.ContainsAny(o.Usage+o.Summary, "\n\r\x00"):
		return nil, fmt.Errorf("has a summary or a usage of more than one line")
	case len(c.line()) > maxListLine:
		return nil, fmt.Errorf("takes %d bytes in the prompt (%s), and may take %d: shorten summary or usage", len(c.line()), c.line(), maxListLine)
	}
	return c, nil
}

// cmd is what the sandbox runs for a call. A program that is named with a folder
// is one of the workspace, wherever the call is made.
func (o Own) cmd(args []string, root string) sandbox.Cmd {
	if o.Shell != "" {
		return sandbox.Cmd{Argv: append([]string{"bash", "-c", o.Shell, o.Name}, args...)}
	}
	argv := append(slices.Clone(o.Argv), args...)
	if strings.Contains(argv[0], "/") && !path.IsAbs(argv[0]) {
		argv[0] = path.Join(root, argv[0])
	}
	return sandbox.Cmd{Argv: argv}
}

// own runs a command of the user.
func (s *Shell) own(ctx context.Context, c *Command, args []string, stdin string) part {
	cmd := c.own.cmd(args, s.Env.Box.Policy().Root)
	cmd.Dir = s.Env.Dir
	line := c.Name
	for _, a := range args {
		line += " " + Quote(a)
	}
	return s.runs(ctx, cmd, watch{line: line}, line, stdin)
}
