package act

import (
	"cmp"
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
	Detail: "With A:B, stdin replaces those lines. Without, stdin has a diff or blocks:\n" +
		"<<<<<<< SEARCH\nold lines\n=======\nnew lines\n>>>>>>> REPLACE\n" +
		"A small file is easier to write whole.\nexample: edit main.go 3:4",
	Run: runEdit,
}

var sedScript = regexp.MustCompile(`^(\d+(,\d+)?)?s([/|#]).*`)

func runEdit(ctx context.Context, env *Env, args []string) error {
	if n := len(args); n > 0 && env.Stdin == "" && hasEdit(args[n-1]) {
		env.Stdin, args = args[n-1], args[:n-1] // in quotes on the line
	}
	if name := env.patched(); len(args) == 0 && name != "" {
		args = []string{name}
	}
	if len(args) == 1 && !env.there(args[0]) && beginsPatch(args[0], env.Stdin) && env.patched() == args[0] {
		return runWrite(ctx, env, args) // it makes the file
	}
	if args = env.unranged(env.unquoted(args)); len(args) == 3 && env.Stdin == "" {
		if _, ok := parseSpan(args[1]); ok { // the new line in quotes on the line
			env.Stdin, args = ended(args[2]), args[:2]
		}
	}
	t, err := env.target(args)
	if err != nil {
		return err
	}
	text, said := tidy(t.name, env.Stdin, string(t.old))
	if t.made {
		return env.editNothing(t, text)
	}
	for _, s := range said {
		env.Say("%s", s)
	}
	at, isSpan := span{}, false
	if len(args) == 2 {
		at, isSpan = parseSpan(args[1])
	}
	switch {
	case isSpan && (!hasEdit(text) || holdsPatch(t.name) || isBare(splitLines(text)) && !marks(parseDocument(t.old).lines, splitLines(text))):
		return editLines(ctx, env, t, parseDocument(t.old), at, text)
	case isSpan:
		return env.editText(ctx, t, at, text)
	case len(args) > 1 && sedScript.MatchString(args[1]):
		return failed(env.can("sed -i "+Quote(args[1])+" "+Quote(t.name)), "edit takes no script of sed")
	case len(args) == 3 && text == "":
		return editBlocks(ctx, env, t, []block{{old: splitLines(args[1]), new: splitLines(args[2])}})
	case len(args) > 1:
		return env.mend(t, "what stands behind %s is not understood; usage: %s", t.name, env.cmd.usage())
	}
	return env.editText(ctx, t, span{}, text)
}

// hasEdit reports whether a text says what to change instead of what to write.
func hasEdit(text string) bool { return hasBlock(text) || isPatch(text) }

// editNothing refuses to edit a file that is not there.
func (e *Env) editNothing(t target, text string) error {
	hint := e.elsewhere(t.name)
	_, err := newFile(t, text)
	if err == nil || text != "" && !hasEdit(text) && hint == e.can("find") {
		hint = cmp.Or(e.can("write "+Quote(t.name)), hint)
	}
	return failed(hint, "%s: there is no such file to edit; write makes a new one", t.name)
}

// editText applies the blocks or the patch in a text. Lines that the call names
// choose among several places.
func (e *Env) editText(ctx context.Context, t target, at span, text string) error {
	old, fresh := parseDocument(t.old).lines, splitLines(text)
	if m := fenceText.FindStringSubmatch(text); m != nil && (hasEdit(m[1]) || marks(old, splitLines(m[1]))) {
		text, fresh = m[1], splitLines(m[1]) // in a text file a fence may be meant, but not around an edit
	}
	var blocks []block
	var err error
	switch {
	case slices.ContainsFunc(fresh, blockStart.MatchString):
		blocks, err = parseBlocks(text)
	case isPatch(text):
		blocks, err = e.patchBlocks(t, text)
	case marks(old, fresh):
		blocks = []block{(&hunk{lines: fresh}).block()}
	case rewrites(old, fresh):
		return runWrite(ctx, e, []string{t.name}) // all of the file, with the change in it
	default:
		blocks, err = parseBlocks(text)
	}
	var refused *Error
	switch {
	case errors.As(err, &refused):
		return refused
	case err != nil:
		return e.mend(t, "%v", err)
	}
	for i := range blocks {
		blocks[i].within = at
	}
	return editBlocks(ctx, e, t, blocks)
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
	if fresh := splitLines(e.Stdin); rewrites(old, fresh) && !hasEdit(e.Stdin) && !slices.ContainsFunc(fresh, blockStart.MatchString) {
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
	}
	fresh := splitLines(text)
	if at.from > total { // right behind the last line: an addition
		doc.lines, doc.open = append(doc.lines, fresh...), false
		return env.save(ctx, t, doc, span{at.from, len(doc.lines)})
	}
	old := strings.Join(doc.lines[at.from-1:at.to], "\n")
	switch line := placeholder(t.name, strings.Join(fresh, "\n"), old); {
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
func editBlocks(ctx context.Context, env *Env, t target, blocks []block) error {
	doc := parseDocument(t.old)
	changed := span{}
	how, shift := "", 0
	for i, b := range blocks {
		which := ""
		if len(blocks) > 1 {
			which = fmt.Sprintf("block %d: ", i+1)
		}
		if b.at > 0 {
			b.at += shift
		}
		m, err := b.apply(&doc, t.name)
		if err != nil {
			return env.notApplied(t, doc, which, b, err)
		}
		shift += m.shift
		changed.from, changed.to = widen(changed, m)
		if m.how != "" {
			how = m.how
		}
	}
	if string(doc.bytes()) == string(t.old) {
		return env.alreadyThat(t)
	}
	if how != "" {
		env.Say("It matched only %s.", how)
	}
	return env.save(ctx, t, doc, changed)
}

// notApplied refuses a block. Which of several places is meant is for the model to
// say: a line that names one of them would be taken as it stands.
func (e *Env) notApplied(t target, doc document, which string, b block, err error) error {
	var several *ambiguity
	switch {
	case errors.As(err, &several):
		last := 0
		for _, i := range several.at[:min(len(several.at), 3)] {
			if s := (span{max(last+1, i), min(len(doc.lines), i+several.n+1)}); s.from <= s.to {
				last, _ = printLines(e.Out, doc.lines, s, true)
			}
		}
		return failed(e.can("read "+Quote(t.name)), "%s%v; nothing was changed; add lines around the one that is meant, or name its lines: edit %s A:B", which, several, Quote(t.name))
	case errors.Is(err, errNotFound) && len(doc.lines) > smallFile:
		return e.nearMiss(t, doc, which, b)
	}
	return e.mend(t, "%s%v", which, err)
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

// patched is the one file that a patch in stdin changes, if it is there, or makes.
func (e *Env) patched() string {
	if hasBlock(e.Stdin) || !isPatch(e.Stdin) {
		return ""
	}
	sections, err := parsePatch(e.Stdin)
	switch {
	case err != nil || len(sections) != 1:
		return ""
	case sections[0].kind == patchAdd:
		return sections[0].name
	case sections[0].kind != patchUpdate:
		return ""
	}
	return e.fileName(sections[0].name)
}

// patchBlocks are the blocks of a patch that are for t. What a patch does beside a
// change of lines is refused with the command for it.
func (e *Env) patchBlocks(t target, text string) ([]block, error) {
	sections, err := parsePatch(text)
	if err != nil {
		return nil, err
	}
	var mine []block
	var others []string
	for _, s := range sections {
		switch {
		case !e.isFor(s, t, len(sections)):
			others = append(others, s.name)
		case s.kind != patchUpdate:
			return nil, e.otherwise(s, t)
		default:
			mine = append(mine, s.blocks...)
		}
	}
	switch {
	case len(mine) == 0 && len(others) > 0:
		return nil, failed(e.can("read "+Quote(t.name)), "the patch is for %s and not for %s; nothing was changed", few(others, 3), t.name)
	case len(others) > 0:
		e.Say("Left out, because it is for another file: %s", few(others, 3))
	}
	return mine, nil
}

// isFor reports whether a section of a patch is for t: it names it, or there is
// only one, and no file has the name that it has.
func (e *Env) isFor(s section, t target, n int) bool {
	if s.name == "" || sameFile(s.name, t.name) || sameFile(s.name, t.rel) {
		return true
	}
	return n == 1 && s.kind == patchUpdate && e.fileName(s.name) == ""
}

// otherwise refuses what a patch does with a whole file.
func (e *Env) otherwise(s section, t target) error {
	switch s.kind {
	case patchAdd:
		return e.mend(t, "the patch makes a new file, and %s is there", t.name)
	case patchDelete:
		return failed(e.can("rm "+Quote(t.name)), "edit deletes no file; nothing was changed")
	}
	return failed(e.can("ls "+Quote(t.name)), "edit renames no file: use mv; nothing was changed")
}
