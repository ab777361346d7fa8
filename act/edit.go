package act

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var editCommand = &Command{
	Name:    "edit",
	Args:    "FILE [A:B]",
	Summary: "change a part of a file",
	Detail: "With A:B, stdin replaces those lines. Without, stdin has blocks:\n" +
		"<<<<<<< SEARCH\nold lines\n=======\nnew lines\n>>>>>>> REPLACE\n" +
		"A small file is easier to write whole.\nexample: edit main.go 3:4",
	Run: runEdit,
}

var sedScript = regexp.MustCompile(`^(\d+(,\d+)?)?s([/|#]).*`)

func runEdit(ctx context.Context, env *Env, args []string) error {
	t, err := env.target(args)
	if err != nil {
		return err
	}
	if t.made {
		return failed(env.elsewhere(t.name), "%s: there is no such file to edit; write makes a new one", t.name)
	}
	text, said := tidy(t.name, env.Stdin, string(t.old))
	for _, s := range said {
		env.Say("%s", s)
	}
	doc := parseDocument(t.old)
	at, isSpan := span{}, false
	if len(args) == 2 {
		at, isSpan = parseSpan(args[1])
	}
	switch {
	case isSpan:
		return editLines(ctx, env, t, doc, at, text)
	case len(args) > 1 && sedScript.MatchString(args[1]):
		return failed(env.can("sed -i "+Quote(args[1])+" "+Quote(t.name)), "edit takes no script of sed")
	case len(args) == 3 && text == "":
		return editBlocks(ctx, env, t, doc, []block{{old: splitLines(args[1]), new: splitLines(args[2])}})
	case len(args) > 1:
		return env.mend(t, "what stands behind %s is not understood; usage: %s", t.name, env.cmd.usage())
	}
	return env.editText(ctx, t, doc, text)
}

// editText applies the blocks in a text.
func (e *Env) editText(ctx context.Context, t target, doc document, text string) error {
	if fresh := splitLines(text); !slices.ContainsFunc(fresh, blockStart.MatchString) && rewrites(parseDocument(t.old).lines, fresh) {
		return runWrite(ctx, e, []string{t.name}) // all of the file, with the change in it
	}
	blocks, err := parseBlocks(text)
	if err != nil {
		return e.mend(t, "%v", err)
	}
	return editBlocks(ctx, e, t, doc, blocks)
}

// mend refuses an edit. A small file is shown, because writing it whole is what
// small models do best; of a large one the way to see it is named. The hint is to
// write only if the text in stdin looks like the whole file already.
func (e *Env) mend(t target, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...) + "; nothing was changed"
	old := parseDocument(t.old).lines
	look := e.can("read " + Quote(t.name))
	if len(old) > smallFile || e.shell.command("write") == nil {
		return failed(look, "%s", msg)
	}
	fmt.Fprint(e.Out, lines([]string{clip(string(t.old), maxSaid)}))
	e.saw(t.rel, t.old)
	if fresh := splitLines(e.Stdin); rewrites(old, fresh) && !slices.ContainsFunc(fresh, blockStart.MatchString) {
		return failed("write "+Quote(t.name), "%s; to replace all of %s, shown above, use write", msg, t.name)
	}
	return failed(look, "%s; %s is shown above: write it whole, with all of the new text in stdin", msg, t.name)
}

// editLines replaces a range of lines.
func editLines(ctx context.Context, env *Env, t target, doc document, at span, text string) error {
	total := len(doc.lines)
	if at.to == 0 {
		at.to = total
	}
	switch {
	case text == "":
		hint := env.can(fmt.Sprintf("sed -i %d,%dd %s", at.from, at.to, Quote(t.name)))
		return misuse(hint, "there are no new lines in stdin; to delete %s use sed", at)
	case at.from > total+1 || at.to > total && at.from <= total:
		return failed(env.can("read "+Quote(t.name)), "%s has only %s; nothing was changed", t.name, countLines(total))
	case strings.HasPrefix(text, searchMark):
		return env.mend(t, "blocks need no lines: leave out %d:%d", at.from, at.to)
	}
	fresh := splitLines(text)
	if at.from > total { // right behind the last line: an addition
		doc.lines, doc.open = append(doc.lines, fresh...), false
		return env.save(ctx, t, doc, span{at.from, len(doc.lines)})
	}
	old := strings.Join(doc.lines[at.from-1:at.to], "\n")
	switch line := placeholder(strings.Join(fresh, "\n"), old); {
	case line != "":
		return env.mend(t, "%q stands for code that would be lost", line)
	case strings.Join(fresh, "\n") == old:
		return env.alreadyThat(t)
	}
	doc.lines = splice(doc.lines, at.from-1, at.to, fresh)
	return env.save(ctx, t, doc, span{at.from, at.from + len(fresh) - 1})
}

// splice returns lines with those from index from up to to replaced.
func splice(all []string, from, to int, fresh []string) []string {
	out := make([]string, 0, len(all)+len(fresh))
	out = append(out, all[:from]...)
	out = append(out, fresh...)
	return append(out, all[to:]...)
}

// editBlocks applies all blocks, or none.
func editBlocks(ctx context.Context, env *Env, t target, doc document, blocks []block) error {
	changed := span{}
	how := ""
	for i, b := range blocks {
		which := ""
		if len(blocks) > 1 {
			which = fmt.Sprintf("block %d: ", i+1)
		}
		m, err := b.apply(&doc)
		if errors.Is(err, errNotFound) && len(doc.lines) > smallFile {
			return env.nearMiss(t, doc, which, b)
		}
		if err != nil {
			return env.mend(t, "%s%v", which, err)
		}
		changed.from, changed.to = widen(changed, m)
		if m.how != "" {
			how = m.how
		}
	}
	if how != "" {
		env.Say("It matched only %s.", how)
	}
	return env.save(ctx, t, doc, changed)
}

// nearMiss shows the lines of a long file that are most like the ones that were
// not found.
func (e *Env) nearMiss(t target, doc document, which string, b block) error {
	i := closest(doc.lines, b.old)
	s := span{max(1, i+1-around), min(len(doc.lines), i+len(b.old)+around)}
	printLines(e.Out, doc.lines, s, true)
	hint := e.can(fmt.Sprintf("read %s %d:%d", Quote(t.name), s.from, s.to))
	return failed(hint, "%s%v; nothing was changed; the closest lines are shown above", which, errNotFound)
}

// widen joins the changed ranges of several blocks.
func widen(s span, m match) (from, to int) {
	if s.from == 0 {
		return m.from, m.to
	}
	return min(s.from, m.from), max(s.to+max(0, m.shift), m.to)
}
