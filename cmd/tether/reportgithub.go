package main

import (
	"fmt"
	"path"
	"strings"

	"tether/harness"
)

// maxAnnotations is how many errors GitHub shows of one step; the rest would be
// dropped without a word.
const maxAnnotations = 10

// githubReport is the tasks that are not done as commands to the runner of GitHub
// Actions: one error for each place that a gate complained about, or else one for
// the task.
func githubReport(tasks []reported) string {
	var all []string
	for _, t := range tasks {
		all = append(all, annotations(t)...)
	}
	if n := len(all); n > maxAnnotations {
		all = append(all[:maxAnnotations-1], annotation("error", nil, fmt.Sprintf("%d more errors are in the log and in the job's summary", n-maxAnnotations+1)))
	}
	return strings.Join(all, "")
}

// annotations are those of one task.
func annotations(t reported) []string {
	var all []string
	for _, name := range t.Outcome.Planted {
		all = append(all, annotation("warning", []string{"title", t.Name}, "look at what is new: "+name))
	}
	if t.Outcome.Stop == harness.Done {
		return all
	}
	found := false
	for _, g := range t.Failed {
		for _, p := range g.At {
			if t.Folder == "" {
				continue
			}
			found = true
			where := []string{"file", path.Join(t.Folder, p.File), "line", fmt.Sprint(p.Line)}
			if p.Col > 0 {
				where = append(where, "col", fmt.Sprint(p.Col))
			}
			all = append(all, annotation("error", append(where, "title", t.Name+": "+firstLine(g.Cmd)), p.Text))
		}
	}
	if found {
		return all
	}
	text := reasonOf(t)
	for _, g := range t.Failed {
		text += "\n$ " + g.Cmd + "\n" + lastLines(g.Output, 10)
	}
	return append(all, annotation("error", []string{"title", t.Name}, text))
}

// annotation is one workflow command. properties are names and values in turn.
func annotation(level string, properties []string, text string) string {
	var b strings.Builder
	b.WriteString("::" + level)
	for i := 0; i < len(properties); i += 2 {
		sign := ","
		if i == 0 {
			sign = " "
		}
		fmt.Fprintf(&b, "%s%s=%s", sign, properties[i], propertyEscapes.Replace(commandText(properties[i+1])))
	}
	return b.String() + "::" + dataEscapes.Replace(commandText(text)) + "\n"
}

// What the rules for workflow commands have escaped, in a text and in a property.
var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// commandText is s without what could move a cursor, and never empty.
func commandText(s string) string {
	if s = strings.TrimSpace(printable(escapes.ReplaceAllString(s, ""))); s == "" {
		return "-"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// lastLines are the last n lines of a text.
func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
