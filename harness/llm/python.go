package llm

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	// python is the beginning of a call on a line of its own, with what may stand
	// before it: print(…), a list of calls, a name that it is assigned to.
	python = regexp.MustCompile(`(?m)(?:^|<\|python_tag\|>|<\|tool_call_start\|>)[ \t]*(?:(?:(?:const|let|var)[ \t]+)?[A-Za-z_]\w*[ \t]*=[ \t]*)?(?:await[ \t]+)?(?:print\()?\[?[ \t]*([A-Za-z_][\w.]*)\(`)
	// pythonNext is the beginning of a call behind another one.
	pythonNext = regexp.MustCompile(`^[ \t]*[;,]\s*([A-Za-z_][\w.]*)\(`)
	// given is what an argument begins with; in a sentence, and where a function
	// is explained, it is something else.
	given = regexp.MustCompile(`^\s*(?:\*\*|[A-Za-z_]\w*\s*=|[rRbBuUfF]?["'{\[])`)
	// keyword is the beginning of an argument that is given by name.
	keyword = regexp.MustCompile(`^([A-Za-z_]\w*)\s*=\s*`)
)

// findPython finds act(cmd="…", stdin="…").
func findPython(text string, commands []string) []found {
	return scan(text, python, readPython, commands)
}

// readPython reads act(cmd="…", stdin="…") on a line of its own, and those that
// stand behind it in a list.
func readPython(text string, m []int, commands []string) (found, bool) {
	all, ok := pythonCall(text, m, commands)
	for last := all; ok && last.bad == fine; {
		next := pythonNext.FindStringSubmatchIndex(text[all.end:])
		if next == nil {
			break
		}
		if last, ok = pythonCall(text, []int{all.end, all.end + next[1], all.end + next[2], all.end + next[3]}, commands); ok {
			all.calls, all.end = append(all.calls, last.calls...), last.end
		}
	}
	return all, ok || len(all.calls) > 0
}

// pythonCall reads the call whose name and parenthesis m has found. It returns
// false if that is no call: "read (the file)".
func pythonCall(text string, m []int, commands []string) (found, bool) {
	name := toolOf(strings.TrimSuffix(text[m[2]:m[3]], ".call"))
	if name != toolName && !has(commands, name) || !given.MatchString(text[m[1]:]) && !strings.HasPrefix(text[m[1]:], ")") {
		return found{}, false
	}
	h := found{start: m[0], end: len(text)}
	fields, n, bad := keywords(text[m[1]:])
	if h.bad = bad; bad == fine {
		h.end = m[1] + n
		h.take(name, fields, commands)
	}
	return h, bad == fine || name == toolName
}

// keywords reads the arguments of a Python call up to its closing parenthesis:
// by name or by place (the first one is cmd, the second stdin), or a dictionary
// of them. n is the length read, the parenthesis included.
func keywords(text string) (fields []field, n int, bad verdict) {
	r := lenient{text: text, python: true}
	for r.more() {
		if r.take(')') {
			return fields, r.at, fine
		}
		key := ""
		if m := keyword.FindStringSubmatch(r.text[r.at:]); m != nil {
			key, r.at = m[1], r.at+len(m[0])
		} else if strings.HasPrefix(r.text[r.at:], "**") {
			r.at += 2
		}
		r.out.Reset()
		if !r.value() || !r.more() || r.text[r.at] != ')' && !r.take(',') {
			return nil, 0, r.verdict()
		}
		f := fieldOf(key, json.RawMessage(r.out.String()))
		if key == "" && strings.HasPrefix(f.value, "{") && f.kind == kindOther {
			more, _ := readObject(f.value)
			fields = append(fields, more...)
			continue
		}
		fields = append(fields, placed(f, len(fields)))
	}
	return nil, 0, broken
}

// placed gives a name to an argument without one, by the place where it stands.
func placed(f field, place int) field {
	switch {
	case f.key != "":
	case place == 0:
		f.key = "cmd"
	case place == 1 && f.kind == kindString:
		f.key = "stdin"
	default:
		f.key = "args"
	}
	return f
}

// pythonList is a list of calls, which is no list of JSON.
var pythonList = regexp.MustCompile(`^\[\s*[A-Za-z_][\w.]*\(`)
