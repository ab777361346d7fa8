package llm

import (
	"encoding/json"
	"regexp"
	"slices"
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

// decodeFields reads the arguments of a call: an object, a list of words, or a
// string (once or twice encoded) that holds one of them or the line itself.
func decodeFields(s string) (fields []field, bad verdict) {
	fields, _, rest, bad := nextFields(s)
	if bad == fine && rest != "" {
		bad = garbled
	}
	return fields, bad
}

// nextFields reads the arguments that s begins with, and returns what stands
// behind them if that are more. The form is empty if it is the proper one.
func nextFields(s string) (fields []field, form, rest string, bad verdict) {
	for n := range 3 {
		s = trim(s)
		if body, ok := strings.CutPrefix(s, "```"); ok {
			s, form = trim(strings.TrimSuffix(strings.TrimPrefix(body, "json"), "```")), "fenced arguments"
		}
		if s == "" || s == "null" {
			return nil, form, "", fine // a call without arguments
		}
		raw, size, strict, bad := value(s)
		if bad != fine {
			if n > 0 && !strings.ContainsAny(s[:1], "{[\"") {
				return []field{{"args", s, kindString}}, form, "", fine // a string that is the line
			}
			return nil, form, "", bad
		}
		rest = strings.TrimLeft(s[size:], closers)
		if !strict || size+len(rest) < len(s) {
			form = "arguments that are not quite JSON"
		}
		switch {
		case rest != "" && rest[0] != '{':
			return nil, form, "", garbled
		case raw[0] == '{':
			fields, ok := readObject(string(raw))
			return fields, form, rest, verdictOf(ok)
		case raw[0] == '[':
			f := fieldOf("args", raw)
			return []field{f}, "list of words", rest, verdictOf(f.kind == kindList)
		}
		var inner string
		if json.Unmarshal(raw, &inner) != nil {
			return nil, form, "", garbled
		}
		s, form = inner, "double-encoded arguments"
	}
	return nil, form, "", garbled
}

// closers are what may stand too much behind a value that is complete.
const closers = "}]); \t\r\n"

func verdictOf(ok bool) verdict {
	if ok {
		return fine
	}
	return garbled
}

// readObject reads all of s, which is JSON, as one object.
func readObject(s string) ([]field, bool) {
	d := json.NewDecoder(strings.NewReader(s))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
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
	key = strings.ToLower(key)
	switch {
	case json.Unmarshal(raw, &s) == nil && raw[0] == '"':
		return field{key, s, kindString}
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return field{key, string(raw), kindNumber}
	case string(raw) == "true":
		return field{key, "true", kindTrue}
	}
	if words, ok := wordsOf(raw); ok {
		for i, w := range words {
			words[i] = quote(w)
		}
		return field{key, strings.Join(words, " "), kindList}
	}
	return field{key, string(raw), kindOther}
}

// wordsOf reads a list of strings and numbers.
func wordsOf(raw json.RawMessage) (words []string, ok bool) {
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return nil, false
	}
	for _, item := range items {
		f := field{kind: kindOther}
		if item[0] != '[' {
			f = fieldOf("", item)
		}
		if f.kind != kindString && f.kind != kindNumber {
			return nil, false
		}
		words = append(words, f.value)
	}
	return words, true
}

// modules are what templates write before the name of a tool.
var modules = regexp.MustCompile(`^(?:(?:functions|default_api|tools?)\.|[\w-]+/)`)

// toolOf is the name of a tool without what templates and channels hang on it:
// "functions.act", "act:0", "act<|channel|>commentary".
func toolOf(name string) string {
	name = modules.ReplaceAllString(strings.Trim(name, " \t\r\n\"'"), "")
	if i := strings.IndexFunc(name, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}); i >= 0 {
		name = name[:i]
	}
	if strings.EqualFold(name, toolName) {
		return toolName
	}
	return name
}

// The names under which models give the two arguments, and the file of a command
// that stands alone in cmd.
var (
	cmdKeys   = map[string]bool{"cmd": true, "command": true, "line": true, "command_line": true}
	argsKeys  = map[string]bool{"args": true, "arguments": true, "argv": true}
	stdinKeys = map[string]bool{"stdin": true, "content": true, "contents": true, "input": true, "text": true, "body": true, "file_text": true, "code": true}
	pathKeys  = map[string]bool{"path": true, "file": true, "filename": true, "file_path": true, "filepath": true}
	shellTool = map[string]bool{
		"bash": true, "shell": true, "run": true, "exec": true, "execute": true, "run_command": true, "execute_command": true, "terminal": true,
		"execute_bash": true, "local_shell": true, "exec_command": true, "shell_command": true, "container.exec": true,
	}
)

// callOf makes a call of a tool's name and its arguments. A wrong name that is
// a command is the command, with its arguments as words.
func callOf(name string, fields []field, commands []string) (c window.Call, bad verdict) {
	switch {
	case name == toolName, shellTool[name] && has(commands, "sh") && !has(commands, name):
		c, bad = actCall(fields, commands, 0)
	case has(commands, name):
		c, bad = commandCall(name, fields)
	default:
		bad = unknown
	}
	if bad == fine && strings.ContainsRune(c.Cmd, 0) {
		bad = nul
	}
	if bad != fine {
		return window.Call{}, bad
	}
	return c, fine
}

// actCall reads the arguments of act; unknown ones are ignored. A call of act
// within them is that call.
func actCall(fields []field, commands []string, depth int) (c window.Call, bad verdict) {
	var args, path string
	for _, f := range fields {
		nested := f.kind == kindOther && f.value[0] == '{' && (cmdKeys[f.key] || argsKeys[f.key])
		switch {
		case nested && depth < maxNest:
			if inner, ok := readObject(f.value); ok {
				return actCall(inner, commands, depth+1)
			}
		case f.key == "stdin" && f.kind == kindList:
			return c, odd
		case stdinKeys[f.key] && (f.key == "stdin" || c.Stdin == ""):
			c.Stdin = f.text()
		case f.kind == kindOther:
		case cmdKeys[f.key]:
			c.Cmd = f.value
		case argsKeys[f.key]:
			args = f.value
		case pathKeys[f.key]:
			path = f.value
		}
	}
	if word := strings.TrimSpace(c.Cmd); has(commands, word) && hasNames[word] && strings.HasPrefix(strings.TrimSpace(args), "{") && depth < maxNest {
		if inner, ok := readObject(args); ok && len(inner) > 0 { // the arguments of that command by name
			return commandCall(word, append([]field{{"stdin", c.Stdin, kindString}}, inner...))
		}
	}
	c.Cmd = line(c.Cmd, onceMore(c.Cmd, args))
	if path != "" && has(commands, strings.TrimSpace(c.Cmd)) {
		c.Cmd = line(c.Cmd, quote(path))
	}
	return unwrap(c, commands, depth)
}

// onceMore takes off arguments the name of the command that they begin with.
func onceMore(cmd, args string) string {
	rest, ok := strings.CutPrefix(args, cmd+" ")
	if ok && (cmd == "read" || holdsText[cmd]) {
		return rest
	}
	return args
}

// hasNames are the commands whose arguments other tools name. The report of a done
// may be an object of its own.
var hasNames = map[string]bool{"sh": true, "read": true, "write": true, "append": true, "edit": true, "grep": true, "find": true}

// holdsText are the commands that take a file and the text for it.
var holdsText = map[string]bool{"write": true, "append": true}

// text is f as the content of a file. An object is its JSON; null and false are
// none.
func (f field) text() string {
	if f.kind == kindOther && f.value[0] != '{' {
		return ""
	}
	return f.value
}

// unwrap takes a call of act out of the command that holds it as text.
func unwrap(c window.Call, commands []string, depth int) (window.Call, verdict) {
	s := strings.TrimSpace(c.Cmd)
	rest, ok := strings.CutPrefix(s, toolName)
	switch {
	case s == "":
		return c, mute
	case strings.HasPrefix(s, "<tool_call>"), strings.HasPrefix(s, "<function="):
		return c, garbled // no shell has such a line
	}
	if ok && strings.HasPrefix(rest, " ") && has(commands, firstWord(rest)) {
		c.Cmd = strings.TrimSpace(rest)
		return c, fine
	}
	var fields []field
	if s[0] == '{' && json.Valid([]byte(s)) {
		fields, _ = readObject(s)
	} else if args, ok := strings.CutPrefix(rest, "("); ok && given.MatchString(args) {
		if all, n, bad := keywords(args); bad == fine && n == len(args) {
			fields = all
		}
	}
	for _, f := range fields {
		if (cmdKeys[f.key] || argsKeys[f.key]) && depth < maxNest {
			return actCall(append([]field{{"stdin", c.Stdin, kindString}}, fields...), commands, depth+1)
		}
	}
	return c, fine
}

// commandCall makes a command line of arguments that were given by name.
func commandCall(name string, fields []field) (window.Call, verdict) {
	c := window.Call{Cmd: name}
	lined := slices.ContainsFunc(fields, func(f field) bool { return cmdKeys[f.key] && f.kind == kindString })
	filed := slices.ContainsFunc(fields, func(f field) bool { return pathKeys[f.key] })
	for _, f := range fields {
		switch {
		case holdsText[name] && filed && !pathKeys[f.key] && !stdinKeys[f.key] && f.kind != kindList: // how to write it
		case name == "sh" && lined && !cmdKeys[f.key] && !argsKeys[f.key] && !stdinKeys[f.key]: // how long it may take
		case f.kind == kindOther && (f.value == "null" || f.value == "false" || f.value == "{}"):
		case stdinKeys[f.key] && f.kind == kindList:
			return c, odd
		case stdinKeys[f.key]:
			c.Stdin = f.text()
		case f.kind == kindOther:
			return c, garbled
		case cmdKeys[f.key] && firstWord(f.value) == name:
			c.Cmd = f.value
		case cmdKeys[f.key], argsKeys[f.key], f.kind == kindList:
			c.Cmd = line(c.Cmd, f.value)
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
