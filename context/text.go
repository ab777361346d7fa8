package window

import (
	"embed"
	"strings"
	"text/template"
)

//go:embed text/*.md
var files embed.FS

// texts holds what the model reads, help aside: one file a text, so that a
// change of wording is a change of one file and can be measured alone.
var texts = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "text/*.md"))

// Text is the text NAME.md of directory text, with the values of data filled
// in. It panics if there is no such text or data lacks a value: both are
// mistakes of the program that its first test shows.
func Text(name string, data any) string {
	var b strings.Builder
	if err := texts.ExecuteTemplate(&b, name+".md", data); err != nil {
		panic("window: text " + name + ": " + err.Error())
	}
	return strings.TrimRight(b.String(), "\n")
}

// Framing is what the system prompt is made of.
type Framing struct {
	Commands string // act.Shell.List: one line a command
	Skills   string // one line for the whole catalogue, or empty
}

// System is the system prompt, the same for a whole session.
func System(f Framing) string {
	f.Commands = strings.TrimRight(f.Commands, "\n")
	return Text("system", f)
}
