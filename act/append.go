package act

import (
	"context"
)

var appendCommand = &Command{
	Name:    "append",
	Args:    "FILE",
	Summary: "add stdin at the end of a file",
	Detail:  "Adds the text in stdin behind the last line of FILE, which is made if there\nis none.\nexample: append list.txt tomatoes",
	Text:    1,
	Run:     runAppend,
}

func runAppend(ctx context.Context, env *Env, args []string) error {
	t, err := env.target(args)
	if err != nil {
		return err
	}
	if env.Stdin == "" {
		return misuse("append --help", "there is no text for %s; put it in stdin", t.name)
	}
	text, said := tidy(t.name, env.Stdin, string(t.old))
	if err := env.refuseMark(ctx, t.name, text, string(t.old)); err != nil {
		return err
	}
	doc := parseDocument(t.old)
	first := len(doc.lines) + 1
	doc.lines, doc.open = append(doc.lines, splitLines(ended(text))...), false
	for _, s := range said {
		env.Say("%s", s)
	}
	return env.save(ctx, t, doc, span{first, len(doc.lines)})
}
