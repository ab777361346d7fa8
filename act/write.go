package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tether/sandbox"
)

var writeCommand = &Command{
	Name:    "write",
	Args:    "FILE",
	Summary: "make or replace a file by stdin",
	Detail: "The text in stdin becomes the whole of FILE. Folders are made. A file that\n" +
		"you have not read is shown first. Use append to add to the end, edit to\n" +
		"change a part.\nexample: write greeting.txt Hello",
	Text: 1,
	Run:  runWrite,
}

// A target is a file that is about to be changed.
type target struct {
	name string // as the model wrote it
	rel  string
	old  []byte
	made bool // it does not exist yet
}

// target looks at the file that the first argument names.
func (e *Env) target(args []string) (target, error) {
	if len(args) == 0 {
		return target{}, misuse(cmp.Or(e.meant(), e.cmd.Name+" --help"), "which file? usage: %s", e.cmd.usage())
	}
	t := target{name: args[0]}
	err := e.keyed(t.name)
	if err != nil {
		return t, err
	}
	if t.rel, err = e.rel(t.name); err != nil {
		return t, err
	}
	t.name = e.shown(t.rel)
	t.old, err = e.Box.Files().ReadFile(t.rel, maxShown)
	var large *sandbox.TooLargeError
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.onLine(args) && slices.Contains(python, args[0]):
		e.said = nil // of text that was left out: nothing was taken
		return t, misuse(e.cmd.Name+" --help", "which file? %s is no file name; usage: %s", args[0], e.cmd.usage())
	case errors.Is(err, fs.ErrNotExist):
		t.made = true
	case errors.As(err, &large):
		return t, failed("", "%s is too large to change here (%s)", t.name, size(large.Size))
	case err != nil:
		return t, e.fileError(t.name, err)
	case isBinary(t.old):
		return t, failed("", "%s is %s, not text; it was not changed", t.name, kindOf(t.name))
	}
	return t, nil
}

// emptyNames are files that are mostly empty. Of any other one the text was
// forgotten.
var emptyNames = []string{"__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll"}

// touching is the line that makes an empty file, and the folder for it.
func touching(name string) string {
	if dir := path.Dir(name); dir != "." {
		return "mkdir -p " + Quote(dir) + " && touch " + Quote(name)
	}
	return "touch " + Quote(name)
}

func runWrite(ctx context.Context, env *Env, args []string) error {
	t, err := env.target(args)
	if err != nil {
		return err
	}
	if env.Stdin == "" && t.made && slices.Contains(emptyNames, path.Base(t.name)) {
		return misuse(cmp.Or(env.can(touching(t.name)), "write --help"), "there is no text for %s; touch makes an empty file", t.name)
	}
	if env.Stdin == "" {
		return misuse("write --help", "there is no text for %s; put the whole of it in stdin", t.name)
	}
	text, said := tidy(t.name, env.Stdin, string(t.old))
	doc := parseDocument(t.old)
	if hasBlock(text) && len(t.old) > 0 || beginsPatch(t.name, text) {
		if t.old != nil {
			return env.editText(ctx, t, span{}, text) // an edit is what was meant
		}
		if text, err = newFile(t, text); err != nil {
			return failed(env.can("find"), "%v", err)
		}
	}
	doc.lines, doc.open = splitLines(ended(text)), false
	switch same := string(doc.bytes()) == string(t.old); {
	case same && !t.made:
		env.saw(t.rel, t.old)
		return env.alreadyThat(t)
	case len(t.old) > 0 && !env.knows(t.rel, t.old) && !rewrites(parseDocument(t.old).lines, doc.lines):
		return env.unseen(t)
	}
	if line := placeholder(t.name, doc.text(), parseDocument(t.old).text()); line != "" && len(t.old) > 0 {
		return failed(env.can("read "+Quote(t.name)), "%q stands for code that would be lost; nothing was written; write all of %s", line, t.name)
	}
	if err := env.refuseMark(ctx, t.name, doc.text(), string(t.old)); err != nil {
		return err
	}
	for _, s := range said {
		env.Say("%s", s)
	}
	return env.save(ctx, t, doc, span{1, len(doc.lines)})
}

// alreadyThat answers a write that changes nothing.
func (e *Env) alreadyThat(t target) error {
	e.idle = true
	if e.shell.Unready {
		e.Say("%s has exactly that already, and the check failed with it: it needs other text.", t.name)
		return nil
	}
	e.Say("%s has exactly that already; nothing was changed.", t.name)
	if e.shell.command("done") != nil {
		e.Say("If the task is finished: done")
	}
	return nil
}

// unseen refuses to replace a file that the model has not seen: small models
// replace a list by its new last line. It shows the file, so that the next write
// is one by a model that knows.
func (e *Env) unseen(t target) error {
	fmt.Fprint(e.Out, lines([]string{clip(string(t.old), maxSaid)}))
	e.saw(t.rel, t.old)
	msg := "%s has text already, shown above, and nothing was written; append adds to it, edit changes a part, write again replaces all of it"
	if e.shell.command("append") == nil {
		return failed(e.again("write", t), msg, t.name)
	}
	return failed(e.again("append", t), msg, t.name)
}

// again is a line that gives the same text to a command. Text that stood on the
// line stands there again, unless it is more than one line.
func (e *Env) again(name string, t target) string {
	switch {
	case strings.Contains(e.typed, "\n"):
		return e.can("read " + Quote(t.name))
	case e.typed != "":
		return name + " " + Quote(t.name) + " " + e.typed
	}
	return name + " " + Quote(t.name)
}

// rewrites reports whether a text is another state of the old one, written by
// somebody who knows it: nothing seems to be dropped, and at least half of the
// old lines are in it or are but slightly changed. A model that was told what is
// wrong with a file often sends all of it at once, and is right.
func rewrites(old, text []string) bool {
	old, text = filled(old), filled(text)
	kept := 0
	for _, l := range old {
		if slices.ContainsFunc(text, func(n string) bool { return alike(l, n) }) {
			kept++
		}
	}
	return len(text) >= len(old) && len(old) > 1 && 2*kept >= len(old)
}

// filled are the lines that are not blank, without the blanks around them.
func filled(lines []string) []string {
	var all []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			all = append(all, l)
		}
	}
	return all
}

// alike reports whether two lines begin and end with the same text, as long
// together as three fifths of the longer one.
func alike(a, b string) bool {
	short, long := min(len(a), len(b)), max(len(a), len(b))
	head := 0
	for head < short && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < short-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return 5*(head+tail) >= 3*long
}

// save writes a document and shows the changed lines of it.
func (e *Env) save(ctx context.Context, t target, doc document, changed span) error {
	data := doc.bytes()
	if err := e.Box.Files().WriteFile(t.rel, data); err != nil {
		return e.fileError(t.name, err)
	}
	for _, f := range e.Box.Planted(ctx) {
		e.found = append(e.found, f.Path+": "+f.Why)
	}
	knew := t.made || len(t.old) == 0 || e.knows(t.rel, t.old)
	e.Changed()
	if knew || changed == (span{1, len(doc.lines)}) {
		e.saw(t.rel, data)
	}
	e.showSaved(t, doc, changed)
	if fault := checkSyntax(ctx, e, t.name, doc.text()+"\n"); fault != "" {
		e.broken = true
		e.Say("But %s is not right yet: %s", t.name, fault)
	}
	if line := doc.text(); t.made && e.isCommand(line) && e.can("true") != "" {
		e.Say("That is text, it was not run. To run it and keep its output: %s > %s", line, Quote(t.name))
	}
	if t.made && (strings.HasPrefix(doc.text(), "#!") || path.Ext(t.rel) == ".sh") && e.can("chmod") != "" {
		e.Say("To be able to run it: chmod +x %s", Quote(t.name))
	}
	return nil
}

// tools are programs whose name at the beginning of a line, with a file of the
// workspace behind it, makes the line a command and no text.
var tools = []string{"awk", "cat", "cut", "du", "find", "grep", "head", "ls", "sed", "sort", "tail", "tr", "uniq", "wc"}

// isCommand reports whether text is a command line: a small model that wants
// the output of a program in a file writes the line of the program there.
func (e *Env) isCommand(text string) bool {
	words := strings.Fields(text)
	if len(words) < 2 || strings.Contains(text, "\n") || strings.Contains(text, ">") || !slices.Contains(tools, words[0]) {
		return false
	}
	return slices.ContainsFunc(words[1:], func(w string) bool {
		rel, err := e.Box.Files().Rel(e.Dir, strings.Trim(w, "'\""))
		if err != nil {
			return false
		}
		_, err = e.Box.Files().Stat(rel)
		return err == nil
	})
}

// showSaved prints the lines around a change, or a small file whole.
func (e *Env) showSaved(t target, doc document, changed span) {
	if e.piped {
		return
	}
	total := len(doc.lines)
	from, to := max(1, changed.from-around), min(total, changed.to+around)
	if total <= smallFile && len(doc.text()) <= maxEcho {
		from, to = 1, total
	}
	var b strings.Builder
	if from <= to {
		printLines(&b, doc.lines, span{from, to}, total > smallFile)
	}
	fmt.Fprint(e.Out, clip(b.String(), maxEcho))
	switch {
	case from == 1 && to == total:
		e.Say("That is all of %s now, %s.", t.name, countLines(total))
	default:
		e.Say("That is %s now, %s of %d.", t.name, span{from, to}, total)
	}
}

// around is how many lines around a change are shown.
const around = 2
