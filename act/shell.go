package act

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Result is what a model is told about one act.
type Result struct {
	Status  int    // OK, or how it failed; of a program, its exit status
	Output  string // content, then closing sentences; not clipped
	Done    bool   // the model says that the task is finished
	Asked   bool   // the model asks the user something and waits
	Report  string // what it reports, when Done, or asks, when Asked
	Changed bool   // a file of the workspace was made, changed or deleted
	Broken  bool   // a file was written that does not parse: nothing should offer done
	// Idle says that a file was to be written as it is: no effect, and often a
	// copy of what the model was shown where it meant to change it.
	Idle bool
	// Nameless says that the line was the text of a program, without the name of the
	// file that it is for.
	Nameless bool
	// Recall says that the output is, or is made of, what was kept of earlier acts:
	// a model that asked for it again would ask a third time if it were folded.
	Recall bool
	Pin    bool // the act is to stay in the window: mem pin
	// Gates are the checks of a skill that the model took up: from here on done
	// counts only if they succeed too.
	Gates []string
	// Found is what a program left in the workspace that other programs run or
	// believe: a line each, for the user and not for the model.
	Found []string
	// Err is a fault of the sandbox, the store or the context. It ends the run and
	// is never shown to the model, which could do nothing about it.
	Err error
}

// A Shell runs the command lines of one agent. It keeps the working directory
// and knows which files the agent has seen. It is not safe for concurrent use.
type Shell struct {
	Env Env
	// Approve is asked before a command runs; nil allows everything. A program is
	// asked for as the command sh with the line as its argument. An *Error is shown
	// as it is, any other error as a denial with its text.
	Approve func(ctx context.Context, c *Command, args []string) error
	// Unready is set after a failed gate: until the next try no sentence names done.
	Unready bool

	cmds []*Command
}

// NewShell returns a shell with exactly the commands cmds. env needs a Box.
func NewShell(env Env, cmds []*Command) *Shell {
	s := &Shell{Env: env, cmds: cmds}
	s.Env.shell = s
	s.Env.seen = seen{}
	return s
}

// command returns the granted command of that name, or nil. Models that were
// trained to send patches call edit by the name it had there.
func (s *Shell) command(name string) *Command {
	if name == "apply_patch" {
		name = "edit"
	}
	i := slices.IndexFunc(s.cmds, func(c *Command) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return s.cmds[i]
}

// Names returns the granted first words, in the order of help.
func (s *Shell) Names() []string {
	var names []string
	for _, c := range s.cmds {
		names = append(names, c.Name)
	}
	return names
}

// List is the first level of help: a line of at most 48 bytes a command.
func (s *Shell) List() string {
	var b strings.Builder
	for _, c := range s.cmds {
		b.WriteString(c.line() + "\n")
	}
	return b.String()
}

// A part is the outcome of one part of a line.
type part struct {
	outcome
	status  int
	content string
	err     error // a fault
}

// Do runs one act: a command line and the text that goes with it.
func (s *Shell) Do(ctx context.Context, line, stdin string) Result {
	line = s.strip(line)
	if refused := s.emptied(line, stdin); refused != nil {
		return refusal(refused).result()
	}
	return s.line(ctx, line, input{text: stdin}, 0).result()
}

// result is what the model is told of a part that is a whole line.
func (p part) result() Result {
	if p.err != nil {
		return Result{Status: Failed, Changed: p.changed, Found: p.found, Err: p.err}
	}
	return Result{
		Gates: p.gates, Found: p.found,
		Status: p.status, Done: p.done, Asked: p.asked, Report: p.report, Changed: p.changed, Broken: p.broken, Idle: p.idle, Nameless: p.nameless,
		Recall: p.recall, Pin: p.pin,
		Output: lines(append([]string{p.content}, p.said...)),
	}
}

// lines joins texts, each beginning on a line of its own.
func lines(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(t)
		if t != "" && !strings.HasSuffix(t, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// maxParts bounds how many commands one line may join.
const maxParts = 32

// An input is what a part reads.
type input struct {
	text  string
	piped bool // the text is the output of another part
}

// line runs a line: its first part, and then what joins it to the rest.
func (s *Shell) line(ctx context.Context, line string, in input, depth int) part {
	if slices.Contains(shells, line) && in.text != "" {
		line, in = s.strip(in.text), input{}
	}
	if line == "" {
		return refusal(misuse(s.Env.can("help"), "the command is empty"))
	}
	if depth > maxParts {
		return refusal(misuse("", "the line joins too many commands"))
	}
	p, err := s.route(line, in.text)
	var mine *Error
	switch {
	case errors.As(err, &mine):
		return refusal(mine)
	case err != nil:
		return refusal(misuse("", "%v; put text that needs quotes in stdin", err))
	}
	first := s.first(ctx, &p, line, in)
	if p.into != "" {
		first = s.redirected(ctx, p, first)
	}
	return s.rest(ctx, p, first, depth)
}

// rest runs what follows the first part, as its operator says.
func (s *Shell) rest(ctx context.Context, p plan, first part, depth int) part {
	for p.op == "&&" && first.status != OK || p.op == "||" && first.status == OK ||
		p.op == "|" && first.status != OK && (p.cmd == nil || first.content == "") {
		p.op, p.rest = s.skip(p.rest, depth)
	}
	switch {
	case p.op == "" || first.err != nil || first.done || first.asked:
		return first
	case p.op == "|":
		next := s.line(ctx, s.strip(p.rest), input{first.content, true}, depth+1)
		next.changed, next.recall = next.changed || first.changed, next.recall || first.recall
		next.found = append(first.found, next.found...)
		return next
	}
	next := s.line(ctx, s.strip(p.rest), input{}, depth+1)
	next.content = lines(append(append([]string{first.content}, first.said...), next.content))
	next.changed, next.recall, next.pin = next.changed || first.changed, next.recall || first.recall, next.pin || first.pin
	next.broken = next.broken || first.broken
	next.found = append(first.found, next.found...)
	return next
}

// skip leaves out the first pipe of a list that is not run, and returns what joins
// it to the rest: in a || b && c the third runs although the second does not.
func (s *Shell) skip(list string, depth int) (op, rest string) {
	line := s.strip(list)
	p, err := s.route(line, "")
	switch {
	case err != nil || depth > maxParts:
		return "", ""
	case p.cmd != nil && p.op == "|":
		return s.skip(p.rest, depth+1)
	case p.cmd != nil:
		return p.op, p.rest
	}
	pieces, err := scan(line)
	i := listOperator(pieces)
	if err != nil || i < 0 || slices.Contains(keywords, line[:pieces[0].end]) {
		return "", ""
	}
	after := plan{}
	after.join(line, pieces[i])
	return after.op, after.rest
}

// redirected writes what a built-in has printed where its line says. Without sh it
// is done by the commands for files.
func (s *Shell) redirected(ctx context.Context, p plan, first part) part {
	if first.err != nil || first.status != OK && !p.cmd.Program {
		return first // a file that could not be read leaves the other one as it is
	}
	if m := plainRedirect.FindStringSubmatch(p.into); m != nil && m[1] != ">>" && first.content == "" && slices.Contains(p.words, m[2]) {
		return refusal(failed(s.Env.can("read "+m[2]), "%s is read and written at once, and it would be empty; it was left as it is", m[2]))
	}
	line := "cat " + p.into
	if s.command("sh") == nil {
		m := plainRedirect.FindStringSubmatch(p.into)
		if m == nil || s.command(redirectors[m[1]]) == nil {
			hint := p.cmd.Name
			for _, w := range p.words {
				hint += " " + Quote(w)
			}
			return refusal(misuse(hint, "%s needs a shell, and there is none here", p.into))
		}
		line = redirectors[m[1]] + " " + m[2]
	}
	next := s.line(ctx, line, input{first.content, true}, 1)
	next.changed = next.changed || first.changed
	if next.status == OK && first.status != OK {
		next.status = first.status
		next.said = append(slices.DeleteFunc(next.said, func(s string) bool { return strings.HasPrefix(s, succeeded) }), first.said...)
	}
	return next
}

// plainRedirect is one redirection of the output into one file.
var plainRedirect = regexp.MustCompile(`^1?(>>|>\|?) *(\S+)$`)

// redirectors are the commands for files that do what an operator does.
var redirectors = map[string]string{">": "write", ">|": "write", ">>": "append"}

// first runs the first part of a line. A program-like built-in that cannot do
// what is asked hands the whole line to the shell, and the plan loses its rest.
func (s *Shell) first(ctx context.Context, p *plan, line string, in input) part {
	if p.cmd == nil {
		return s.program(ctx, p.head, in.text)
	}
	got := s.builtin(ctx, p, in)
	if !errors.Is(got.err, errProgram) {
		return got
	}
	if s.command("sh") == nil {
		return refusal(misuse(p.cmd.Name+" --help", "%s cannot do that here; usage: %s", p.cmd.Name, p.cmd.usage()))
	}
	*p = plan{head: line}
	return s.program(ctx, line, in.text)
}

// errProgram is returned by a built-in that leaves the line to the program of its
// name.
var errProgram = errors.New("left to the program of that name")

// builtin runs a built-in in this process.
func (s *Shell) builtin(ctx context.Context, p *plan, in input) part {
	c := p.cmd
	if slices.Contains(p.words, "--help") || c.Text == 0 && len(p.words) == 1 && p.words[0] == "-h" ||
		strings.TrimSpace(p.text) == "--help" {
		return part{content: s.help(c)}
	}
	args, flags := p.words, map[string]string{}
	if !c.Raw {
		var bad string
		if flags, args, bad = c.parseFlags(p.words); bad != "" {
			return s.unknownFlag(p, args, bad)
		}
	}
	env := s.Env
	env.cmd, env.flags, env.outcome, env.piped, env.fed = c, flags, outcome{}, p.op == "|" || p.into != "", in.piped
	if r := env.input(p, in); r != nil {
		return refusal(r)
	}
	if err := s.approve(ctx, c, args); err != nil {
		return refusal(err)
	}
	if c.own != nil {
		return s.own(ctx, c, args, env.Stdin)
	}
	var out bytes.Buffer
	env.Out = &out
	err := c.Run(ctx, &env, args)
	got := part{outcome: env.outcome, content: out.String()}
	return got.with(err)
}

// input sets Stdin: what was given with the call, else what stands on the line.
func (e *Env) input(p *plan, in input) *Error {
	e.Stdin = in.text
	switch typed := unquoteText(p.text); {
	case p.from != "":
		data, err := e.file(p.from, maxShown)
		var bad *Error
		if errors.As(err, &bad) {
			return bad
		}
		e.Stdin = string(data)
	case p.stdin != nil:
		e.Stdin = *p.stdin
	case typed == "":
	case in.text == "":
		e.Stdin, e.typed = typed, p.text
	case strings.TrimSpace(in.text) != strings.TrimSpace(typed):
		e.extra = true
		e.Say("The text on the line was left out, because there is text in stdin.")
	}
	return nil
}

// unquoteText takes the quotes off a text that is one quoted word, and leaves any
// other as it was typed.
func unquoteText(text string) string {
	pieces, err := scan(text)
	if err != nil || len(pieces) != 1 || pieces[0].op != "" || !strings.ContainsAny(text[:1], `'"`) {
		return text
	}
	if word, err := unquote(text[pieces[0].start:pieces[0].end]); err == nil {
		return word
	}
	return text
}

// unknownFlag refuses a flag, or leaves the line to the program that has it.
func (s *Shell) unknownFlag(p *plan, args []string, bad string) part {
	c := p.cmd
	if c.Program && s.command("sh") != nil {
		return part{err: errProgram}
	}
	hint := c.Name + " --help"
	switch name := s.Env.fileName(bad); {
	case name != "":
		hint = c.Name + " ./" + Quote(name)
	case len(args) > 0:
		hint = c.Name
		for _, a := range args {
			hint += " " + Quote(a)
		}
		if !strings.Contains(p.text, "\n") {
			hint = strings.TrimSpace(hint + " " + flagKey.ReplaceAllString(p.text, ""))
		}
	}
	return refusal(misuse(hint, "%s has no flag %s; usage: %s", c.Name, bad, c.usage()))
}

func (s *Shell) approve(ctx context.Context, c *Command, args []string) *Error {
	if s.Approve == nil {
		return nil
	}
	err := s.Approve(ctx, c, args)
	var mine *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mine):
		return mine
	}
	return &Error{Status: Denied, Msg: err.Error()}
}

// refusal is the part that a command becomes when it was not run.
func refusal(e *Error) part { return part{}.with(e) }

// with adds how a command ended. An error that is not an *Error is a fault.
func (p part) with(err error) part {
	var e *Error
	switch {
	case err == nil:
	case errors.As(err, &e):
		p.status = e.Status
		p.said = append(p.said, e.Error())
	default:
		p.err = err
	}
	return p
}

// isReserved reports whether a name is a command of tether for some agent.
func isReserved(name string) bool { return slices.Contains(reserved, name) }

// notGranted refuses what this agent was not given. It says the same for a
// built-in and for a program, and nothing about what others have.
func (s *Shell) notGranted(name string) part {
	return refusal(&Error{NotFound, fmt.Sprintf("you do not have that: %s", name), s.Env.can("help")})
}
