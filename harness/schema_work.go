package harness

import (
	"encoding/json"
	"slices"
	"strings"
)

const (
	// maxReport is the longest report in bytes that is checked: a model writes a
	// tenth of it in one reply.
	maxReport = 64 << 10
	// maxWork is how many schemas may look at a value, or at what is in it: about a
	// second. Where two parts of a schema look at the same thing, and it is in itself,
	// each step down doubles the work.
	maxWork = 300_000
)

// A workWalk counts what it takes to check a value, without checking it.
type workWalk struct {
	root any
	left int
}

// bearable reports whether a value can be checked against the schema in bounded time.
func bearable(schema, value any) bool {
	w := workWalk{schema, maxWork}
	w.schema(schema, value)
	return w.left > 0
}

// schema counts what one schema looks at.
func (w *workWalk) schema(schema, value any) {
	s, ok := schema.(map[string]any)
	if w.left--; !ok || w.left <= 0 {
		return
	}
	if ref, ok := s["$ref"].(string); ok {
		to, _ := lookPointer(w.root, strings.TrimPrefix(ref, "#"))
		w.schema(to, value)
	}
	for _, key := range inPlace {
		w.all(s[key], value, slices.Contains(byName, key))
	}
	switch v := value.(type) {
	case map[string]any:
		w.object(s, v)
	case []any:
		for i, item := range v {
			if list, ok := s["prefixItems"].([]any); ok && i < len(list) {
				w.schema(list[i], item)
			}
			for _, key := range []string{"items", "additionalItems", "contains", "unevaluatedItems"} {
				w.schema(s[key], item)
			}
			if list, ok := s["items"].([]any); ok && i < len(list) {
				w.schema(list[i], item)
			}
		}
	}
}

// object counts what looks at the members of an object.
func (w *workWalk) object(s, v map[string]any) {
	named, _ := s["properties"].(map[string]any)
	for key, item := range v {
		if w.left <= 0 {
			return
		}
		w.schema(named[key], item)
		w.all(s["patternProperties"], item, true)
		w.schema(s["additionalProperties"], item)
		w.schema(s["unevaluatedProperties"], item)
		w.schema(s["propertyNames"], key)
	}
}

// all counts for a schema, a list of them or, with named, those by name.
func (w *workWalk) all(schemas, value any, named bool) {
	list, _ := schemas.([]any)
	for _, s := range list {
		w.schema(s, value)
	}
	some, ok := schemas.(map[string]any)
	switch {
	case ok && !named:
		w.schema(some, value)
	case ok:
		for _, s := range some {
			w.schema(s, value)
		}
	}
}

// twice is a name that an object in a report has two times, "" if there is none: one
// reader takes the first value and another the last, and only the last was checked.
func twice(report string) string {
	d := json.NewDecoder(strings.NewReader(report))
	var open []map[string]bool // names of the objects around; nil is a list
	name := false              // the next string is one
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
		case string:
			if name {
				if names := open[len(open)-1]; names[t] {
					return t
				} else {
					names[t] = true
				}
				name = false
				continue
			}
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}
