package llm

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// objects reads the JSON values that text begins with, one after the other,
// as calls. It returns nothing if the first of them has not the form of a
// call; n is the length of those that were read.
func objects(text string, commands []string) (hits []found, n int) {
	for n < len(text) && len(hits) < maxHits {
		start := n + len(text[n:]) - len(strings.TrimLeft(text[n:], " \t\r\n,;"))
		if start >= len(text) || text[start] != '{' && text[start] != '[' {
			return hits, n
		}
		value, size, _, bad := value(text[start:])
		if bad != fine {
			if !shaped(text[start:]) {
				return hits, n
			}
			if hits = append(hits, found{start: start, end: len(text), bad: bad}); len(hits) == 1 {
				n = len(text)
			}
			return hits, n
		}
		h := found{start: start, end: start + size}
		if !h.read(value, commands, 0) {
			return hits, n
		}
		hits, n = append(hits, h), h.end
	}
	return hits, n
}

// value cuts the first JSON value off text; strict says that it is JSON as it
// stands, and not only what models take for it.
func value(text string) (raw json.RawMessage, n int, strict bool, bad verdict) {
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&raw) == nil {
		return raw, int(d.InputOffset()), true, fine
	}
	s, n, bad := relaxed(text)
	return json.RawMessage(s), n, false, bad
}

// maxShape is how far into an object the keys of a call are looked for, in bytes.
const maxShape = 2048

// shaped reports whether a text that is no JSON was meant as a call.
func shaped(text string) bool {
	text = text[:min(len(text), maxShape)]
	return callish.MatchString(text) && !pythonList.MatchString(text)
}

// maxNest bounds how deep a call may be wrapped.
const maxNest = 4

// wrappers are the keys of an object around a call or a list of them.
var wrappers = []string{"tool_calls", "tool_uses", "tool_call", "function_call", "functioncall", "function", "call", "calls", "actions", toolName}

// read reads a JSON value as one call, as a list of calls or as the words of
// one. It returns false if the value has not the form of a call: then it is text.
func (h *found) read(raw json.RawMessage, commands []string, depth int) bool {
	raw = json.RawMessage(strings.TrimSpace(string(raw)))
	var list []json.RawMessage
	if depth > maxNest || len(raw) == 0 {
		return false
	}
	if raw[0] == '[' && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return h.readWords(raw, commands) || h.readList(list, commands, depth)
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	m = lowered(m)
	for _, key := range wrappers {
		if inner := m[key]; len(inner) > 0 && (inner[0] == '{' || inner[0] == '[') && h.read(inner, commands, depth+1) {
			return true
		}
	}
	if inner := m["params"]; string(m["method"]) == `"tools/call"` && len(inner) > 0 && inner[0] == '{' && h.read(inner, commands, depth+1) {
		return true // JSON-RPC
	}
	return h.readNamed(raw, m, commands)
}

// lowered is m with its keys in small letters.
func lowered(m map[string]json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(m))
	for key, v := range m {
		if low := strings.ToLower(key); low == key || m[low] == nil {
			out[low] = v
		}
	}
	return out
}

// readWords reads ["grep","-n","x"].
func (h *found) readWords(raw json.RawMessage, commands []string) bool {
	words, ok := wordsOf(raw)
	if !ok || commands == nil || !has(commands, words[0]) {
		return false
	}
	h.take(toolName, []field{fieldOf("cmd", raw)}, commands)
	return true
}

// readList reads the calls of a list, up to the first that is not fine.
func (h *found) readList(list []json.RawMessage, commands []string, depth int) bool {
	for _, item := range list {
		var one found
		if len(h.calls) == 0 && saying.Match(item) {
			continue // words before the call
		}
		if !one.read(item, commands, depth+1) {
			return len(h.calls) > 0
		}
		if one.bad != fine {
			if len(h.calls) == 0 {
				h.bad = one.bad
			}
			return true
		}
		h.calls = append(h.calls, one.calls...)
	}
	return true
}

// saying is a piece of a message that is no call.
var saying = regexp.MustCompile(`^\{\s*"type"\s*:\s*"(?:text|thinking)"`)

// readNamed reads {"name":…,"arguments":…} and the constrained form.
func (h *found) readNamed(raw json.RawMessage, m map[string]json.RawMessage, commands []string) bool {
	var name string
	for _, key := range []string{"name", "tool", "tool_name", "recipient_name", "function", "action"} {
		if json.Unmarshal(m[key], &name) == nil && name != "" {
			break
		}
	}
	for _, key := range []string{"arguments", "parameters", "params", "args", "input", "action_input", "tool_input", "kwargs", "tool_args"} {
		args, ok := m[key]
		if name == "" || !ok {
			continue
		}
		fields, bad := decodeFields(string(args))
		if h.bad = bad; bad == fine {
			h.take(name, fields, commands)
		}
		return true
	}
	if tool := toolOf(name); name != "" && m["name"] != nil && tool != toolName && !has(commands, tool) && !shellTool[tool] {
		return false // a thing of that name, and what starts it: a setting
	}
	return h.readObject(raw, m, commands)
}

// readObject reads {"cmd":…,"args":…,"stdin":…}.
func (h *found) readObject(raw json.RawMessage, m map[string]json.RawMessage, commands []string) bool {
	if m["cmd"] == nil && (m["command"] == nil || slices.ContainsFunc(settings, func(key string) bool { return m[key] != nil })) {
		return false
	}
	fields, ok := readObject(string(raw))
	if !ok {
		return false
	}
	h.take(toolName, fields, commands)
	return true
}

// settings are keys of an object that says how a program is started by others.
var settings = []string{"label", "env", "image", "group", "description"}

// take reads a call with a name and fields.
func (h *found) take(name string, fields []field, commands []string) {
	call, bad := callOf(toolOf(name), fields, commands)
	if h.bad = bad; bad == fine {
		h.calls = append(h.calls, call)
	}
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
