package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
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
var frame string

// maxPage bounds what the texts of a page take, in bytes after they are escaped:
// 200 steps are then well below 1 MB with what is around them.
const maxPage = 800 << 10

// A page is a session as people read it, written piece by piece.
type page struct {
	strings.Builder
	escaper
}

// add writes before, the text escaped, and after, or nothing if text is empty.
func (p *page) add(before, text, after string) {
	if text != "" {
		p.WriteString(before + p.text(text) + after)
	}
}

// writePage writes a page for people. It uses no template package: each of the two
// makes the binary at least 1.8 MB larger (see window.Text). The page has no
// attributes or scripts with a value in them, so escaping its texts is all there is.
func writePage(w io.Writer, s memory.Session, records []memory.Record) error {
	var events []memory.Event
	for _, r := range records {
		events = append(events, r.Event)
	}
	h := harness.Replay(events)
	p := &page{escaper: escaper(min(maxPage/max(len(h.Turns), 1)/3, 20_000))}
	p.add("<h1>", s.Task, "</h1>\n")
	fmt.Fprintf(p, `<p class="dim">%s, %s`, p.text(s.ID), s.Started.Format(time.RFC3339))
	p.add(", model ", h.Setup.Model, "")
	p.add(", sandbox ", h.Setup.Sandbox, "")
	p.WriteString("</p>\n")
	for i := range h.Turns {
		p.step(h, i)
	}
	p.end(h)
	_, err := strings.NewReplacer("<!-- title -->", p.text(s.ID), "<!-- session -->", p.String()).WriteString(w, frame)
	return err
}

// step writes turn i.
func (p *page) step(h harness.History, i int) {
	t, status := h.Turns[i], ""
	if t.Status != 0 {
		status = fmt.Sprintf(", status %d", t.Status)
		p.WriteString(`<section class="bad">` + "\n")
	} else {
		p.WriteString("<section>\n")
	}
	defer p.WriteString("</section>\n")
	if t.User != "" {
		p.add("<h2>The user</h2>\n<pre>", t.User, "</pre>\n")
		return
	}
	fmt.Fprintf(p, `<h2>%d <span class="dim">%d ms%s`, h.Steps[i].Step, h.Steps[i].MS, status)
	p.add(", found as ", recovered(h, i), "")
	p.WriteString("</span></h2>\n")
	p.add("<pre>$ ", t.Call.Cmd, "</pre>\n")
	p.add("<pre>", t.Call.Stdin, "</pre>\n")
	p.add("<pre>", t.Said, "</pre>\n")
	p.add(`<pre class="out">`, t.Output, "</pre>\n")
	p.add(`<p class="dim">`, t.Next, "</p>\n")
}

// end writes how the session ended.
func (p *page) end(h harness.History) {
	if h.Unknown != nil {
		p.add("<p>Begun, and without a result: <code>", h.Unknown.Cmd, "</code></p>\n")
	}
	if n := len(h.Bad); n > 0 {
		fmt.Fprintf(p, "<p>%d events could not be read.</p>\n", n)
	}
	if h.Outcome == nil {
		p.WriteString("<pre>It has no end: it was running, or was killed.</pre>\n")
		return
	}
	p.add("<pre>", lastLine(*h.Outcome), "</pre>\n")
	p.add("<p>", h.Outcome.Report, "</p>\n")
	p.add("<p>", h.Outcome.Error, "</p>\n")
}

// An escaper makes text that HTML shows as it is, of at most so many bytes.
type escaper int

func (n escaper) text(text string) string {
	text = printable(text)
	all := ""
	if len(text) <= int(n) {
		all = html.EscapeString(text)
	}
	for keep := int(n); all == "" && text != "" || len(all) > int(n) && keep > 100; keep /= 2 {
		all = html.EscapeString(window.Clip(text, keep, keep/2, keep/3, ""))
	}
	return all
}
