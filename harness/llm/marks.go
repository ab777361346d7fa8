package llm

import (
	"regexp"
	"strings"
)

// This file holds the forms of the table that begin with a token of a model's
// template, and the calls behind it that are JSON.

var (
	harmony  = regexp.MustCompile(`(?:<\|start\|>assistant(?:\s+to=([\w.:-]+))?)?<\|channel\|>(\w+)(?:\s+to=([\w.:-]+))?(?:[^<{]|<\|constrain\|>)*<\|message\|>`)
	mistral  = regexp.MustCompile(`\[TOOL_CALLS\][ \t\r\n]*(?:([\w.:-]+)[ \t]*(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?[ \t\r\n]*(?:\{|\z)|\[|\z)`)
	tokens   = regexp.MustCompile("(?:<｜tool▁call▁begin｜>|<\\|tool_call_begin\\|>)\\s*(?:function<｜tool▁sep｜>)?([\\w.:-]+)\\s*(?:<｜tool▁sep｜>|<\\|tool_call_argument_begin\\|>)?\\s*(?:```(?:json)?\\s*)?")
	gemma    = regexp.MustCompile(`(?m)(?:^|<\|?tool_call\|?>|<start_function_call>)[ \t]*call:([\w.:-]+)[ \t]*(\{)`)
	llamaTag = regexp.MustCompile(`<\|python_tag\|>\s*`)
	react    = regexp.MustCompile(`(?m)^[ \t]*\**Action\**:[ \t]*([\w.-]+)[ \t]*\r?\n[ \t]*\**Action[ _]Input\**:\s*`)
	tag      = regexp.MustCompile(`(?:<|&lt;)(?:tool_calls?|tools|tool|functioncall|function_call|action|act|\|tool_call\||\|plugin\|)(?:>|&gt;)?\s*(?:<tool_call>\s*)?(?:` + "```" + `\w*\s*)?`)
	tagEnd   = regexp.MustCompile("^\\s*(?:```)?\\s*(?:</[\\w|]+>|&lt;/\\w+&gt;|<\\|[\\w/]+\\|>|>)?[ \\t]*(?:\\r?\\n|\\z)")
)

// scan reads what stands at each match of open, up to the first that is not fine.
// What read says is no call is passed over, for a while.
func scan(text string, open *regexp.Regexp, read func(text string, m []int, commands []string) (found, bool), commands []string) []found {
	var hits []found
	end, tries := 0, 0
	for _, m := range open.FindAllStringSubmatchIndex(text, -1) {
		if m[0] < end {
			continue
		}
		h, ok := read(text, m, commands)
		if !ok {
			if tries++; tries > maxTries {
				return hits
			}
			continue
		}
		hits, end = append(hits, h), h.end
		if h.bad != fine || len(hits) == maxHits {
			return hits
		}
	}
	return hits
}

// maxTries bounds how many places that might be a call are looked at in vain: each
// may be read to the end of the message.
const maxTries = 32

// readMarked reads NAME {…} behind a mark: the first group is the name, and the
// second one, if there is any, where the arguments begin.
func readMarked(text string, m []int, commands []string) (found, bool) {
	body := m[1]
	if len(m) > 4 {
		body = m[4]
	}
	return jsonCall(text, m[0], text[m[2]:m[3]], body, commands), true
}

// jsonCall is the call of name from start whose arguments begin at body. Without
// them the place is bad up to the end of text.
func jsonCall(text string, start int, name string, body int, commands []string) found {
	h := found{start: start, end: len(text)}
	raw, n, _, bad := value(text[body:])
	tool := toolOf(name)
	switch {
	case bad != fine && tool != toolName && !has(commands, tool) && !shellTool[tool]:
		h.bad = unknown
	case bad != fine:
		h.bad = bad
	default:
		h.end = body + n
		var fields []field
		if fields, h.bad = decodeFields(string(raw)); h.bad == fine {
			h.take(name, fields, commands)
		}
	}
	return h
}

// readHarmony reads <|channel|>commentary to=functions.act …<|message|>{…}. Of
// the other channels, one is for reasoning and one for the user.
func readHarmony(text string, m []int, commands []string) (found, bool) {
	to := m[2:4]
	if m[6] >= 0 {
		to = m[6:8]
	}
	if to[0] < 0 || text[m[4]:m[5]] != "commentary" {
		return found{}, false
	}
	return jsonCall(text, m[0], text[to[0]:to[1]], m[1], commands), true
}

// readMistral reads [TOOL_CALLS][{…}] and [TOOL_CALLS]NAME[ARGS]{…}.
func readMistral(text string, m []int, commands []string) (found, bool) {
	switch body := m[1] - 1; text[body] { // the bracket belongs to what follows
	case '{':
		return jsonCall(text, m[0], text[m[2]:m[3]], body, commands), true
	case '[':
		return jsonCalls(text, m[0], body, commands), true
	}
	return found{start: m[0], end: len(text), bad: broken}, true
}

// jsonCalls is the place from start whose calls are the JSON values at body.
func jsonCalls(text string, start, body int, commands []string) found {
	more, n := objects(text[body:], commands)
	if len(more) == 0 {
		return found{start: start, end: len(text), bad: garbled}
	}
	return merge(start, body+n, more)
}

// readPythonTag reads what follows <|python_tag|>: JSON, or a call of Python,
// which is left to findPython. Other code is no command.
func readPythonTag(text string, m []int, commands []string) (found, bool) {
	rest := text[m[1]:]
	switch {
	case rest == "":
		return found{start: m[0], end: len(text), bad: broken}, true
	case rest[0] == '<':
		return found{}, false // another form begins
	case isJSON(rest):
		return jsonCalls(text, m[0], m[1], commands), true
	}
	return found{start: m[0], end: len(text), bad: garbled}, len(findPython(text[m[0]:], commands)) == 0
}

// isJSON reports whether text begins as an object or a list of JSON does.
func isJSON(text string) bool {
	return text[0] == '{' || text[0] == '[' && !pythonList.MatchString(text)
}

// readTagged reads what a tag announces, with or without its end: JSON, a call
// of Python, or one command line. A tag within a line counts if nothing follows.
func readTagged(text string, m []int, commands []string) (found, bool) {
	h := found{start: m[0], end: len(text), bad: broken}
	rest := text[m[1]:]
	begins := strings.TrimSpace(text[strings.LastIndexByte(text[:m[0]], '\n')+1:m[0]]) == ""
	switch {
	case rest == "":
		return h, begins && strings.Contains(text[m[0]:], ">")
	case isJSON(rest):
		if h = jsonCalls(text, m[0], m[1], commands); h.bad == fine || h.bad == unknown {
			return h, begins || h.bad == fine && tagEnd.MatchString(text[h.end:])
		}
		return h, begins && shaped(rest)
	}
	body, _, closed := strings.Cut(rest, "</")
	if !begins || !closed {
		return h, false
	}
	more := findPython(body, commands)
	if len(more) == 0 && commands != nil {
		more = findLine(strings.TrimSpace(body), commands)
	}
	return merge(m[0], m[1]+len(body), more), len(more) > 0
}
