package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"tether/harness"
)

// shown are the flags about what a person gets to see of a run, and what they
// need while it runs.
type shown struct {
	look   look
	output outputFile
	attach []string // files that are given with the task

	view    *live
	before  copies   // the texts of the workspace, if somebody watches
	changed []string // the files that differ, with how much
}

func (s *shown) declare(fs *pflag.FlagSet) {
	fs.BoolVar(&s.look.plain, "plain", false, "no colour and no moving line, on a terminal too")
	fs.Var(&s.look.color, "color", "auto, always or never")
	fs.Var(&s.output, "output", "write the report to FILE when it is whole")
}

// A colorWord is the value of --color.
type colorWord string

// Type is the word for the value in help.
func (c *colorWord) Type() string { return "WHEN" }

// String is the word.
func (c *colorWord) String() string { return string(*c) }

// Set takes one of the three words.
func (c *colorWord) Set(word string) error {
	if word != "auto" && word != "always" && word != "never" {
		return fmt.Errorf("it can be auto, always or never%s", didYouMean(word, []string{"auto", "always", "never"}))
	}
	*c = colorWord(word)
	return nil
}

// watch is the live view, always the same one.
func (s *shown) watch(p *program) func(harness.Event) {
	if s.view == nil {
		s.view = newLive(p.Err, p.Getenv).as(s.look)
	}
	return s.view.show
}

// remember keeps the texts of the workspace, if somebody watches the run.
func (s *shown) remember(w *workplace) {
	if s != nil && s.view != nil {
		s.before = copyTexts(w.Box.Files().FS())
	}
}

// compare finds out by how much the files differ.
func (s *shown) compare(w *workplace, out harness.Outcome) {
	if s != nil && s.view != nil {
		s.view.quiet() // also if the run ended without a word
		s.changed = s.before.counted(w.Box.Files().FS(), out.Changed)
	}
}

// told is what the last lines say of out: also, by how much the files differ.
func (s *shown) told(out harness.Outcome) string {
	if len(s.changed) == len(out.Changed) {
		out.Changed = s.changed
	}
	said := printable(lastLine(out))
	if s.view != nil {
		said = s.view.ended(s.view.wrapped(said), out.Stop)
	}
	return said
}

// put writes what goes to standard output to the file of --output as well. A run
// without a report leaves the file as it is.
func (s *shown) put(out *harness.Outcome) error {
	if out.Report == "" || out.Stop != harness.Done && out.Stop != harness.Waiting {
		return nil
	}
	err := s.output.write(printable(out.Report) + "\n")
	if err != nil && out.Exit == 0 {
		out.Stop, out.Exit, out.Error = harness.Failed, harness.Failed.Exit(), err.Error()
	}
	return err
}
