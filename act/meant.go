package act

import (
	"maps"
	"slices"
	"strings"
)

// meant is a line for a call that names no file, if its text tells which one is
// meant: the name of a file alone, to be looked at; or text that is another state
// of the one file among those that the model has seen. Else it is empty.
func (e *Env) meant() string {
	if name := e.fileName(strings.TrimSpace(e.Stdin)); name != "" {
		return e.can("read " + Quote(name))
	}
	if e.cmd.Name == "append" || strings.TrimSpace(e.Stdin) == "" {
		return ""
	}
	command, fits := "write", e.rewritten
	if hasEdit(e.Stdin) {
		command, fits = "edit", e.applies
	}
	found := ""
	for _, rel := range slices.Sorted(maps.Keys(e.seen)) {
		data, err := e.Box.Files().ReadFile(rel, maxShown)
		switch {
		case err != nil || !e.knows(rel, data) || !fits(rel, data):
		case found != "":
			return "" // two: nothing is guessed
		default:
			found = rel
		}
	}
	if found == "" {
		return ""
	}
	return e.can(command + " " + Quote(e.shown(found)))
}

// fileName is text if that is the name of a file of the workspace and nothing
// else.
func (e *Env) fileName(text string) string {
	if text == "" || strings.Contains(text, "\n") {
		return ""
	}
	rel, err := e.Box.Files().Rel(e.Dir, text)
	if err != nil {
		return ""
	}
	info, err := e.Box.Files().Stat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return e.shown(rel)
}

// rewritten reports whether the text in stdin is another state of a file.
func (e *Env) rewritten(rel string, data []byte) bool {
	text, _ := tidy(rel, e.Stdin, string(data))
	return rewrites(parseDocument(data).lines, splitLines(text))
}

// applies reports whether all blocks in stdin fit a file.
func (e *Env) applies(rel string, data []byte) bool {
	doc := parseDocument(data)
	blocks, err := parseBlocks(e.Stdin)
	if !hasBlock(e.Stdin) {
		blocks, err = e.patchBlocks(target{name: rel, rel: rel}, e.Stdin)
	}
	for _, b := range blocks {
		if err == nil {
			_, err = b.apply(&doc, rel)
		}
	}
	return err == nil
}

// onLine reports whether more stands on the line than the name of a file.
func (e *Env) onLine(args []string) bool { return len(args) > 1 || e.typed != "" || e.extra }
