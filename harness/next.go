package harness

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"tether/act"
	window "tether/context"
)

// The line that asks for the next step is what a small model follows most: it
// copies words of it into its next call. So a line ends with a command that is
// right when it is copied as it stands, or with no command at all; "write the file
// whole" made a 0.5B model write the word whole (docs/results.md).

// maxIdle is how many calls may change nothing before the model is asked to act.
// Of the solved small tasks none looked around more than three times in a row.
const maxIdle = 4

// hint is the line after a call that was run. Only where done could be right does
// it name done: a small model takes the offer.
func (r *run) hint(call window.Call, res act.Result) string {
	if file := r.missing(); file != "" && !r.misfit && !r.questioned && !res.Changed && (res.Status == act.OK || r.failed || res.Nameless) {
		return r.lacks(file, r.guard.Idle() > 1 || r.failed || res.Nameless)
	}
	switch {
	case r.questioned:
		return ""
	case r.misfit:
		return r.Setup.text("next_form", nil)
	case r.failed && !r.shown:
		return r.Setup.text("next_gate", window.Values{"File": ""})
	case r.failed:
		return r.Setup.text("next_gate", window.Values{"File": r.target()})
	case res.Broken:
		return r.Setup.text("next_broken", nil)
	case res.Status != act.OK:
		if file := r.target(); file != "" {
			return r.Setup.text("next_fix", window.Values{"File": file})
		}
		return r.Setup.text("next_failed", nil)
	case r.broke && aside(call):
		return r.Setup.text("next_aside", nil)
	case r.broke:
		return r.Setup.text("next_broke", window.Values{"File": r.target()})
	case r.guard.Idle() >= maxIdle && r.touched:
		return r.Setup.text("next_checked", nil)
	case r.guard.Idle() >= maxIdle:
		return r.Setup.text("next_idle", nil)
	case r.touched:
		return r.Setup.text("next_changed", nil)
	}
	return r.Setup.text("next", nil)
}

// other is the line after a call that was not run again; was is what it did then.
func (r *run) other(was act.Result) string {
	if file := r.missing(); file != "" && was.Status == act.OK {
		return r.lacks(file, true)
	}
	file := ""
	if was.Status != act.OK || r.failed && r.Setup.Fenced {
		file = r.target()
	}
	return r.Setup.text("next_repeat", window.Values{"Failed": window.If(was.Status != act.OK), "File": file, "Done": window.If(!r.failed && !r.broke)})
}

// wanted finds the files that a task asks for, by the word before: "into
// count.txt", "a script run.sh". A name has an ending, so that it is one.
var wanted = regexp.MustCompile(`(?i)\b(?:into|to|as|named|called|file|script|program|module|write|create|make)\s+(?:(?:an?|the|new|executable|file|named)\s+)*["'\x60]?([\w-]{2}[\w./-]*\.[a-z]\w{0,4})\b`)

// missing is the first file that the task asks for and that is not there; empty
// if there is none. A model that has printed the right answer often takes that for
// the end: the name of the file is what it lacks.
func (r *run) missing() string {
	for _, m := range wanted.FindAllStringSubmatch(r.outcome.Task, -1) {
		name := strings.TrimPrefix(m[1], "./")
		if _, err := r.Shell.Env.Box.Files().Stat(name); err != nil {
			return name
		}
	}
	return ""
}

// viewers are programs that show what is there: what they print is no answer yet.
var viewers = []string{"cat", "ls", "head", "tail", "less", "more", "file", "stat", "pwd", "cd", "mkdir", "touch", "rm", "mv", "cp"}

// product is the line of a call that has printed something and changed nothing, as a
// program's would; empty if the call is none of these.
func product(call window.Call, changed bool, res act.Result) string {
	line := strings.TrimPrefix(call.Cmd, "sh ")
	word, _, _ := strings.Cut(line, " ")
	builtin := func(c *act.Command) bool { return c.Name == word }
	if res.Status != act.OK || changed || call.Stdin != "" || slices.Contains(viewers, word) || strings.ContainsAny(line, ">\n;&") || slices.ContainsFunc(act.Builtins(), builtin) {
		return ""
	}
	return line
}

// lacks is the text that says that file is missing. Only a model that does nothing
// about it is given a line that makes the file: one that would have known better
// copies the line too (docs/results.md).
func (r *run) lacks(file string, again bool) string {
	line := ""
	if again && !isSource(file) {
		line = r.made
	}
	return r.Setup.text("next_missing", window.Values{"File": file, "Line": line, "Write": window.If(again && line == "")})
}

// isSource says whether a file is one that a person writes: no program prints it,
// and it is no data that a task is about.
func isSource(name string) bool {
	return slices.Contains([]string{".c", ".css", ".go", ".h", ".html", ".java", ".js", ".json", ".md", ".pl", ".py", ".rb", ".rs", ".sh", ".toml", ".ts", ".yaml", ".yml"}, path.Ext(name))
}

// target is the file that a failure is about: one that the task asks for, or else
// names, first one that the run has changed. A file that only the model thought of is
// none: it would be written again and again.
func (r *run) target() string {
	var asked, changed []string
	for _, m := range wanted.FindAllStringSubmatch(r.outcome.Task, -1) {
		asked = append(asked, m[1])
	}
	all := named(r.outcome.Task)
	for _, name := range r.differ() {
		if slices.Contains(all, name) {
			changed = append(changed, name)
		}
	}
	sources := slices.DeleteFunc(all, func(name string) bool { return !isSource(name) })
	for _, names := range [][]string{asked, changed, sources} {
		if small := r.small(names); len(small) > 0 {
			return small[0]
		}
	}
	return ""
}

// text is the text called name for the form in which the model answers.
func (s Setup) text(name string, values window.Values) string {
	if s.Fenced && window.Has(name+"_fenced") {
		name += "_fenced"
	}
	return window.Text(name, values)
}
