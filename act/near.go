package act

import (
	"path"
	"strings"
)

// near is what a failed program printed, with the files below the working directory
// named from there, as the model names them: an absolute path says no more, takes a
// dozen tokens a line of a traceback, and a 1.5B model solved one task more or less by
// the name of the folder it was in (docs/results.md). The output of a program that
// succeeded may be data, and stays as it is.
func (e *Env) near(output string) string {
	dir := path.Join(e.Box.Policy().Root, e.Dir) + "/"
	if path.IsAbs(e.Dir) || !strings.Contains(output, dir) {
		return output
	}
	var b strings.Builder
	for rest := output; ; {
		before, after, found := strings.Cut(rest, dir)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		within := before != "" && !strings.ContainsAny(before[len(before)-1:], " \t\r\n\"'`([<")
		if within || after == "" || strings.ContainsAny(after[:1], " \t\r\n\"'`)]>:;,/") {
			b.WriteString(dir) // a part of a longer path, or the folder itself
		}
		rest = after
	}
}
