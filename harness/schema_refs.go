package harness

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkRefs refuses a schema with a reference that leads out of it, or in place
// back to itself: to check anything against that would never end.
func checkRefs(root any) error {
	w := refWalk{root: root, open: map[string]bool{}, good: map[string]bool{}}
	return w.schema("", root)
}

// A refWalk follows the references of a schema.
type refWalk struct {
	root any
	open map[string]bool // pointers of the schemas that are being looked at
	good map[string]bool // and of those that lead nowhere wrong
}

// Keywords with schemas by name, and keywords whose values are data.
var (
	byName = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	asData = []string{"const", "enum", "default", "examples", "required", "dependentRequired", "type", "$vocabulary"}
)

// kinds are the types that a value can have.
var kinds = []any{"null", "boolean", "object", "array", "number", "integer", "string"}

// schema looks at a schema and at all in it.
func (w *refWalk) schema(at string, value any) error {
	s, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	names, list := s["type"].([]any)
	if !list && s["type"] != nil {
		names = []any{s["type"]}
	}
	for _, name := range names {
		if !slices.Contains(kinds, name) {
			return fmt.Errorf("it is no JSON Schema (there is no type %v)", name)
		}
	}
	if err := w.place(at, s); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if slices.Contains(asData, key) {
			continue
		}
		if err := w.inside(at+"/"+escapePointer(key), s[key], slices.Contains(byName, key)); err != nil {
			return err
		}
	}
	return nil
}

// inside looks at what a keyword has: a schema, a list of them or, with named,
// those by name.
func (w *refWalk) inside(at string, value any, named bool) error {
	list, _ := value.([]any)
	for i, item := range list {
		if err := w.schema(fmt.Sprintf("%s/%d", at, i), item); err != nil {
			return err
		}
	}
	s, ok := value.(map[string]any)
	if !ok || !named {
		return w.schema(at, value)
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if err := w.schema(at+"/"+escapePointer(key), s[key]); err != nil {
			return err
		}
	}
	return nil
}

// inPlace are the keywords whose schemas look at the same value as their own.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// place looks at what is checked of the same value as the schema at a pointer.
func (w *refWalk) place(at string, schema map[string]any) error {
	switch {
	case w.open[at]:
		return fmt.Errorf("it refers to itself without an end at #%s", at)
	case w.good[at]:
		return nil
	}
	w.open[at] = true
	defer func() { delete(w.open, at); w.good[at] = true }()
	if ref, ok := schema["$ref"].(string); ok {
		pointer, local := strings.CutPrefix(ref, "#")
		to, found := lookPointer(w.root, pointer)
		if !local || !found {
			return fmt.Errorf("it refers to %q, which is not in it; write such as #/$defs/name", ref)
		}
		if next, ok := to.(map[string]any); ok {
			if err := w.place(pointer, next); err != nil {
				return err
			}
		}
	}
	if _, dynamic := schema["$dynamicRef"]; dynamic {
		return errors.New("it has a $dynamicRef, which is not read; write $ref")
	}
	for _, key := range inPlace {
		if err := w.parts(at+"/"+key, schema[key], key == "dependentSchemas" || key == "dependencies"); err != nil {
			return err
		}
	}
	return nil
}

// parts looks at a schema, a list of them or, with named, those by name.
func (w *refWalk) parts(at string, value any, named bool) error {
	list, _ := value.([]any)
	for i, item := range list {
		if s, ok := item.(map[string]any); ok {
			if err := w.place(fmt.Sprintf("%s/%d", at, i), s); err != nil {
				return err
			}
		}
	}
	s, ok := value.(map[string]any)
	switch {
	case !ok:
		return nil
	case !named:
		return w.place(at, s)
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if err := w.parts(at+"/"+escapePointer(key), s[key], false); err != nil {
			return err
		}
	}
	return nil
}

// escapePointer writes a key as it stands in a JSON pointer.
func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// lookPointer follows a JSON pointer.
func lookPointer(value any, pointer string) (any, bool) {
	if pointer == "" {
		return value, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	for key := range strings.SplitSeq(pointer[1:], "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != key {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}
