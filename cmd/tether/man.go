package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// manCommand is a function, as the table of commands is, because it reads that table.
func manCommand() *subcommand {
	return &subcommand{
		Name:    "man",
		Summary: "print the manual page",
		Detail: `Prints the manual page, made of the same texts as help. To read it, and to keep it:

  tether man | man -l -
  tether man > ~/.local/share/man/man1/tether.1`,
		Flags: func(*pflag.FlagSet) func(context.Context, *program, []string) error {
			return func(_ context.Context, p *program, args []string) error {
				if err := noWords("man", args); err != nil {
					return err
				}
				_, err := io.WriteString(p.Out, manual())
				return err
			}
		},
	}
}

// manual is the page in the macros of man(7).
func manual() string {
	var b strings.Builder
	b.WriteString(".TH TETHER 1\n.SH NAME\ntether \\- let a small local model do real work\n")
	b.WriteString(".SH SYNOPSIS\n.B tether\n.I COMMAND\n[\\fIargument\\fR ...] [\\fIflag\\fR ...]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(strings.TrimSpace(helpAbout)))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range subcommands() {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(&b, ".SS tether %s\n%s.\n.PP\n.nf\n%s\n.fi\n", roff(strings.TrimSpace(c.Name+" "+c.Args)), roff(c.Summary), roff(c.Detail))
		c.flags().VisitAll(func(f *pflag.Flag) {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(flagName(f)), roff(f.Usage+usually(f)))
		})
	}
	section := func(title, text string) {
		fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(strings.TrimRight(text, "\n")))
	}
	section("EXIT STATUS", exitCodes)
	section("ENVIRONMENT", environmentHelp)
	section("FILES", "tether dirs prints where everything is.\n\n~/.config/tether/tether.toml\n./tether.toml, which may only narrow\n~/.local/state/tether, or .tether in the workspace\n~/.local/share/tether/models\n~/.cache/tether")
	return b.String()
}

// roff is text as roff prints it: no line is taken for a request, and a hyphen can
// be copied into a shell.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
