package harness

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"tether/act"
)

// Files shown with a task and after a failed gate, and their size in bytes:
// enough for the small programs that small models work on, about 500 tokens.
const (
	maxShown  = 2
	maxBytes  = 900
	maxListed = 300 // bytes of the list of files
)

// facts is what the model is told of the workspace together with the task: the
// names of the files at its top, and the small ones among those that the task
// names. A model that sees the names does not guess them, and one that sees a
// file does not invent what is in it.
func (a *Agent) facts(ctx context.Context, task string) string {
	entries, err := a.Shell.Env.Box.Files().ReadDir(".")
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."):
		case e.IsDir():
			names = append(names, name+"/")
		default:
			names = append(names, name)
		}
	}
	facts := ""
	if len(names) > 0 {
		facts = "Files here: " + listed(names)
	}
	for _, name := range a.small(named(task)) {
		// Through the shell, so that it counts as read: a model may replace it.
		if res := a.Shell.Do(ctx, "read "+act.Quote(name), ""); res.Status == act.OK && res.Err == nil {
			facts += "\n\n" + strings.TrimSpace(name+" holds:\n"+res.Output)
		}
	}
	return facts
}

// listed joins names, as many as fit into maxListed bytes.
func listed(names []string) string {
	n := 0
	for i, name := range names {
		if n += len(name) + 1; n > maxListed {
			return strings.Join(names[:i], " ") + fmt.Sprintf(" and %d more", len(names)-i)
		}
	}
	return strings.Join(names, " ")
}

// named are the words of text that could be names of files, each once.
func named(text string) []string {
	var all []string
	for _, word := range strings.FieldsFunc(text, notPath) {
		word = strings.TrimPrefix(strings.TrimSuffix(word, "."), "./")
		if strings.Contains(word, ".") && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// notPath says whether r ends a file name in a sentence or in a tool's output.
func notPath(r rune) bool { return strings.ContainsRune(" \t\n\"'`:(),;<>[]{}", r) }

// small are the first files of names that can be shown whole.
func (a *Agent) small(names []string) []string {
	var all []string
	for _, name := range names {
		if len(all) == maxShown {
			break
		}
		text, err := a.Shell.Env.Box.Files().ReadFile(name, maxBytes)
		if err == nil && len(text) > 0 && !slices.Contains(text, 0) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// concerned shows the small files that text names and then those that the run
// has changed, as they are now: a model that sees its file beside the failure
// mends it, one that remembers it repeats it.
func (r *run) concerned(text string) string {
	changed := r.small(r.differ())
	var b strings.Builder
	for _, name := range append(r.small(slices.DeleteFunc(named(text), func(n string) bool { return slices.Contains(changed, n) })), changed...) {
		if text, err := r.Shell.Env.Box.Files().ReadFile(name, maxBytes); err == nil {
			fmt.Fprintf(&b, "%s is now%s:\n%s\n", name, r.inert(name, text), strings.TrimRight(string(text), "\n"))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// inert tells of a script that cannot be started: a model that sees the right text
// looks for the fault in it.
func (r *run) inert(name string, text []byte) string {
	if path.Ext(name) != ".sh" && !strings.HasPrefix(string(text), "#!") || !slices.Contains(r.Shell.Names(), "sh") {
		return ""
	}
	if info, err := r.Shell.Env.Box.Files().Stat(name); err != nil || info.Mode()&0o111 != 0 {
		return ""
	}
	return ", not executable (chmod +x " + act.Quote(name) + ")"
}
