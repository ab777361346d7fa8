package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The first screen fits a terminal of 24 lines and 80 columns: what somebody
// needs on their first day has a line, the rest its name.
var firstDay = []string{"run", "batch", "resume", "show", "ls", "act", "models", "init", "doctor", "config"}

const (
	helpAbout = "tether lets a small local model do real work: it runs commands in a sandbox\nuntil your check passes.\n\n"
	helpMore  = "\nStart: tether run \"make the tests pass\" --verify \"go test ./...\"\n" +
		"More:  tether help COMMAND, or commands, exit-codes, environment; tether doctor\n"
)

// A topic is a text of help that belongs to no command.
type topic struct{ Name, Text string }

// topics is a function because one of them lists the table of commands.
func topics() []topic {
	return []topic{{"commands", commandList()}, {"exit-codes", exitCodes}, {"environment", environmentHelp}}
}

// help prints the first screen.
func (p *program) help(w io.Writer) {
	fmt.Fprint(w, helpAbout)
	var others []string
	for _, c := range subcommands() {
		switch {
		case slices.Contains(firstDay, c.Name):
			fmt.Fprintf(w, "  tether %-35s %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Summary)
		case !c.Hidden:
			others = append(others, c.Name)
		}
	}
	fmt.Fprintf(w, "\n%s\n", filled("and "+strings.Join(others, ", "), 80))
	fmt.Fprint(w, helpMore)
}

// filled breaks text between words into lines of less than width columns.
func filled(text string, width int) string {
	var b strings.Builder
	at := 0
	for word := range strings.FieldsSeq(text) {
		switch n := columns(word); {
		case at == 0:
			at = n
		case at+1+n >= width:
			b.WriteByte('\n')
			at = n
		default:
			b.WriteByte(' ')
			at += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}

// commandList is a line for each command.
func commandList() string {
	var b strings.Builder
	for _, c := range subcommands() {
		if !c.Hidden {
			fmt.Fprintf(&b, "  tether %-35s %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Summary)
		}
	}
	return b.String()
}

func (p *program) helpFor(args []string) error {
	if len(args) == 0 || args[0] == "help" {
		p.help(p.Out)
		return nil
	}
	words := names()
	for _, t := range topics() {
		if t.Name == args[0] {
			_, err := fmt.Fprint(p.Out, t.Text)
			return err
		}
		words = append(words, t.Name)
	}
	c := find(args[0])
	if c == nil {
		return noCommand(args[0], words)
	}
	c.help(p.Out)
	return nil
}

// flags are the flags of a command.
func (c *subcommand) flags() *pflag.FlagSet {
	fs := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	c.Flags(fs)
	return fs
}

// help prints one subcommand's usage, text and flags.
func (c *subcommand) help(w io.Writer) {
	fs := c.flags()
	fmt.Fprintf(w, "usage: tether %s [flags]\n\n%s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Detail)
	if use := flagList(fs); use != "" {
		fmt.Fprintf(w, "\n%s", use)
	}
}

// environmentHelp is what tether help environment prints: every variable that is
// read. A test holds it to the sources.
const environmentHelp = `TETHER_SECTION_KEY     any setting, for example TETHER_RUN_STEPS=20; lists with commas
TETHER_MODEL           the model, short for TETHER_MODEL_NAME
TETHER_CONFIG          your own configuration file, instead of the one in the XDG place
TETHER_STATE           the folder in which sessions are kept
TETHER_STATE_ANYWHERE  1: a store on a network file system, on your own account
TETHER_MODELS          the folder of the models that were fetched
TETHER_LLAMA_URL       a llama-server (http://127.0.0.1:8080)
OLLAMA_HOST            an Ollama (http://127.0.0.1:11434)
OPENAI_BASE_URL        a compatible endpoint, for models named openai/NAME
ANTHROPIC_BASE_URL     the same, for models named anthropic/NAME
OPENAI_API_KEY         its key: never shown, never kept (and ANTHROPIC_API_KEY)
NO_COLOR               anything: no escape sequence is printed
TERM                   dumb: no colour, and no line that moves
LANG, LC_ALL, LC_CTYPE UTF-8: pictures that are not ASCII
GITHUB_STEP_SUMMARY    with --report github, the file of the job summary
GITHUB_WORKSPACE       with --report github, the folder that file names begin in
HOME, XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME, XDG_CACHE_HOME
                       where things are kept: tether dirs

Commands that the model runs see none of them.
`

const exitCodes = `  0  done, every gate passed
  1  error inside tether; a result not written; another process has the session
  2  usage
  3  a gate failed, could not run, or is made of files that were changed
  4  out of steps, time or tokens
  5  stalled: the model repeated itself
  6  waiting for an answer or an approval
  7  model server unreachable
  8  model missing or refused by its server, or a script at its end
  9  configuration error, or one that is not trusted
 78  the sandbox cannot be had, or was gone around
129  the terminal was closed
130  interrupted
143  terminated
`
