package llm

import (
	"encoding/json"
	"regexp"
	"strings"

	window "tether/context"
)

// This file holds the forms of the table that a text may have by itself: JSON,
// fences and lines.

// findWhole finds a message that is JSON from its beginning, also one that is
// encoded as a string.
func findWhole(text string, commands []string) []found {
	var inner string
	if text[0] == '"' && json.Unmarshal([]byte(text), &inner) == nil {
		if inner = trim(inner); inner != "" && inner[0] == '{' {
			if more, _ := objects(inner, commands); len(more) > 0 {
				return []found{merge(0, len(text), more)}
			}
		}
	}
	if text[0] != '{' && text[0] != '[' || strings.HasPrefix(text, "[TOOL_CALLS]") {
		return nil
	}
	hits, n := objects(text, commands)
	if len(hits) > 0 {
		hits = append(hits, shifted(findLineJSON(text[n:], commands), n)...)
	}
	return hits
}

// shifted are hits in the text that begins at by.
func shifted(hits []found, by int) []found {
	for i := range hits {
		hits[i].start, hits[i].end = hits[i].start+by, hits[i].end+by
	}
	return hits
}

// A block is a fenced block: its language and what it holds.
type block struct {
	start, end int
	lang, body string
	shut       int // length of what stands behind body
}

// fence is a line that opens or closes a block.
var fence = regexp.MustCompile("(?m)^[ \\t]*(?:Action:[ \\t]*)?(```+|~~~+)[ \\t]*([\\w+-]*)([^`\\n]*)$")

// fences finds the fenced blocks that are closed.
func fences(text string) []block {
	var blocks []block
	marks := fence.FindAllStringSubmatchIndex(text, -1)
	for i := 0; i+1 < len(marks); i += 2 {
		open, shut := marks[i], marks[i+1]
		if strings.TrimSpace(text[shut[4]:shut[7]]) != "" || text[open[2]] != text[shut[2]] || shut[3]-shut[2] < open[3]-open[2] {
			i-- // the next one opens: this one was never closed
			continue
		}
		body := strings.TrimSuffix(text[min(open[1]+1, shut[0]):shut[0]], "\n")
		blocks = append(blocks, block{open[0], shut[1], strings.ToLower(text[open[4]:open[5]]), body, shut[1] - min(open[1]+1, shut[0]) - len(body)})
	}
	return blocks
}

// beside is what may stand in a fence beside its calls: comments, the end of what
// is around them, and what prints the answer.
var beside = regexp.MustCompile(`^(?:[\s\])};,]|(?:#|//).*|print\(\w+\)|</?[\w|]+>)*$`)

// taught reports whether h stands in a fence that holds other things beside
// calls: then it is an example in a text, or a line of a program.
func taught(text string, h found, all []found, fenced []block) bool {
	for _, b := range fenced {
		if b.start >= h.start || b.end < h.end || within(b.start, all) {
			continue
		}
		if b.lang == "markdown" || b.lang == "md" {
			return true
		}
		rest := []byte(text[b.end-len(b.body)-b.shut : b.end-b.shut])
		for _, o := range all {
			for i := o.start; i < o.end; i++ {
				if at := i - (b.end - len(b.body) - b.shut); at >= 0 && at < len(rest) {
					rest[at] = ' '
				}
			}
		}
		if !beside.Match(rest) {
			return true
		}
	}
	return false
}

// findFencedJSON finds fenced blocks that hold calls as JSON. A block of JSON
// that has not the form of a call is text: it may be a file's content.
func findFencedJSON(text string, commands []string) []found {
	var hits []found
	for _, b := range fences(text) {
		body := strings.TrimSpace(b.body)
		if body == "" || body[0] != '{' && body[0] != '[' {
			continue
		}
		if more, _ := objects(body, commands); len(more) > 0 {
			hits = append(hits, merge(b.start, b.end, more))
		}
	}
	return hits
}

// restOfLine is what may stand behind a call on its line.
var restOfLine = regexp.MustCompile(`^[\s})\]>;,]*(?:</?[\w|]+>|<\|[\w/]+\|>)*\s*$`)

// findLineJSON finds objects that begin a line and after which the line ends:
// one within a sentence is talked about.
func findLineJSON(text string, commands []string) []found {
	var hits []found
	at, tries := 0, 0
	for l := range strings.Lines(text) {
		start := at + len(l) - len(strings.TrimLeft(l, " \t"))
		at += len(l)
		if len(hits) > 0 && start < hits[len(hits)-1].end || start >= len(text) || text[start] != '{' {
			continue
		}
		more, n := objects(text[start:], commands)
		if len(more) > 0 {
			n = more[len(more)-1].end
		}
		rest, _, _ := strings.Cut(text[start+n:], "\n")
		if len(more) > 0 && restOfLine.MatchString(rest) && merge(0, 0, more).bad != unknown {
			hits = append(hits, shifted(more, start)...)
		} else {
			tries++
		}
		if tries > maxTries || len(hits) >= maxHits {
			break
		}
	}
	return hits
}

// shells are the languages of a fence that is a call.
var shells = map[string]bool{"bash": true, "sh": true, "shell": true, "console": true, "act": true}

// findShell finds the one shell fence of a message. Of several, which one is
// meant is not guessed, unless an invented answer stands between them.
func findShell(text string, commands []string) []found {
	var hits []found
	for _, b := range fences(text) {
		body := strings.TrimSpace(b.body)
		ours := b.lang == "" && has(commands, firstWord(body))
		if !shells[b.lang] && !ours || body == "" || body[0] == '{' || body[0] == '<' || len(findPython(body, commands)) > 0 {
			continue
		}
		if len(hits) > 0 && !invented(text[hits[0].end:b.start]) {
			return nil
		}
		if len(hits) == 0 {
			hits = append(hits, found{start: b.start, end: b.end, calls: []window.Call{{Cmd: body}}})
		}
	}
	if len(hits) == 0 || commands != nil && !has(commands, "sh") && !has(commands, firstWord(hits[0].calls[0].Cmd)) {
		return nil
	}
	return hits
}

// invented reports whether an answer stands in a text between two calls.
func invented(text string) bool { return turned.MatchString(text) || answered.MatchString(text) }

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}
