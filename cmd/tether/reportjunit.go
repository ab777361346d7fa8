package main

import (
	"bytes"
	"fmt"
	"strings"

	"tether/harness"
)

// A testCase is one <testcase>. Kind is the element that says how it failed:
// failure, error or skipped; empty: it passed.
type testCase struct {
	class, name        string
	kind, typ, message string
	text, out          string
	seconds            float64
}

// junitReport is the tasks in JUnit's XML: a testcase a task, and one a gate where
// the gates of a task are asked for by themselves. A task that is not done is a
// failure where the model had its try, and else an error.
func junitReport(tasks []reported) []byte {
	var cases []testCase
	for _, t := range tasks {
		cases = append(cases, taskCase(t))
		if t.Gates {
			cases = append(cases, gateCases(t)...)
		}
	}
	count, seconds := map[string]int{}, 0.0
	for _, c := range cases {
		count[c.kind]++
		seconds += c.seconds
	}
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n<testsuites>\n")
	fmt.Fprintf(&b, `  <testsuite name="tether" tests="%d" failures="%d" errors="%d" skipped="%d" time="%.3f">`+"\n",
		len(cases), count["failure"], count["error"], count["skipped"], seconds)
	for _, c := range cases {
		c.write(&b)
	}
	b.WriteString("  </testsuite>\n</testsuites>\n")
	return b.Bytes()
}

// taskCase is the testcase of a task.
func taskCase(t reported) testCase {
	o := t.Outcome
	c := testCase{class: "tether", name: t.Name, typ: string(o.Stop), seconds: o.Seconds}
	c.out = o.Report
	if o.Model != "" {
		c.out = strings.TrimSpace(fmt.Sprintf("%s\n\nsession %s, model %s, %d steps", c.out, o.Session, o.Model, o.Steps))
	}
	switch {
	case o.Stop == harness.Done:
		return c
	case hadTry(o.Stop) && o.Stop != harness.GateError:
		c.kind = "failure"
	default:
		c.kind = "error"
	}
	c.message = reasonOf(t)
	var text strings.Builder
	for _, g := range t.Failed {
		fmt.Fprintf(&text, "$ %s\n%s\nstatus %d\n", g.Cmd, strings.TrimRight(g.Output, "\n"), g.Status)
	}
	c.text = text.String()
	return c
}

// gateCases are the testcases of the gates of a task.
func gateCases(t reported) []testCase {
	var all []testCase
	for _, g := range t.Outcome.Gates {
		c := testCase{class: "tether.gates", name: g.Cmd}
		switch {
		case g.Tries == 0:
			c.kind, c.message = "skipped", "not run: the model did not say that it is done"
		case g.Status != 0:
			c.kind, c.typ, c.message = "failure", "gate", gateWord(g)
		}
		for _, f := range t.Failed {
			if f.Cmd == g.Cmd {
				c.text = f.Output
			}
		}
		all = append(all, c)
	}
	return all
}

func (c testCase) write(b *bytes.Buffer) {
	fmt.Fprintf(b, `    <testcase classname="%s" name="%s" time="%.3f">`, xmlText(c.class), xmlText(c.name), c.seconds)
	if c.kind != "" {
		fmt.Fprintf(b, "\n      <%s", c.kind)
		if c.typ != "" {
			fmt.Fprintf(b, ` type="%s"`, xmlText(c.typ))
		}
		fmt.Fprintf(b, ` message="%s">%s</%s>`, xmlText(c.message), xmlText(c.text), c.kind)
	}
	if c.out != "" {
		fmt.Fprintf(b, "\n      <system-out>%s</system-out>", xmlText(c.out))
	}
	b.WriteString("\n    </testcase>\n")
}

// xmlText is s as it stands in the text or in an attribute of XML. Of what XML
// cannot say at all, colours are left out and the rest is replaced.
func xmlText(s string) string {
	var b strings.Builder
	for _, r := range escapes.ReplaceAllString(s, "") {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == '\n':
			b.WriteString("&#10;") // in an attribute a line end would become a space
		case r == '\t':
			b.WriteString("&#9;")
		case r < ' ', r == 0xfffe, r == 0xffff:
			b.WriteRune('\ufffd')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
