package llm

import (
	"regexp"
	"strings"
)

// This file holds the forms of the table that look like XML.

// A markup is a form in which each argument stands between tags of its own.
type markup struct {
	open, param *regexp.Regexp // the first group that is there is the name
	paramEnd    *regexp.Regexp // nil: the end tag of the parameter's name
	end         *regexp.Regexp
	back        int // bytes of open that belong to the first parameter
}

var (
	// <function=NAME><parameter=KEY>…</parameter></function>
	functions = &markup{
		open:     regexp.MustCompile(`(?:<tool_call>\s*)?<function=["']?([^>\s"']+)["']?\s*>`),
		param:    paramOpen,
		paramEnd: paramClose,
		end:      regexp.MustCompile(`^\s*</function>`),
	}
	// <invoke name="NAME"><parameter name="KEY">…</parameter></invoke>
	invokes = &markup{
		open:     regexp.MustCompile(`<(?:\w+:)?(?:invoke|function|function_call|tool_call|tool)\s+name=["']([^"'>]+)["']\s*>`),
		param:    paramOpen,
		paramEnd: paramClose,
		end:      regexp.MustCompile(`^\s*</(?:\w+:)?(?:invoke|function|function_call|tool_call|tool)>`),
	}
	// <tool_call>NAME<arg_key>KEY</arg_key><arg_value>…</arg_value></tool_call>
	argKeys = &markup{
		open:     regexp.MustCompile(`<tool_call>\s*([\w.-]+)\s*<arg_key>`),
		param:    regexp.MustCompile(`^\s*<arg_key>([^<]+)</arg_key>\s*<arg_value>`),
		paramEnd: regexp.MustCompile(`</?arg_value>`),
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
	// paramOpen and paramClose are the tags of a parameter, or its own name.
	paramOpen = regexp.MustCompile(`^\s*<(?:(?:\w+:)?(?:parameter|param|argument)(?:=["']?([^>\s"']+)["']?|\s+name=["']([^"'>]+)["'][^>]*)|` +
		`(cmd|command|args|stdin|content|path))\s*>`)
	paramClose = regexp.MustCompile(`</?(?:\w+:)?(?:parameter|param|argument)\b[^<>]{0,80}>`)
)

// findElements finds <act><cmd>…</cmd></act>.
func findElements(text string, commands []string) []found {
	return scan(text, elements.open, elements.read, commands)
}

// read reads a call whose parameters stand between tags. Their text is taken byte
// for byte, one newline at either end excepted.
func (k *markup) read(text string, m []int, commands []string) (found, bool) {
	name, body := text[m[2]:m[3]], m[1]-k.back
	if k.paramEnd == nil {
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
		key, body, ends := group(text[n:], m), text[n+m[1]:], k.paramEnd
		if len(m) > 6 && m[6] >= 0 {
			ends = nil // an element of its own
		}
		stop, size := ending(key, body, ends)
		if stop < 0 {
			return nil, n, false
		}
		fields = append(fields, field{key, unbroken(body[:stop]), kindString})
		n += m[1] + stop + size
	}
	end := k.end.FindStringIndex(text[n:])
	if end == nil {
		return nil, n, false
	}
	return fields, n + end[1], true
}

// group is the first group of a match that is there.
func group(text string, m []int) string {
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			return text[m[i]:m[i+1]]
		}
	}
	return ""
}

// ending finds the end tag of a parameter in its body. Tags that open there have
// ends of their own: a file may be written that is about calls, and a parameter
// that was never closed does not end with the next one.
func ending(key, body string, tags *regexp.Regexp) (at, size int) {
	depth := 1
	for from := 0; ; {
		m := nextTag(key, body[from:], tags)
		if m == nil {
			return -1, 0
		}
		if body[from+m[0]+1] != '/' {
			depth++
		} else if depth--; depth == 0 {
			return from + m[0], m[1] - m[0]
		}
		from += m[1]
	}
}

// nextTag is the place of the next tag in a body: one of tags, or without them one
// of the element key.
func nextTag(key, body string, tags *regexp.Regexp) []int {
	if tags != nil {
		return tags.FindStringIndex(body)
	}
	end := strings.Index(body, "</"+key+">")
	if end < 0 {
		return nil
	}
	if open := strings.Index(body[:end], "<"+key+">"); open >= 0 {
		return []int{open, open + len("<>") + len(key)}
	}
	return []int{end, end + len("</>") + len(key)}
}

// unbroken is the text between two tags, which models write on lines of its own.
func unbroken(text string) string {
	for _, end := range []string{"\r\n", "\n"} {
		if rest, ok := strings.CutPrefix(text, end); ok {
			text = rest
			break
		}
	}
	if rest, ok := strings.CutSuffix(text, "\r\n"); ok {
		return rest
	}
	return strings.TrimSuffix(text, "\n")
}

var (
	attributed = regexp.MustCompile(`(?m)^[ \t]*<([\w.-]+)((?:\s+[\w-]+\s*=\s*(?:"[^"]*"|'[^']*'))+)\s*(/?)>`)
	attribute  = regexp.MustCompile(`\s+([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')`)
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
			fields = append(fields, field{"stdin", unbroken(body), kindString})
		}
	}
	h.take(name, fields, commands)
	return h, true
}
