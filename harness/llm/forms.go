package llm

import (
	"encoding/json"
	"regexp"
	"strings"

	window "tether/context"
)

// This file holds the forms of the table in dialect.go.

var (
	function  = regexp.MustCompile(`(?:<tool_call>\s*)?<function=([^>\s]+)\s*>`)
	parameter = regexp.MustCompile(`^\s*<parameter=([^>\s]+)\s*>`)
	invoke    = regexp.MustCompile(`<invoke name="([^"]+)"\s*>`)
	named     = regexp.MustCompile(`^\s*<parameter name="([^"]+)"\s*>`)
	harmony   = regexp.MustCompile(`<\|channel\|>\w*\s+to=([\w.:-]+)[^{]*<\|message\|>`)
	tag       = regexp.MustCompile(`(?m)^[ \t]*<(?:tool_call|tools|tool|functioncall|function_call|action|act)>?\s*`)
	fence     = regexp.MustCompile("(?m)^[ \t]*```[ \t]*([\\w+-]*)[ \t]*$")
	python    = regexp.MustCompile(`(?m)^[ \t]*(?:print\()?([A-Za-z_][\w.]*)\(`)
)

// findFunctions finds <function=NAME><parameter=KEY>…</parameter></function>.
func findFunctions(text string, commands []string) []found {
	return findBlocks(text, commands, function, parameter, "</function>")
}

// findInvokes finds <invoke name="NAME"><parameter name="KEY">…</parameter></invoke>.
func findInvokes(text string, commands []string) []found {
	return findBlocks(text, commands, invoke, named, "</invoke>")
}

// findBlocks finds calls whose parameters are blocks of raw text. Their text
// is taken byte for byte, one newline at either end excepted.
func findBlocks(text string, commands []string, open, param *regexp.Regexp, end string) []found {
	var hits []found
	for at := 0; ; {
		m := open.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return hits
		}
		h := found{start: at + m[0], end: at + m[1]}
		fields, n, ok := readParameters(text[h.end:], param, end)
		h.end += n
		if !ok {
			h.bad = broken
			return append(hits, h)
		}
		h.take(text[at+m[2]:at+m[3]], fields, commands)
		hits, at = append(hits, h), h.end
	}
}

// readParameters reads parameters up to end, and returns how far it came.
func readParameters(text string, param *regexp.Regexp, end string) (fields []field, n int, ok bool) {
	for {
		m := param.FindStringSubmatchIndex(text[n:])
		if m == nil {
			break
		}
		key, body := text[n+m[2]:n+m[3]], text[n+m[1]:]
		stop := strings.Index(body, "</parameter>")
		if stop < 0 {
			return nil, n, false
		}
		value := strings.TrimSuffix(strings.TrimPrefix(body[:stop], "\n"), "\n")
		fields = append(fields, field{key, value, kindString})
		n += m[1] + stop + len("</parameter>")
	}
	rest := strings.TrimLeft(text[n:], " \t\r\n")
	if !strings.HasPrefix(rest, end) {
		return nil, n, false
	}
	return fields, len(text) - len(rest) + len(end), true
}

// take reads a call with a name and fields.
func (h *found) take(name string, fields []field, commands []string) {
	call, bad := callOf(toolOf(name), fields, commands)
	if h.bad = bad; bad == fine {
		h.calls = append(h.calls, call)
	}
}

// findHarmony finds <|channel|>commentary to=functions.act …<|message|>{…}.
func findHarmony(text string, commands []string) []found {
	var hits []found
	for _, m := range harmony.FindAllStringSubmatchIndex(text, -1) {
		h := found{start: m[0], end: len(text), bad: broken}
		if fields, n, ok := decodePrefix(text[m[1]:]); ok {
			h.end = m[1] + n
			h.take(text[m[2]:m[3]], fields, commands)
		}
		hits = append(hits, h)
	}
	return hits
}

// findTagged finds JSON that a tag announces, with or without its end.
func findTagged(text string, commands []string) []found {
	var hits []found
	for _, m := range tag.FindAllStringIndex(text, -1) {
		if m[1] < len(text) && text[m[1]] != '{' && text[m[1]] != '[' {
			continue
		}
		h := found{start: m[0], end: len(text), bad: broken}
		if more, n := objects(text[m[1]:], commands); len(more) > 0 {
			h = merge(m[0], m[1]+n, more)
		}
		hits = append(hits, h)
	}
	return hits
}

// merge makes one place of the calls of several objects.
func merge(start, end int, more []found) found {
	h := found{start: start, end: end}
	for _, o := range more {
		if o.bad != fine {
			if len(h.calls) == 0 {
				h.bad = o.bad
			}
			break
		}
		h.calls = append(h.calls, o.calls...)
	}
	return h
}

// findWhole finds a message that is JSON from its beginning.
func findWhole(text string, commands []string) []found {
	if text[0] != '{' && text[0] != '[' {
		return nil
	}
	hits, _ := objects(text, commands)
	return hits
}

// A block is a fenced block: its language and what it holds.
type block struct {
	start, end int
	lang, body string
}

// fences finds the fenced blocks that are closed.
func fences(text string) []block {
	var blocks []block
	marks := fence.FindAllStringSubmatchIndex(text, -1)
	for i := 0; i+1 < len(marks); i += 2 {
		open, shut := marks[i], marks[i+1]
		if text[shut[2]:shut[3]] != "" {
			i-- // the next one opens: this one was never closed
			continue
		}
		body := strings.TrimSuffix(text[min(open[1]+1, shut[0]):shut[0]], "\n")
		blocks = append(blocks, block{open[0], shut[1], strings.ToLower(text[open[2]:open[3]]), body})
	}
	return blocks
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

// findLineJSON finds objects that begin a line and after which the line ends:
// one within a sentence is talked about.
func findLineJSON(text string, commands []string) []found {
	var hits []found
	at := 0
	for _, l := range strings.SplitAfter(text, "\n") {
		start := at + len(l) - len(strings.TrimLeft(l, " \t"))
		at += len(l)
		if len(hits) > 0 && start < hits[len(hits)-1].end || start >= len(text) || text[start] != '{' {
			continue
		}
		more, n := objects(text[start:], commands)
		rest, _, _ := strings.Cut(text[start+n:], "\n")
		if len(more) > 0 && strings.TrimSpace(rest) == "" && merge(0, 0, more).bad != unknown {
			hits = append(hits, merge(start, start+n, more))
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
		ours := b.lang == "" && has(commands, firstWord(b.body))
		if !shells[b.lang] && !ours || strings.TrimSpace(b.body) == "" {
			continue
		}
		if len(hits) > 0 && !invented.MatchString(text[hits[0].end:b.start]) {
			return nil
		}
		hits = append(hits, found{start: b.start, end: b.end, calls: []window.Call{{Cmd: strings.TrimSpace(b.body)}}})
	}
	if len(hits) == 0 || commands != nil && !has(commands, "sh") && !has(commands, firstWord(hits[0].calls[0].Cmd)) {
		return nil
	}
	return hits
}

// findLine finds a message that is nothing but one line whose first word is a
// command: our own nudge shows a call that way. A sentence is none.
func findLine(text string, commands []string) []found {
	if strings.Contains(text, "\n") || !has(commands, firstWord(text)) || strings.ContainsAny(text[len(text)-1:], ".!?:,") {
		return nil
	}
	return []found{{end: len(text), calls: []window.Call{{Cmd: text}}}}
}

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}

// findPython finds act(cmd="…", stdin="…") on a line of its own.
func findPython(text string, commands []string) []found {
	var hits []found
	for _, m := range python.FindAllStringSubmatchIndex(text, -1) {
		name := toolOf(text[m[2]:m[3]])
		if name != toolName && !has(commands, name) {
			continue
		}
		h := found{start: m[0], end: len(text), bad: broken}
		fields, n, ok := keywords(text[m[1]:])
		if !ok && name != toolName {
			continue // "read (the file)" is no call
		}
		if ok {
			h.end = m[1] + n
			h.take(name, fields, commands)
		}
		hits = append(hits, h)
	}
	return hits
}

// decodePrefix reads the JSON object that text begins with.
func decodePrefix(text string) ([]field, int, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return nil, 0, false
	}
	fields, _, ok := decodeFields(string(raw))
	return fields, int(d.InputOffset()), ok
}
