package window

import (
	"embed"
	"slices"
	"strings"
)

//go:embed text/*.md
var files embed.FS

// texts holds what the model reads, help aside: one file a text, so that a
// change of wording is a change of one file and can be measured alone.
var texts = load()

func load() map[string]string {
	all := map[string]string{}
	entries, err := files.ReadDir("text")
	if err != nil {
		panic("window: " + err.Error())
	}
	for _, e := range entries {
		data, err := files.ReadFile("text/" + e.Name())
		if err != nil {
			panic("window: " + err.Error())
		}
		all[strings.TrimSuffix(e.Name(), ".md")] = strings.TrimRight(string(data), "\n")
	}
	return all
}

// Has reports whether there is a text called name.
func Has(name string) bool { return texts[name] != "" }

// Values are what a text is filled in with, by name.
type Values map[string]string

// If is a value that is there or not, as a condition says.
func If(there bool) string {
	if there {
		return "yes"
	}
	return ""
}

// Text is the text NAME.md of directory text, with values filled in. In the
// file {{Name}} stands for a value, {{?Name}}…{{/}} is a part that is there if
// the value is not empty, and {{!Name}}…{{/}} one that is there if it is. Parts do
// not nest. It panics if there is no such text or a value is not given: both are
// mistakes of the program that its first test shows.
//
// It is not text/template, because a program in which that is linked keeps every
// exported method of every type: 1.8 MB of this one.
func Text(name string, values Values) string {
	text, found := texts[name]
	if !found {
		panic("window: no text " + name)
	}
	var b strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "{{")
		b.WriteString(before)
		if !found {
			break
		}
		mark, after, found := strings.Cut(rest, "}}")
		if !found {
			panic("window: text " + name + ": {{ without }}")
		}
		text = after
		if mark == "/" {
			continue
		}
		value, found := values[strings.TrimLeft(mark, "?!")]
		switch {
		case !found:
			panic("window: text " + name + ": no value for " + mark)
		case mark[0] != '?' && mark[0] != '!':
			b.WriteString(value)
		case (mark[0] == '?') != (value != ""):
			_, text, _ = strings.Cut(text, "{{/}}")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// Framing is what the system prompt is made of.
type Framing struct {
	Commands string   // act.Shell.List: one line a command
	Names    []string // of the commands
	Skills   string   // one line for the whole catalogue, or empty
	Fenced   bool     // the model answers with a block of shell, and gets one line for all commands
}

// shell are the commands that a block of shell does without, or that its prompt tells
// in other words.
var shell = []string{"sh", "write", "append", "done"}

// System is the system prompt, the same for a whole session.
func System(f Framing) string {
	if f.Fenced {
		names := slices.DeleteFunc(slices.Clone(f.Names), func(name string) bool { return slices.Contains(shell, name) })
		return Text("system_fenced", Values{"Commands": strings.Join(names, ", "), "Skills": f.Skills})
	}
	return Text("system", Values{"Commands": strings.TrimRight(f.Commands, "\n"), "Skills": f.Skills})
}
