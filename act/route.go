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
	into  string   // of a built-in: redirections of its output, as they were typed
	op    string   // "", "|", "&&", "||" or ";"
	rest  string   // what follows op
}

// followers are the programs that models run right after a write, on the same
// line. Before any other word an operator behind free text is part of the text.
var followers = []string{"cat", "ls", "head", "tail", "wc", "chmod", "echo"}

// starters are programs that models run on a line of their own after a write.
var starters = []string{
	"sh", "bash", "python", "python3", "pytest", "node", "npm", "go", "gofmt", "cargo", "make",
	"gcc", "cc", "ruby", "perl", "git", "test", "diff", "grep", "sort", "rm", "cp", "mv", "mkdir",
}

// keywords begin a compound command, which only a shell can take apart.
var keywords = []string{
	"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "case", "esac", "select",
	"function", "time", "coproc", "{", "}", "!", "[[",
}

// route makes the plan of a line that strip has been through.
func (s *Shell) route(line, stdin string) (plan, error) {
	line = s.catted(line)
	pieces, err := scan(line)
	if len(pieces) > 0 && pieces[0].op == "(" {
		return s.routeShell(line, pieces, err), nil
	}
	if len(pieces) == 0 || pieces[0].op != "" {
		return plan{head: line}, nil
	}
	name, _ := unquote(line[pieces[0].start:pieces[0].end])
	c := s.command(name)
	if c != nil && c.Quote != nil {
		line = c.Quote(line)
		pieces, err = scan(line)
	}
	if c != nil {
		if p, ok := c.below(line, stdin); ok {
			return p, nil
		}
	}
	switch {
	case c == nil || slices.Contains(shells, name):
		return s.routeShell(line, pieces, err), nil
	case c.Text != 0:
		return s.routeText(c, line, stdin, pieces, err)
	case err != nil && c.Program && s.command("sh") != nil:
		return plan{head: line}, nil
	case err != nil:
		words := strings.Fields(line)[1:]
		for i, w := range words {
			words[i] = strings.Trim(w, `"'`) // a quote without its other half
		}
		return plan{cmd: c, head: line, words: words}, nil
	default:
		return s.routeBuiltin(c, line, pieces)
	}
}

// routeBuiltin plans a built-in without free text: its words end at the first
// operator that is no redirection.
func (s *Shell) routeBuiltin(c *Command, line string, pieces []piece) (plan, error) {
	p := plan{cmd: c, head: line}
	var words []piece
	i := 0
	for ; i < len(pieces); i++ {
		if pieces[i].op == "" {
			words = append(words, pieces[i])
		} else if n := p.redirect(line, pieces[i:]); n > 0 {
			i += n
		} else {
			break
		}
	}
	if i < len(pieces) && slices.Contains([]string{"(", ")", ";;"}, pieces[i].op) {
		if c.Program && s.command("sh") != nil {
			return plan{head: line}, nil
		}
		return plan{}, misuse(called(line, pieces), "no %s can stand there; usage: %s", pieces[i].op, c.usage())
	}
	args, err := values(line, words)
	if err != nil {
		return plan{}, err
	}
	p.words = args[1:]
	if i < len(pieces) {
		p.head = strings.TrimSpace(line[:pieces[i].start])
		p.join(line, pieces[i])
	}
	return p, nil
}

// redirect takes up a redirection at the beginning of pieces, and returns how many
// pieces more than one it has; 0 if it is none. A built-in has one output: what
// only joins or silences the errors of a program means nothing for it.
func (p *plan) redirect(line string, pieces []piece) int {
	at := pieces[0]
	if !strings.ContainsAny(at.op, "<>") || at.op == "<<" || len(pieces) < 2 || pieces[1].op != "" {
		return 0
	}
	target, err := unquote(line[pieces[1].start:pieces[1].end])
	switch text := line[at.start:pieces[1].end]; {
	case err != nil || at.op == "<>" || at.op == "<&":
		return 0
	case at.op == "<<<":
		target += "\n"
		p.stdin = &target
	case at.op == "<":
		p.from = target
	case target == "/dev/null" && line[at.start] == '2', at.op == ">&" && (target == "1" || target == "2"):
	default:
		p.into = strings.TrimSpace(p.into + " " + text)
	}
	return 1
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
	if stdin == "" && n < len(pieces) && s.command("sh") != nil {
		if p, ok := printed(line, pieces[n].start); ok {
			return p, nil
		}
	}
	p := plan{cmd: c, words: words[1:], head: line}
	end := pieces[n-1].end
	if scanErr == nil {
		if i := s.textEnd(line, stdin, pieces, n); i < len(pieces) {
			p.head = line[:pieces[i].start]
			for i < len(pieces) && p.redirect(line, pieces[i:]) > 0 {
				i += 2
			}
			if i < len(pieces) {
				p.join(line, pieces[i])
			}
		}
	}
	p.text = strings.TrimPrefix(p.head[min(end, len(p.head)):], " ")
	if before, after, found := strings.Cut(p.text, "\n"); found && strings.TrimSpace(before) == "" {
		p.text = after
	}
	p.text = strings.TrimRight(p.text, " \t")
	return p, nil
}

// printed plans a built-in whose free text, which begins at start, is one
// substitution, <(LINE) or $(LINE): what LINE prints is meant.
func printed(line string, start int) (plan, bool) {
	n := substitution(line[start:])
	tail := strings.TrimSpace(line[start+n:])
	if n == 0 || tail != "" && !isList(operatorAt(tail)) {
		return plan{}, false
	}
	inner := strings.TrimSpace(line[start+2 : start+n-1])
	return plan{head: inner, op: "|", rest: strings.TrimSpace(line[:start] + tail)}, inner != ""
}

// substitution returns the length of the substitution that text begins with; 0 if
// it begins with none, or does not end it.
func substitution(text string) int {
	if !strings.HasPrefix(text, "<(") && !strings.HasPrefix(text, "$(") || strings.HasPrefix(text, "$((") {
		return 0
	}
	pieces, _ := scan(text[1:])
	depth := 0
	for _, p := range pieces {
		switch p.op {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return 1 + p.end
			}
		}
	}
	return 0
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
		case op == "\n" && direct && stdin != "" && !s.starts(line, pieces, i+1):
			return len(pieces) // a text on the line, and one in stdin
		case (op == "<<" || op == "<<<") && direct:
			return i
		case op == "<" && direct && i+2 <= len(pieces) && s.isFile(line, pieces[i+1]), op == "<" && direct && namesFile(line, pieces[i+1:]):
			return i
		case op == "\n" && direct && stdin == "", strings.ContainsAny(op, "<>()"), op == "":
			continue
		case n > 1 && (direct || s.follows(line, pieces, i+1) || quotedAlone(line, pieces[n:min(i+2, len(pieces))])):
			return i
		}
	}
	return len(pieces)
}

// quotedAlone reports whether pieces are a text in quotes, an operator of a list
// and the name of a program: then the text ends where its quotes do.
func quotedAlone(line string, pieces []piece) bool {
	return len(pieces) == 3 && strings.ContainsAny(line[pieces[0].start:pieces[0].start+1], `'"`) &&
		isList(pieces[1].op) && pieces[2].op == "" && !strings.ContainsAny(line[pieces[2].start:pieces[2].end], `'"`)
}

// namesFile reports whether pieces are one word that is the name of a file, there
// or not.
func namesFile(line string, pieces []piece) bool {
	return len(pieces) == 1 && pieces[0].op == "" && fileWord.MatchString(line[pieces[0].start:pieces[0].end])
}

var fileWord = regexp.MustCompile(`^[\w./-]*\w\.\w{1,5}$`)

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

// starts reports whether the piece at i begins a line that runs something, and no
// text: it is a command that models run after a write, or the program of one.
func (s *Shell) starts(line string, pieces []piece, i int) bool {
	if s.follows(line, pieces, i) {
		return true
	}
	if i >= len(pieces) || pieces[i].op != "" {
		return false
	}
	name := line[pieces[i].start:pieces[i].end]
	return strings.HasPrefix(name, "./") || slices.Contains(starters, name)
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
	cut, list := -1, -1 // where a built-in follows; the operator of a list before it
	begins, sets, depth := true, false, 0
	for i, p := range pieces {
		word := line[p.start:p.end]
		switch {
		case p.op == "(" && begins:
			depth++
			continue
		case p.op == ")" && depth > 0:
			depth--
		case p.op == "(" || p.op == ")" || p.op == "&" || p.op == ";;":
			return whole
		case p.op == "<<" && cut < 0, begins && slices.Contains(keywords, word):
			return whole
		case depth > 0:
		case begins && i > 0 && cut < 0 && s.ours(word):
			cut = i - 1
		case begins && assignment.MatchString(word):
			sets = true
		case cut < 0 && isList(p.op):
			list = i
		}
		begins = isList(p.op) || p.op == "|" || p.op == "|&"
	}
	if cut >= 0 {
		// A built-in at the end of a pipe reads the last pipe of a list and not all
		// that the list prints, unless that pipe needs the variables of the list.
		if !isList(pieces[cut].op) && list >= 0 && !sets {
			cut = list
		}
		whole.head = strings.TrimSpace(line[:pieces[cut].start])
		whole.join(line, pieces[cut])
	}
	return whole
}

// listOperator returns the index of the first operator outside of parentheses that
// joins pipes to a list; -1 if there is none.
func listOperator(pieces []piece) int {
	depth := 0
	for i, p := range pieces {
		switch {
		case p.op == "(":
			depth++
		case p.op == ")":
			depth--
		case depth == 0 && isList(p.op):
			return i
		}
	}
	return -1
}

// isList reports whether an operator joins pipes to a list.
func isList(op string) bool { return op == "&&" || op == "||" || op == ";" || op == "\n" }

func firstOperator(pieces []piece, from int) int {
	for i := from; i < len(pieces); i++ {
		if pieces[i].op != "" {
			return i
		}
	}
	return len(pieces)
}

// join sets what follows the first part, given the operator that ends it.
func (p *plan) join(line string, at piece) {
	tail := line[at.start:]
	op := operatorAt(tail)
	p.rest = strings.TrimSpace(strings.TrimPrefix(tail, op))
	switch {
	case op == "<<":
		p.heredoc(tail)
	case op == "|&":
		p.op = "|"
	case op == "|" || isList(op) && op != "\n":
		p.op = op
	default:
		p.op = ";"
	}
	if p.rest == "" {
		p.op = ""
	}
}
