package act

import (
	"regexp"
	"slices"
	"strings"
)

// A plan says what the first part of a line is and what joins it to the rest.
type plan struct {
	cmd   *Command // nil: head is a line for the shell
	head  string   // the first part as it was typed
	words []string // of a built-in: arguments, without its name and free text
	text  string   // of a built-in: free text as it was typed
	stdin *string  // of a built-in: text given with << or on further lines
	from  string   // of a built-in: a file given with <
	op    string   // "", "|", "&&", "||" or ";"
	rest  string   // what follows op
}

// followers are the programs that models run right after a write, on the same
// line. Before any other word an operator behind free text is part of the text.
var followers = []string{"cat", "ls", "head", "tail", "wc", "chmod", "echo"}

// keywords begin a compound command, which only a shell can take apart.
var keywords = []string{
	"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "case", "esac", "select",
	"function", "time", "coproc", "{", "}", "!", "[[",
}

// route makes the plan of a line that strip has been through.
func (s *Shell) route(line, stdin string) (plan, error) {
	pieces, err := scan(line)
	if len(pieces) == 0 || pieces[0].op != "" {
		return plan{head: line}, nil
	}
	name, _ := unquote(line[pieces[0].start:pieces[0].end])
	switch c := s.command(name); {
	case c == nil || slices.Contains(shells, name):
		return s.routeShell(line, pieces, err), nil
	case c.Text != 0:
		return s.routeText(c, line, stdin, pieces, err)
	case err != nil && c.Program && s.command("sh") != nil:
		return plan{head: line}, nil
	case err != nil:
		return plan{cmd: c, head: line, words: strings.Fields(line)[1:]}, nil
	default:
		return s.routeBuiltin(c, line, pieces)
	}
}

// routeBuiltin plans a built-in without free text: its words end at the first
// operator.
func (s *Shell) routeBuiltin(c *Command, line string, pieces []piece) (plan, error) {
	end := firstOperator(pieces, 0)
	words, err := values(line, pieces[:end])
	if err != nil {
		return plan{}, err
	}
	p := plan{cmd: c, words: words[1:], head: line}
	if end < len(pieces) {
		p.head = strings.TrimSpace(line[:pieces[end].start])
		p.join(line, pieces[end])
	}
	return p, nil
}

// routeText plans a built-in with free text. An operator directly behind the
// fixed words is one; behind text it is one only before a command that people do
// put there.
func (s *Shell) routeText(c *Command, line, stdin string, pieces []piece, scanErr error) (plan, error) {
	n := c.fixedPieces(line, pieces)
	words, err := values(line, pieces[:n])
	if err != nil {
		return plan{}, err
	}
	p := plan{cmd: c, words: words[1:], head: line}
	end := pieces[n-1].end
	if scanErr == nil {
		if i := s.textEnd(line, stdin, pieces, n); i < len(pieces) {
			p.head = line[:pieces[i].start]
			p.join(line, pieces[i])
		}
	}
	p.text = strings.TrimPrefix(p.head[min(end, len(p.head)):], " ")
	if before, after, found := strings.Cut(p.text, "\n"); found && strings.TrimSpace(before) == "" {
		p.text = after
	}
	p.text = strings.TrimRight(p.text, " \t")
	return p, nil
}

// fixedPieces returns how many pieces come before free text: the name, the fixed
// words, and what looks like a flag among them.
func (c *Command) fixedPieces(line string, pieces []piece) int {
	n, words := 1, 1
	for n < firstOperator(pieces, 0) && words < c.fixed() {
		if line[pieces[n].start] != '-' {
			words++
		}
		n++
	}
	return n
}

// textEnd returns the index of the operator that ends free text, n being the
// first piece behind the fixed words.
func (s *Shell) textEnd(line, stdin string, pieces []piece, n int) int {
	for i := n; i < len(pieces); i++ {
		direct := i == n
		switch op := pieces[i].op; {
		case op == "<<" && direct:
			return i
		case op == "<" && direct && i+2 == len(pieces) && s.isFile(line, pieces[i+1]):
			return i
		case op == "\n" && direct && stdin == "", strings.ContainsAny(op, "<>()"), op == "":
			continue
		case n > 1 && (direct || s.follows(line, pieces, i+1)):
			return i
		}
	}
	return len(pieces)
}

func (s *Shell) isFile(line string, p piece) bool {
	word, err := unquote(line[p.start:p.end])
	if err != nil {
		return false
	}
	_, err = s.Env.file(word, maxShown)
	return err == nil
}

// follows reports whether the piece at i is the name of a command that models run
// after a write.
func (s *Shell) follows(line string, pieces []piece, i int) bool {
	if i >= len(pieces) || pieces[i].op != "" {
		return false
	}
	name := line[pieces[i].start:pieces[i].end]
	return slices.Contains(followers, name) || s.ours(name)
}

// ours reports whether a granted built-in, and no program, has that name.
func (s *Shell) ours(name string) bool {
	c := s.command(name)
	return c != nil && !c.Program && !slices.Contains(shells, name)
}

// routeShell plans a line that begins with a program. It is cut only where a
// built-in follows in a plain sequence or at the end of a pipe, which bash could
// not run.
func (s *Shell) routeShell(line string, pieces []piece, err error) plan {
	whole := plan{head: line}
	if err != nil {
		return whole
	}
	cut := -1
	begins := true
	for i, p := range pieces {
		word := line[p.start:p.end]
		switch {
		case p.op == "(" || p.op == ")" || p.op == "&" || p.op == ";;":
			return whole
		case p.op == "<<" && cut < 0, begins && slices.Contains(keywords, word):
			return whole
		case begins && i > 0 && cut < 0 && s.ours(word):
			cut = i - 1
		}
		begins = slices.Contains([]string{"|", "|&", "&&", "||", ";", "\n"}, p.op)
	}
	if cut >= 0 {
		whole.head = strings.TrimSpace(line[:pieces[cut].start])
		whole.join(line, pieces[cut])
	}
	return whole
}

func firstOperator(pieces []piece, from int) int {
	for i := from; i < len(pieces); i++ {
		if pieces[i].op != "" {
			return i
		}
	}
	return len(pieces)
}

// silenced matches redirections that mean nothing for a built-in, which has one
// output.
var silenced = regexp.MustCompile(`^(2>\s*/dev/null|2>&\s*1)\s*`)

// join sets what follows the first part, given the operator that ends it.
func (p *plan) join(line string, at piece) {
	tail := line[at.start:]
	for silenced.MatchString(tail) {
		tail = tail[len(silenced.FindString(tail)):]
	}
	op := operatorAt(tail)
	p.rest = strings.TrimSpace(strings.TrimPrefix(tail, op))
	switch {
	case tail == "":
	case op == "<<":
		p.heredoc(tail)
	case op == "<":
		p.redirectIn()
	case strings.ContainsAny(op, ">"), op == "" && strings.ContainsAny(tail, "<>"):
		p.op, p.rest = "|", "cat "+tail
	case op == "|&":
		p.op = "|"
	case op == "\n" || op == "&" || op == ";;" || op == "(" || op == ")" || op == "":
		p.op = ";"
	default:
		p.op = op
	}
	if p.rest == "" {
		p.op = ""
	}
}

// redirectIn takes the name of the file behind < out of the rest.
func (p *plan) redirectIn() {
	rest := p.rest
	p.rest = ""
	pieces, err := scan(rest)
	if err != nil || len(pieces) == 0 || pieces[0].op != "" {
		return
	}
	p.from, _ = unquote(rest[:pieces[0].end])
	if len(pieces) > 1 {
		p.join(rest, pieces[1])
	}
}

var heredocStart = regexp.MustCompile(`^<<-?[ \t]*(?:'(\w+)'|"(\w+)"|\\?(\w+))[^\n]*\n`)

// heredoc takes the text of a here-document. Without its closing word it goes to
// the end, as in bash.
func (p *plan) heredoc(tail string) {
	p.rest = ""
	m := heredocStart.FindStringSubmatch(tail)
	if m == nil {
		return
	}
	word := m[1] + m[2] + m[3]
	body := tail[len(m[0]):]
	for at := 0; at < len(body); {
		n := lineLength(body[at:])
		if strings.TrimSpace(body[at:at+n]) == word {
			p.op, p.rest = ";", strings.TrimSpace(body[at+n:])
			body = body[:at]
			break
		}
		at += n + 1
	}
	p.stdin = &body
}
