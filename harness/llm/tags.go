package llm

import (
	"regexp"
	"strings"
)

// This file holds the forms of the table that look like XML.

// A markup is a form in which each argument stands between tags of its own.
type markup struct {
	open, param *regexp.Regexp // the first group is the name
	paramEnd    string         // empty: the end tag of the parameter's name
	end         *regexp.Regexp
	back        int // bytes of open that belong to the first parameter
}

var (
	// <function=NAME><parameter=KEY>…</parameter></function>
	functions = &markup{
		open:     regexp.MustCompile(`(?:<tool_call>\s*)?<function=["']?([^>\s"']+)["']?\s*>`),
		param:    regexp.MustCompile(`^\s*<parameter=["']?([^>\s"']+)["']?\s*>`),
		paramEnd: "</parameter>",
		end:      regexp.MustCompile(`^\s*</function>`),
	}
	// <invoke name="NAME"><parameter name="KEY">…</parameter></invoke>
	invokes = &markup{
		open:     regexp.MustCompile(`<(?:\w+:)?(?:invoke|function|function_call|tool_call|tool)\s+name=["']([^"'>]+)["']\s*>`),
		param:    regexp.MustCompile(`^\s*<(?:\w+:)?(?:parameter|param|argument)\s+name=["']([^"'>]+)["'][^>]*>`),
		paramEnd: "</", // what follows is one of several names
		end:      regexp.MustCompile(`^\s*</(?:\w+:)?(?:invoke|function|function_call|tool_call|tool)>`),
	}
	// <tool_call>NAME<arg_key>KEY</arg_key><arg_value>…</arg_value></tool_call>
	argKeys = &markup{
		open:     regexp.MustCompile(`<tool_call>\s*([\w.-]+)\s*<arg_key>`),
		param:    regexp.MustCompile(`^\s*<arg_key>([^<]+)</arg_key>\s*<arg_value>`),
		paramEnd: "</arg_value>",
		end:      regexp.MustCompile(`^\s*</tool_call>`),
		back:     len("<arg_key>"),
	}
	elements = &markup{
		open:  regexp.MustCompile(`(?m)^[ \t]*<(act|tool_call|function_call)>\s*<(?:cmd|command|name)>`),
		param: regexp.MustCompile(`^\s*<(\w+)>`),
		end:   regexp.MustCompile(`^\s*</(?:act|tool_call|function_call)>`),
	}
	// firstChild is what open of elements has taken of the first parameter.
	firstChild = regexp.MustCompile(`<\w+>$`)
	// paramClose are the end tags of invokes.
	paramClose = regexp.MustCompile(`</(?:\w+:)?(?:parameter|param|argument)>`)
)

// findElements finds <act><cmd>…</cmd></act>, and the whole of a shell's line
// between tags of its own.
func findElements(text string, commands []string) []found {
	hits := scan(text, elements.open, elements.read, commands)
	if m := shellTags.FindStringSubmatchIndex(text); m != nil && len(hits) == 0 && strings.TrimSpace(text[m[2]:m[3]]) != "" {
		h := found{start: m[0], end: m[1]}
		h.take("execute_bash", []field{{"cmd", strings.TrimSpace(text[m[2]:m[3]]), kindString}}, commands)
		hits = append(hits, h)
	}
	return hits
}

// shellTags are tags around a line for the shell.
var shellTags = regexp.MustCompile(`(?s)\A(?:.*\n)?[ \t]*<execute_bash>(.*?)</execute_bash>\s*\z`)

// read reads a call whose parameters stand between tags. Their text is taken byte
// for byte, one newline at either end excepted.
func (k *markup) read(text string, m []int, commands []string) (found, bool) {
	name, body := text[m[2]:m[3]], m[1]-k.back
	if k.paramEnd == "" {
		body -= len(firstChild.FindString(text[m[0]:m[1]]))
	}
	if rest := strings.TrimLeft(text[body:], " \t\r\n"); strings.HasPrefix(rest, "{") {
		return jsonCall(text, m[0], name, len(text)-len(rest), commands), true
	}
	h := found{start: m[0], end: len(text), bad: broken}
	if fields, n, ok := k.parameters(text[body:]); ok {
		h.end = body + n
		h.takeElements(name, fields, commands)
	}
	return h, true
}

// takeElements is take for a call whose name and arguments may themselves be
// elements.
func (h *found) takeElements(name string, fields []field, commands []string) {
	for i, f := range fields {
		if f.key == "name" && name != toolName {
			name = f.value
			fields = append(fields[:i:i], fields[i+1:]...)
			break
		}
	}
	if len(fields) == 1 && argsKeys[fields[0].key] && strings.HasPrefix(strings.TrimSpace(fields[0].value), "{") {
		if fields, h.bad = decodeFields(fields[0].value); h.bad != fine {
			return
		}
	}
	h.take(name, fields, commands)
}

// parameters reads parameters up to the end of the call, and returns how far it
// came.
func (k *markup) parameters(text string) (fields []field, n int, ok bool) {
	for {
		m := k.param.FindStringSubmatchIndex(text[n:])
		if m == nil {
			break
		}
		key, body := text[n+m[2]:n+m[3]], text[n+m[1]:]
		stop, size := k.stop(key, body)
		if stop < 0 {
			return nil, n, false
		}
		value := strings.TrimSuffix(strings.TrimPrefix(body[:stop], "\n"), "\n")
		fields = append(fields, field{key, value, kindString})
		n += m[1] + stop + size
	}
	end := k.end.FindStringIndex(text[n:])
	if end == nil {
		return nil, n, false
	}
	return fields, n + end[1], true
}

// stop finds the end tag of a parameter in its body.
func (k *markup) stop(key, body string) (at, size int) {
	switch k.paramEnd {
	case "":
		return strings.Index(body, "</"+key+">"), len("</" + key + ">")
	case "</":
		m := paramClose.FindStringIndex(body)
		if m == nil {
			return -1, 0
		}
		return m[0], m[1] - m[0]
	}
	return strings.Index(body, k.paramEnd), len(k.paramEnd)
}

var (
	attributed = regexp.MustCompile(`(?m)^[ \t]*<([\w.-]+)((?:\s+[\w-]+=(?:"[^"]*"|'[^']*'))+)\s*(/?)>`)
	attribute  = regexp.MustCompile(`\s+([\w-]+)=(?:"([^"]*)"|'([^']*)')`)
	// attributeCut is a call whose attributes do not end.
	attributeCut = regexp.MustCompile(`(?m)^[ \t]*<act\s+\w+=["'][^>]*\z`)
	entities     = strings.NewReplacer("&quot;", `"`, "&apos;", "'", "&#39;", "'", "&lt;", "<", "&gt;", ">", "&#10;", "\n", "&#13;", "\r", "&#9;", "\t", "&amp;", "&")
)

// callTags are elements whose attribute name names the tool.
var callTags = map[string]bool{"tool_call": true, "function_call": true, "tool": true, "function": true, "invoke": true}

// findAttributes finds <act cmd="…" stdin="…"/>, and with stdin as the text of
// the element. Only here entities stand for characters: an attribute cannot hold
// its own quotes otherwise.
func findAttributes(text string, commands []string) []found {
	hits := scan(text, attributed, readElement, commands)
	if m := attributeCut.FindStringIndex(text); m != nil && len(hits) == 0 {
		hits = append(hits, found{start: m[0], end: len(text), bad: broken})
	}
	return hits
}

// readElement reads the element at m. It returns false if that is no call.
func readElement(text string, m []int, commands []string) (found, bool) {
	name := text[m[2]:m[3]]
	var fields []field
	for _, a := range attribute.FindAllStringSubmatch(text[m[4]:m[5]], -1) {
		if a[1] == "name" && callTags[name] {
			name = a[2] + a[3]
			continue
		}
		fields = append(fields, field{a[1], entities.Replace(a[2] + a[3]), kindString})
	}
	if toolOf(name) != toolName && !has(commands, name) || len(fields) == 0 {
		return found{}, false
	}
	h := found{start: m[0], end: m[1]}
	if m[6] == m[7] { // no slash: its text is stdin
		body, _, ok := strings.Cut(text[m[1]:], "</"+text[m[2]:m[3]]+">")
		if !ok {
			h.bad, h.end = broken, len(text)
			return h, true
		}
		if h.end += len(body) + len("</>") + m[3] - m[2]; strings.TrimSpace(body) != "" {
			fields = append(fields, field{"stdin", strings.TrimSuffix(strings.TrimPrefix(body, "\n"), "\n"), kindString})
		}
	}
	h.take(name, fields, commands)
	return h, true
}
