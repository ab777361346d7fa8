package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/pflag"

	window "tether/context"
	"tether/harness"
	"tether/memory"
)

var exportCommand = &subcommand{
	Name:    "export",
	Args:    "[SESSION]",
	Summary: "write a session into a file",
	Detail: `Writes SESSION, or the newest one here, as JSON Lines to standard output: a line
about it, and then all of its events with the hashes that prove them. tether
import reads that. --html writes one page for people instead, which needs nothing
else and fetches nothing.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f exportFlags
		fs.StringVarP(&f.dir, "dir", "C", ".", "the workspace")
		fs.StringVarP(&f.output, "output", "o", "", "the file; else standard output")
		fs.StringVar(&f.html, "html", "", "write a page into this file")
		return f.run
	},
}

type exportFlags struct{ dir, output, html string }

func (f *exportFlags) run(ctx context.Context, p *program, args []string) error {
	if len(args) > 1 || f.output != "" && f.html != "" {
		return usagef("export takes one session, and --output or --html")
	}
	store, err := openStore(ctx, p, f.dir)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Session(ctx, strings.Join(args, ""))
	if err != nil {
		return err
	}
	records, err := store.Records(ctx, s.ID)
	if err != nil {
		return err
	}
	switch {
	case f.html != "":
		return writeFile(f.html, func(w io.Writer) error { return writePage(w, s, records) })
	case f.output != "":
		return writeFile(f.output, func(w io.Writer) error { return writeRecords(w, s, records) })
	}
	return writeRecords(p.Out, s, records)
}

// writeFile makes a new file that only the user can read: a session may hold
// what the workspace holds. One that could not be written whole is taken away.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return usagef("%s cannot be made (%v); name a file that does not exist", name, reason(err))
	}
	w := bufio.NewWriter(f)
	err = errors.Join(write(w), w.Flush(), f.Sync(), f.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// An exported session begins with this line. The records follow, a line each.
type exported struct {
	V       int    `json:"v"`
	Export  string `json:"export"` // exportName
	Session string `json:"session"`
	Task    string `json:"task"`
	Events  int    `json:"events"` // as many lines follow
}

const exportName = "tether session"

func writeRecords(w io.Writer, s memory.Session, records []memory.Record) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // the bodies are hashed as they are
	err := enc.Encode(exported{1, exportName, s.ID, s.Task, len(records)})
	for i := 0; i < len(records) && err == nil; i++ {
		err = enc.Encode(records[i])
	}
	return err
}

//go:embed export.html
var page string

// maxPage bounds what the texts of a page take, in bytes after they are escaped:
// 200 steps are then well below 1 MB with what is around them.
const maxPage = 800 << 10

// A pageStep is a step as the page shows it.
type pageStep struct {
	N                       int
	Cmd, Stdin, Said, Next  string
	User, Output, Recovered string
	Status                  int
	MS                      int64
}

// writePage writes a page for people. html/template would make the binary a
// quarter of a megabyte larger; what it knows more of than text/template, attributes
// and scripts, the page has none of with a value in it. So every text is escaped
// here, before the template gets it.
func writePage(w io.Writer, s memory.Session, records []memory.Record) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	var events []memory.Event
	for _, r := range records {
		events = append(events, r.Event)
	}
	h := harness.Replay(events)
	e := escaper(min(maxPage/max(len(h.Turns), 1)/3, 20_000))
	data := map[string]any{
		"ID": e.text(s.ID), "Task": e.text(s.Task), "Model": e.text(h.Setup.Model), "Sandbox": e.text(h.Setup.Sandbox),
		"Started": s.Started.Format(time.RFC3339), "Steps": e.steps(h), "Bad": len(h.Bad),
		"Unknown": "", "Report": "", "Error": "", "End": "It has no end: it was running, or was killed.",
	}
	if h.Unknown != nil {
		data["Unknown"] = e.text(h.Unknown.Cmd)
	}
	if o := h.Outcome; o != nil {
		data["End"], data["Report"], data["Error"] = e.text(lastLine(*o)), e.text(o.Report), e.text(o.Error)
	}
	return t.Execute(w, data)
}

// An escaper makes text that HTML shows as it is, of at most so many bytes.
type escaper int

func (n escaper) text(text string) string {
	text = printable(text)
	all := ""
	if len(text) <= int(n) {
		all = template.HTMLEscapeString(text)
	}
	for keep := int(n); all == "" && text != "" || len(all) > int(n) && keep > 100; keep /= 2 {
		all = template.HTMLEscapeString(window.Clip(text, keep, keep/2, keep/3, ""))
	}
	return all
}

func (n escaper) steps(h harness.History) []pageStep {
	var steps []pageStep
	for i, t := range h.Turns {
		steps = append(steps, pageStep{
			N: h.Steps[i].Step, Cmd: n.text(t.Call.Cmd), Stdin: n.text(t.Call.Stdin), Said: n.text(t.Said), User: n.text(t.User),
			Output: n.text(t.Output), Next: n.text(t.Next), Status: t.Status, MS: h.Steps[i].MS, Recovered: n.text(recovered(h, i)),
		})
	}
	return steps
}
