package llm

import (
	"regexp"
	"strings"

	window "tether/context"
)

// This file holds the forms in which a command line stands by itself: behind a
// label, between tags, as the whole of a message.

// quoted is what a command line quotes.
var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// findLine finds a message that is nothing but one line whose first word is a
// command: our own nudge shows a call that way. A sentence is none, nor is one
// that has a call in it. A report is a sentence.
func findLine(text string, commands []string) []found {
	line := strings.TrimPrefix(text, "$ ")
	switch {
	case text == "" || !has(commands, firstWord(line)) || callish.MatchString(quoted.ReplaceAllString(line, "")):
		return nil
	case strings.Contains(text, "\n"):
		if !isHeredoc(line) {
			return nil
		}
	case strings.ContainsAny(text[len(text)-1:], ".!?:,") && !reporting.MatchString(line):
		return nil
	}
	return []found{{end: len(text), calls: []window.Call{{Cmd: line}}}}
}

// reporting is a done with a report as help shows one: it begins as a sentence, and
// so done is not the first word of it.
var reporting = regexp.MustCompile(`^done ["']?[A-Z][^\n]* `)

// hereOpen is a line that ends with the beginning of a here-document.
var hereOpen = regexp.MustCompile(`^[^\n]*[^<\n]<<-?[ \t]*(?:'(\w+)'|"(\w+)"|\\?(\w+))[ \t]*\r?\n`)

// isHeredoc reports whether text is one line with a here-document, up to its end.
func isHeredoc(text string) bool {
	m := hereOpen.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	body := strings.ReplaceAll(text[len(m[0]):], "\r\n", "\n")
	end := "\n" + m[1] + m[2] + m[3]
	i := strings.Index("\n"+body+"\n", end+"\n")
	return i >= 0 && i+len(end) == len(body)+1
}

// label is what some models write before a command line.
var label = regexp.MustCompile(`(?m)^[ \t]*\**(?i:action|command|cmd|tool call)(?:[ \t]*:\**|\**[ \t]*:)\s*`)

// findLabelled finds "Action: read a.go", with a thought before it at most and
// nothing behind it but what stands for an answer.
func findLabelled(text string, commands []string) []found {
	m := label.FindStringIndex(text)
	if m == nil || !thoughtOf.MatchString(text[:m[0]]) || m[1] == len(text) {
		return nil
	}
	rest := text[m[1]:]
	if rest[0] == '{' {
		more, n := objects(rest, commands)
		if len(more) == 0 || !over(rest[n:]) {
			return nil
		}
		return []found{merge(m[0], m[1]+n, more)}
	}
	line, after, _ := strings.Cut(rest, "\n")
	if !over(after) {
		return nil
	}
	line = strings.Trim(line, " \t\r`*")
	more := findPython(line, commands)
	if len(more) == 0 && commands != nil {
		more = findLine(bracketed.ReplaceAllString(line, "$1"), commands)
	}
	if len(more) == 0 {
		return nil
	}
	return []found{merge(m[0], len(text)-len(after), more)}
}

// thoughtOf is what may stand before a labelled line.
var thoughtOf = regexp.MustCompile(`(?is)^(?:\s*\**thought\b.*)?$`)

// bracketed is act[…].
var bracketed = regexp.MustCompile(`^act\[([^\[\]]+)\]$`)

// over reports whether a message is over before text: somebody else goes on.
func over(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || turned.FindStringIndex(text) != nil && turned.FindStringIndex(text)[0] == 0
}

// inFence reports whether a place of a text is in a fence, closed or not.
func inFence(text string, at int) bool {
	return len(fence.FindAllStringIndex(text[:at], -1))%2 == 1
}

// lineTag is a tag around a command, and lineTags are its names beside those of
// commands.
var (
	lineTag  = regexp.MustCompile(`(?m)^[ \t]*<([\w.-]+)>`)
	lineTags = map[string]bool{"cmd": true, "command": true}
)

// findTagged finds a command between tags of its name at the end of a message:
// <read>a.go</read>, <bash>ls</bash>, <command>read a.go</command>; and
// <execute_command><command>ls</command></execute_command>.
func findTagged(text string, commands []string) []found {
	for _, m := range lineTag.FindAllStringSubmatchIndex(text, maxTries) {
		name, rest := text[m[2]:m[3]], text[m[1]:]
		ours := commands != nil && has(commands, name)
		if !ours && !shellTool[name] && !lineTags[name] {
			continue
		}
		body, closed := strings.CutSuffix(strings.TrimSpace(rest), "</"+name+">")
		if body = strings.TrimSpace(body); !closed || body == "" || inFence(text, m[0]) || strings.Contains(body, "</"+name+">") {
			return nil
		}
		h := found{start: m[0], end: len(text)}
		if body[0] == '<' {
			fields, n, ok := elements.parameters(body + "</act>")
			if !ok || n != len(body)+len("</act>") {
				continue
			}
			h.take(name, fields, commands)
			return []found{h}
		}
		switch {
		case strings.Contains(body, "\n") && !shellTool[name]:
			continue // which is the line, and which the text, is not told
		case lineTags[name] && !has(commands, firstWord(body)):
			continue
		case ours:
			body = line(name, strings.TrimPrefix(body, name+" "))
		}
		tool := toolName
		if shellTool[name] {
			tool = name
		}
		h.take(tool, []field{{"cmd", body, kindString}}, commands)
		return []found{h}
	}
	return nil
}
