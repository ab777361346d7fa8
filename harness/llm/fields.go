package llm

import (
	"encoding/json"
	"regexp"
	"strings"

	window "tether/context"
)

// A field is one argument of a call, in the order in which the model wrote
// them: the order is that of the words of a command line.
type field struct {
	key, value string
	kind       kind
}

// A kind says what a field's value was.
type kind int

const (
	kindString kind = iota
	kindNumber      // value is as it was written
	kindTrue
	kindList  // of words; value is them, quoted
	kindOther // an object, false or null; value is the JSON text
)

// decodeFields reads the arguments of a call: an object, or a string (once or
// twice encoded) that holds one.
func decodeFields(s string) (fields []field, encoded, ok bool) {
	for range 3 {
		s = strings.TrimSpace(s)
		if s == "" {
			return nil, encoded, true // a call without arguments
		}
		if s[0] == '{' {
			fields, ok = readObject(s)
			return fields, encoded, ok
		}
		var inner string
		if json.Unmarshal([]byte(s), &inner) != nil {
			return nil, false, false
		}
		s, encoded = inner, true
	}
	return nil, false, false
}

// readObject reads all of s as one object.
func readObject(s string) ([]field, bool) {
	if !json.Valid([]byte(s)) {
		if s = escapeControls(s); !json.Valid([]byte(s)) {
			return nil, false
		}
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	var fields []field
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var raw json.RawMessage
		if err != nil || !ok || d.Decode(&raw) != nil {
			return nil, false
		}
		fields = append(fields, fieldOf(name, raw))
	}
	return fields, true
}

// fieldOf reads one value.
func fieldOf(key string, raw json.RawMessage) field {
	var s string
	var words []string
	switch {
	case json.Unmarshal(raw, &s) == nil && raw[0] == '"':
		return field{key, s, kindString}
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return field{key, string(raw), kindNumber}
	case string(raw) == "true":
		return field{key, "true", kindTrue}
	case raw[0] == '[' && json.Unmarshal(raw, &words) == nil:
		for i, w := range words {
			words[i] = quote(w)
		}
		return field{key, strings.Join(words, " "), kindList}
	}
	return field{key, string(raw), kindOther}
}

// escapeControls escapes the line breaks and tabs that some models leave bare
// inside strings. It adds nothing that could end a string or an object.
func escapeControls(s string) string {
	var b strings.Builder
	inside, escaped := false, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case inside && c == '\n':
			b.WriteString(`\n`)
		case inside && c == '\t':
			b.WriteString(`\t`)
		case inside && c == '\r':
			b.WriteString(`\r`)
		default:
			b.WriteByte(c)
		}
		if c == '"' && !escaped {
			inside = !inside
		}
		escaped = inside && c == '\\' && !escaped
	}
	return b.String()
}

// toolOf is the name of a tool without what templates and channels hang on it:
// "functions.act", "act:0", "act<|channel|>commentary".
func toolOf(name string) string {
	name = strings.TrimPrefix(strings.TrimSpace(name), "functions.")
	if i := strings.IndexFunc(name, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}); i >= 0 {
		name = name[:i]
	}
	return name
}

// The names under which models give the two arguments.
var (
	cmdKeys   = map[string]bool{"cmd": true, "command": true, "line": true, "command_line": true}
	stdinKeys = map[string]bool{"stdin": true, "content": true, "contents": true, "input": true, "text": true, "body": true, "file_text": true, "code": true}
	shellTool = map[string]bool{"bash": true, "shell": true, "run": true, "exec": true, "execute": true, "run_command": true, "execute_command": true, "terminal": true}
)

// callOf makes a call of a tool's name and its arguments. A wrong name that is
// a command is the command, with its arguments as words.
func callOf(name string, fields []field, commands []string) (window.Call, verdict) {
	switch {
	case name == toolName:
		return actCall(fields)
	case has(commands, name):
		return commandCall(name, fields)
	case shellTool[name] && has(commands, "sh"):
		return actCall(fields)
	}
	return window.Call{}, unknown
}

// actCall reads the arguments of act; unknown ones are ignored.
func actCall(fields []field) (window.Call, verdict) {
	var c window.Call
	var args string
	for _, f := range fields {
		switch {
		case f.kind == kindOther:
		case cmdKeys[f.key]:
			c.Cmd = f.value
		case f.key == "args" || f.key == "arguments":
			args = f.value
		case f.key == "stdin" || f.key == "input":
			c.Stdin = f.value
		}
	}
	c.Cmd = line(c.Cmd, args)
	if strings.TrimSpace(c.Cmd) == "" {
		return window.Call{}, broken
	}
	return c, fine
}

// commandCall makes a command line of arguments that were given by name.
func commandCall(name string, fields []field) (window.Call, verdict) {
	c := window.Call{Cmd: name}
	for _, f := range fields {
		switch {
		case f.kind == kindOther && (f.value == "null" || f.value == "false" || f.value == "{}"):
		case f.kind == kindOther:
			return window.Call{}, broken
		case cmdKeys[f.key] && firstWord(f.value) == name:
			c.Cmd = f.value
		case cmdKeys[f.key], f.key == "args", f.key == "arguments", f.kind == kindList:
			c.Cmd = line(c.Cmd, f.value)
		case stdinKeys[f.key]:
			c.Stdin = f.value
		case f.kind == kindTrue:
			c.Cmd += " --" + f.key
		default:
			c.Cmd = line(c.Cmd, quote(f.value))
		}
	}
	return c, fine
}

// plainWord needs no quotes on a command line.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./*?-]+$`)

// quote quotes a word of a command line.
func quote(w string) string {
	if plainWord.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
