package llm

import (
	"encoding/json"
	"strings"

	window "tether/context"
)

// objects reads the JSON values that text begins with, one after the other,
// as calls. It returns nothing if the first of them has not the form of a
// call; n is the length of those that were read.
func objects(text string, commands []string) (hits []found, n int) {
	for n < len(text) {
		start := n + len(text[n:]) - len(strings.TrimLeft(text[n:], " \t\r\n,;"))
		if start >= len(text) || text[start] != '{' && text[start] != '[' {
			return hits, n
		}
		value, size := value(text[start:])
		if size == 0 { // it ends too early, or is no JSON
			if shaped(text[start:]) {
				hits = append(hits, found{start: start, end: len(text), bad: broken})
			}
			return hits, len(text)
		}
		h := found{start: start, end: start + size}
		if !h.read(value, commands, 0) {
			return hits, n
		}
		hits, n = append(hits, h), h.end
	}
	return hits, n
}

// value cuts the first JSON value off text; line breaks that were left bare in
// its strings are escaped in it.
func value(text string) (json.RawMessage, int) {
	var raw json.RawMessage
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&raw) == nil {
		return raw, int(d.InputOffset())
	}
	n := balanced(text)
	if fixed := escapeControls(text[:n]); json.Valid([]byte(fixed)) {
		return json.RawMessage(fixed), n
	}
	return nil, 0
}

// balanced is the length of the bracketed text that text begins with; 0 if it
// is not closed.
func balanced(text string) int {
	depth, inside, escaped := 0, false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// shaped reports whether a text that is no JSON was meant as a call.
func shaped(text string) bool { return callish.MatchString(text) }

// maxNest bounds how deep a call may be wrapped.
const maxNest = 4

// read reads a JSON value as one call or as a list of calls. It returns false
// if the value has not the form of a call: then it is text.
func (h *found) read(raw json.RawMessage, commands []string, depth int) bool {
	raw = json.RawMessage(strings.TrimSpace(string(raw)))
	var list []json.RawMessage
	if depth > maxNest || len(raw) == 0 {
		return false
	}
	if raw[0] == '[' && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return h.readList(list, commands, depth)
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	if calls, ok := m["tool_calls"]; ok {
		return h.read(calls, commands, depth+1)
	}
	if f, ok := m["function"]; ok && strings.HasPrefix(string(f), "{") {
		return h.read(f, commands, depth+1)
	}
	return h.readNamed(raw, m, commands)
}

// readList reads the calls of a list, up to the first that is not fine.
func (h *found) readList(list []json.RawMessage, commands []string, depth int) bool {
	for _, item := range list {
		var one found
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

// readNamed reads {"name":…,"arguments":…} and the constrained form.
func (h *found) readNamed(raw json.RawMessage, m map[string]json.RawMessage, commands []string) bool {
	var name string
	for _, key := range []string{"name", "tool", "tool_name", "function", "action"} {
		if json.Unmarshal(m[key], &name) == nil && name != "" {
			break
		}
	}
	for _, key := range []string{"arguments", "parameters", "args", "input", "action_input"} {
		args, ok := m[key]
		if name == "" || !ok {
			continue
		}
		fields, _, ok := decodeFields(string(args))
		if !ok {
			h.bad = broken
			return true
		}
		h.take(name, fields, commands)
		return true
	}
	return h.readObject(raw, m, commands)
}

// readObject reads {"cmd":…,"args":…,"stdin":…}.
func (h *found) readObject(raw json.RawMessage, m map[string]json.RawMessage, commands []string) bool {
	var cmd string
	if json.Unmarshal(m["cmd"], &cmd) != nil && json.Unmarshal(m["command"], &cmd) != nil {
		return false
	}
	fields, ok := readObject(string(raw))
	if !ok {
		return false
	}
	call, bad := actCall(fields)
	if h.bad = bad; bad == fine {
		h.calls = []window.Call{call}
	}
	return true
}
