package act

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// This file has what models write a little beside the grammar, where only one thing
// can be meant.

// there reports whether a name is that of a file or a folder.
func (e *Env) there(name string) bool {
	rel, err := e.Box.Files().Rel(e.Dir, name)
	if err != nil {
		return false
	}
	_, err = e.Box.Files().Stat(rel)
	return err == nil
}

// listed reports whether there is anything of that name, a link that leads nowhere
// among it.
func (e *Env) listed(rel string) bool {
	entries, err := e.Box.Files().ReadDir(path.Dir(rel))
	return err == nil && slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return d.Name() == path.Base(rel) })
}

// isLink reports whether a name is that of a link that leads nowhere.
func (e *Env) isLink(name string) bool {
	rel, err := e.Box.Files().Rel(e.Dir, name)
	return err == nil && !e.there(name) && e.listed(rel)
}

// below takes what stands on further lines behind edit FILE for its text: without
// text an edit can only fail, and a shell would run the lines of a patch.
func (c *Command) below(line, stdin string) (plan, bool) {
	head, text, more := strings.Cut(line, "\n")
	pieces, err := scan(head)
	if c.Name != "edit" || !more || stdin != "" || err != nil || len(pieces) > 3 || slices.ContainsFunc(pieces, func(p piece) bool { return p.op != "" }) {
		return plan{}, false
	}
	words, err := values(head, pieces)
	if err != nil {
		return plan{}, false
	}
	return plan{cmd: c, head: head, words: words[1:], stdin: &text}, true
}

// catFile is a file that is written with cat and a here-document: what is before the
// text, in both orders. Without the sign cat would print the file and drop the text,
// which nobody means.
var catFile = regexp.MustCompile(`^cat(?:[ \t]*(>>?)[ \t]*([^\s<>|&;()$]+)[ \t]*(<<-?[ \t]*(?:'\w+'|"\w+"|\w+))|[ \t]*(<<-?[ \t]*(?:'\w+'|"\w+"|\w+))[ \t]*(>>?)[ \t]*([^\s<>|&;()$]+)|[ \t]+([^\s<>|&;()$-][^\s<>|&;()$]*)[ \t]*(<<-?[ \t]*(?:'\w+'|"\w+"|\w+)))[ \t]*(?:\n|$)`)

// catted is line with write or append in the place of cat > FILE <<'EOF': what it
// does is the same, and as a built-in it is safe against a crash and looks at the
// syntax of what it wrote. What a shell would put values into, or write outside of the
// workspace, stays with it.
func (s *Shell) catted(line string) string {
	m := catFile.FindStringSubmatch(line)
	if m == nil {
		return line
	}
	name, to, here := "write", m[2]+m[6]+m[7], m[3]+m[4]+m[8]
	if m[1]+m[5] == ">>" {
		name = "append"
	}
	text := line[len(m[0]):]
	valued := !strings.ContainsAny(here, `'"`) && strings.ContainsAny(text, "$`\\")
	if s.command(name) == nil || valued || strings.ContainsAny(to[:1], "/~") || strings.ContainsAny(to, "*?[{`\\") {
		return line
	}
	return name + " " + to + " " + here + "\n" + text
}

// uncased is line with its first word in small letters, if that makes it one of ours:
// no program has such a name, and a model begins sentences with Read and Done.
func (s *Shell) uncased(line string) string {
	m := capital.FindStringSubmatch(line)
	if m == nil || s.command(m[1]) != nil || s.command(strings.ToLower(m[1])) == nil {
		return line
	}
	return strings.ToLower(m[1]) + line[len(m[1]):]
}

// capital is a first word with a capital at its beginning.
var capital = regexp.MustCompile(`^([A-Z][A-Za-z]*)(?:\s|$)`)

// unquoted puts the first words together again that are the name of a file with
// blanks in it, written without quotes.
func (e *Env) unquoted(args []string) []string {
	if len(args) < 2 || e.there(args[0]) {
		return args
	}
	for n := len(args); n > 1; n-- {
		if name := strings.Join(args[:n], " "); e.there(name) {
			return append([]string{name}, args[n:]...)
		}
	}
	return args
}

// unranged takes apart FILE:A:B, FILE:A-B and FILE:A, unless a file has that name.
func (e *Env) unranged(args []string) []string {
	if len(args) == 0 || e.there(args[0]) {
		return args
	}
	m := namedRange.FindStringSubmatch(args[0])
	if m == nil || !e.there(m[1]) {
		return args
	}
	at := m[2]
	if m[3] != "" {
		at += ":" + m[3]
	}
	return append([]string{m[1], at}, args[1:]...)
}

var (
	// pathKey and textKey are names of arguments in other tools; flagKey is a flag.
	pathKey = regexp.MustCompile(`^(?:path|file|filename|file_path)=(.+)$`)
	textKey = regexp.MustCompile(`^(?:content|contents|text|stdin)=`)
	flagKey = regexp.MustCompile(`^-{1,2}[\w-]+[ =]`)
)

// keyed is the refusal of a name that was written as path=NAME.
func (e *Env) keyed(name string) error {
	m := pathKey.FindStringSubmatch(name)
	if m == nil || e.there(name) {
		return nil
	}
	hint := e.cmd.Name + " " + Quote(m[1])
	if !strings.Contains(e.typed, "\n") {
		hint = strings.TrimSpace(hint + " " + textKey.ReplaceAllString(e.typed, ""))
	}
	return misuse(hint, "the arguments have no names; usage: %s", e.cmd.usage())
}

// called is the line that name(…) stands for: its words without the parentheses.
func called(line string, pieces []piece) string {
	name := line[pieces[0].start:pieces[0].end]
	hint := name
	for _, p := range pieces[1:] {
		word, err := unquote(strings.Trim(line[p.start:p.end], ","))
		switch {
		case p.op == "(":
			continue
		case p.op != "" || err != nil:
			return hint
		}
		hint += " " + Quote(word)
	}
	return hint
}

// catNothing is cat into a file, with nothing that it could read.
var catNothing = regexp.MustCompile(`^cat[ \t]*>[ \t]*([^\s<>|&;()$]+)[ \t]*(?:\n|$)`)

// emptied refuses a cat into a file without a text: the file would be empty, and the
// text that was forgotten, or stands on the next lines, would be run or lost.
func (s *Shell) emptied(line, stdin string) *Error {
	m := catNothing.FindStringSubmatch(line)
	if m == nil || stdin != "" || s.command("write") == nil {
		return nil
	}
	return misuse("write --help", "there is no text for %s, and it would be empty; nothing was run", m[1])
}

// ownScript begins a script, and arguments is where one takes what it is started with.
var (
	ownScript = regexp.MustCompile(`^#![^\n]*\b(?:ba|da|z)?sh\b[^\n]*\n`)
	arguments = regexp.MustCompile(`\$(?:[1-9@#*]|\{[1-9@#*])`)
)

// foreign begins the text of a program in another language. A shell takes none of its
// words for a program, and its first line for nothing or an error.
var foreign = regexp.MustCompile(`^(?:#include\b|package \w+;?[ \t]*\n|def \w+\(|class \w+[ \t]*[:({]|import [a-z_]+[ \t]*\n|from [\w.]+ import |const \w+ = require\(|<!DOCTYPE|<html)`)

// nameless refuses the text of a program where a command belongs: one that is not for a
// shell, or that takes arguments, of which there are none here.
func (s *Shell) nameless(line string) *Error {
	kind := "script"
	switch {
	case s.command("write") == nil:
		return nil
	case foreign.MatchString(line) && strings.Contains(line, "\n"):
		kind = "program"
	case !strings.HasPrefix(line, "#!"), ownScript.MatchString(line) && !arguments.MatchString(line):
		return nil
	}
	return misuse("", "this is the text of a %s without the name of a file; nothing was run", kind)
}

// editors are programs that wait for keys.
var editors = []string{"vi", "vim", "nvim", "nano", "pico", "emacs", "ed", "code"}

// keys refuses an editor, which would wait for keys until its time is up. With a
// flag it may well do its work alone.
func (s *Shell) keys(line, stdin string) *Error {
	pieces, err := scan(line)
	if err != nil || stdin != "" || len(pieces) != 2 || pieces[1].op != "" || strings.ContainsAny(line[pieces[1].start:pieces[1].end][:1], "-+") {
		return nil
	}
	if name := firstWord(line); slices.Contains(editors, name) {
		return misuse(s.Env.can("read "+line[pieces[1].start:pieces[1].end]), "%s waits for keys, and nobody is there to press them; change a file with write or edit", name)
	}
	return nil
}

// bashRead is what bash says of read with the name of a file, and shellRead is
// that read in a line.
var (
	bashRead  = regexp.MustCompile("read: `(.*)': not a valid identifier")
	shellRead = regexp.MustCompile(`\bread `)
)
