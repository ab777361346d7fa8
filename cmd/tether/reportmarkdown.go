package main

import (
	"bytes"
	"fmt"
	"strings"

	window "tether/context"
	"tether/harness"
)

// How much of the tasks a page shows. GitHub takes 1 MiB of what a step adds to a
// job's summary, and of a page that is longer nothing at all.
const (
	maxSummary = 1000 << 10 // bytes
	maxRows    = 1000       // of the table
	maxWhy     = 300        // characters of a row
	maxDetails = 20         // of the tasks that are not done, with what their gates printed
	maxSaid    = 4000       // characters of a report of the model, or of an error
)

// markdownReport is the tasks as a page in Markdown. What a model, a command or a
// file may have written stands in code, where nothing of it counts as Markdown.
func markdownReport(tasks []reported) []byte {
	var b bytes.Buffer
	done := 0
	for _, t := range tasks {
		if t.Outcome.Stop == harness.Done {
			done++
		}
	}
	fmt.Fprintf(&b, "## tether: %d of %d done\n\n| task | result | steps | seconds | tokens in | out | why |\n| --- | --- | ---: | ---: | ---: | ---: | --- |\n", done, len(tasks))
	for i, t := range tasks {
		if i == maxRows || b.Len() > maxSummary/2 {
			fmt.Fprintf(&b, "\n%d more tasks are in the results.\n", len(tasks)-i)
			break
		}
		o, why := t.Outcome, ""
		if o.Stop != harness.Done {
			why = codeCell(oneLine(reasonOf(t), maxWhy))
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %.1f | %d | %d | %s |\n", codeCell(t.Name), o.Stop, o.Steps, o.Seconds, o.Tokens.Prompt, o.Tokens.Output, why)
	}
	told, left := 0, 0
	for _, t := range tasks {
		if t.Outcome.Stop == harness.Done && !t.Gates {
			continue
		}
		var one bytes.Buffer
		if t.details(&one); told == maxDetails || b.Len()+one.Len() > maxSummary {
			left++
			continue
		}
		told++
		b.Write(one.Bytes())
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n%d more that are not done are in the results.\n", left)
	}
	return b.Bytes()
}

// details tells one task at length.
func (t reported) details(b *bytes.Buffer) {
	o := t.Outcome
	fmt.Fprintf(b, "\n### %s\n", codeCell(t.Name))
	if o.Error != "" {
		b.WriteString("\n" + codeBlock(window.Clip(o.Error, maxSaid, maxSaid/2, maxSaid/2, "")))
	}
	for _, g := range o.Gates {
		fmt.Fprintf(b, "\n- gate %s: %s", codeCell(gateWord(g)), codeCell(g.Cmd))
	}
	if len(o.Changed) > 0 {
		fmt.Fprintf(b, "\n- changed: %s", codeCell(list(o.Changed, 20)))
	}
	if len(o.Planted) > 0 {
		fmt.Fprintf(b, "\n- look at what is new: %s", codeCell(list(o.Planted, 20)))
	}
	if o.Model != "" {
		fmt.Fprintf(b, "\n- session %s, model %s", codeCell(o.Session), codeCell(o.Model))
	}
	b.WriteString("\n")
	if o.Report != "" {
		b.WriteString("\n" + codeBlock(window.Clip(o.Report, maxSaid, maxSaid/2, maxSaid/2, "")))
	}
	for _, g := range t.Failed {
		fmt.Fprintf(b, "\n%s ended with status %d:\n\n%s", codeCell(g.Cmd), g.Status, codeBlock(g.Output))
	}
}

// codeCell is s as code within a line, also of a table.
func codeCell(s string) string {
	s = strings.Join(strings.Fields(commandText(s)), " ")
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

// codeBlock is s as a block of code.
func codeBlock(s string) string {
	s = strings.TrimRight(printable(strings.ToValidUTF8(escapes.ReplaceAllString(s, ""), "\ufffd")), "\n")
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + s + "\n" + fence + "\n"
}
