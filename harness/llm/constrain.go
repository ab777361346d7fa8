package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	window "tether/context"
)

// schema compiles a grant to the JSON schema of one call. The first words are
// an enum, and no pattern constrains the rest: llama.cpp does not escape a
// pattern's characters for JSON, so that a quote would break the reply.
func schema(commands []string) json.RawMessage {
	var texts, others []string
	for _, c := range commands {
		if has(takeText, c) {
			texts = append(texts, c)
		} else {
			others = append(others, c)
		}
	}
	line := callSchema(others, anySchema, anySchema, "")
	text := callSchema(texts, nameSchema, textSchema, `,"stdin"`)
	switch {
	case len(texts) == 0:
		return json.RawMessage(line)
	case len(others) == 0:
		return json.RawMessage(text)
	}
	return json.RawMessage(`{"anyOf":[` + line + "," + text + "]}")
}

// takeText are the commands that do nothing without text in stdin.
var takeText = []string{"write", "append"}

// The schemas of a line, of the text of a file and of its name. A model that puts
// the text where the name belongs finds no end there: 2,000 tokens of it were seen
// (docs/results.md). So a name is bound, and the text goes where it is expected.
const (
	anySchema  = `{"type":"string"}`
	textSchema = `{"type":"string","minLength":1}`
	nameSchema = `{"type":"string","maxLength":200}`
)

// callSchema is the schema of a call of one of commands.
func callSchema(commands []string, args, stdin, required string) string {
	return `{"type":"object","properties":{"cmd":{"type":"string","enum":` + compact(commands) +
		`},"args":` + args + `,"stdin":` + stdin + `},"required":["cmd","args"` + required + `],"additionalProperties":false}`
}

// unshelled takes sh off a line that begins with a command of tether: it is that
// command that runs, and the history teaches its form.
func unshelled(line string, commands []string) string {
	rest, ok := strings.CutPrefix(line, "sh ")
	if word := firstWord(rest); ok && has(commands, word) && has([]string{"read", "write", "append", "edit", "mem", "skill", "done", "help"}, word) {
		return rest
	}
	return line
}

// words are the first words that the schema allows: what was granted, without
// what the harness left out of this request. Something always remains.
func (p prompt) words() []string {
	var all []string
	for _, c := range p.Commands {
		if !has(p.without, c) {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return p.Commands
	}
	return all
}

// parameters is the schema of the tool act. Every byte of it is paid in every
// request, so it says no more than the names do.
const parameters = `{"type":"object","properties":{"cmd":{"type":"string"},"stdin":{"type":"string"}},"required":["cmd"]}`

// toolName and toolAbout name the only tool.
const (
	toolName  = "act"
	toolAbout = "Run a command line"
)

// An object is a call in the constrained form. The order of the fields is the
// order in which the model writes them.
type object struct {
	Cmd   string `json:"cmd"`
	Args  string `json:"args"`
	Stdin string `json:"stdin,omitempty"`
}

// render writes call as the model would have: the history must look like what
// the schema lets it write, or it imitates something that it cannot write.
func render(call window.Call, commands []string) string {
	first, rest, _ := strings.Cut(call.Cmd, " ")
	o := object{Cmd: first, Args: rest, Stdin: call.Stdin}
	if !has(commands, first) && has(commands, "sh") {
		o.Cmd, o.Args = "sh", call.Cmd
	}
	return compact(o)
}

// line joins a call in the constrained form to the command line that it means.
func line(cmd, args string) string {
	switch {
	case strings.TrimSpace(args) == "":
		return cmd
	case strings.TrimSpace(cmd) == "":
		return args
	}
	return cmd + " " + args
}

// compact encodes v without blanks and with < > & as they are: models read it.
func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("llm: " + err.Error()) // strings and slices of them always encode
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// has reports whether words holds word.
func has(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

// A line of the wire, before the protocol gives it its own types.
type spoken struct {
	role    window.Role
	content string
	call    *window.Call // as a tool call, in the native form
	id      string
	thought string // of the message, as it came
}

// speak turns the window into what is said in the form of p. Where no tool is
// offered the system message tells the form of a reply.
func (p prompt) speak() []spoken {
	said := make([]spoken, 0, len(p.messages))
	open := "" // the tool call that waits for its result
	for i, m := range p.messages {
		s := spoken{role: m.Role, content: m.Text, id: m.ID, thought: m.Thought}
		switch {
		case m.Role == window.RoleUser && i > 1:
			// In the middle of a task a user message costs most of the prompt cache on
			// many templates and is refused by some: it comes as results do.
			last := &said[len(said)-1]
			if s.role, s.id = p.speaker(*last), ""; s.role == last.role && (s.role == window.RoleUser || p.Result == alternate) {
				last.content += "\n\n" + s.content // and others insist that the roles alternate
				continue
			}
		case m.Role == window.RoleSystem && p.form != native && p.form != prose && p.form != fenced:
			s.content += "\n" + window.Text("reply_form", nil)
		case m.Role == window.RoleTool && (m.ID != open || m.ID == ""):
			s.role, s.id = p.speaker(said[len(said)-1]), ""
		case m.Call != nil && p.form == native:
			s.call, open = m.Call, m.ID
		case m.Call != nil:
			s.content, s.id = p.written(m), ""
		}
		said = append(said, s)
	}
	for i := range said {
		if p.IDs == "nine" && said[i].id != "" {
			said[i].id = nine(said[i].id)
		}
	}
	return said
}

// speaker is who says, behind the message last, what answers no tool call.
func (p prompt) speaker(last spoken) window.Role {
	switch {
	case p.Result != alternate:
		return p.Result
	case last.role == window.RoleTool || last.call != nil:
		return window.RoleTool
	}
	return window.RoleUser
}

// written is an assistant message that acts, as text.
func (p prompt) written(m window.Message) string {
	if p.form == fenced {
		return asFence(*m.Call)
	}
	call := render(*m.Call, p.Commands)
	if m.Text == "" || p.form == constrained {
		return call // the schema leaves no room for words around a call
	}
	return m.Text + "\n" + call
}
