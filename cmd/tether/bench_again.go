package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readAgain reads the rows of an earlier bench out of the file of --rows, into a slice
// that rows points to. Those of another bench have other fields, and are none.
func (f *benchFlags) readAgain(p *program, rows any) error {
	text, err := f.rowText()
	if err != nil {
		return err
	}
	list := bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\n"), []byte(",\n"))
	dec := json.NewDecoder(io.MultiReader(strings.NewReader("["), bytes.NewReader(list), strings.NewReader("]")))
	dec.DisallowUnknownFields()
	if err := dec.Decode(rows); err != nil {
		return usagef("%s has no rows of this bench (%v); name the file that --json was written to", f.rows, err)
	}
	if f.json {
		_, err = p.Out.Write(text)
	}
	return err
}

// rowText is the file of --rows.
func (f *benchFlags) rowText() ([]byte, error) {
	text, err := os.ReadFile(f.rows)
	switch {
	case err != nil:
		return nil, usagef("the rows %s cannot be read (%v); name the file that --json was written to", f.rows, reason(err))
	case len(bytes.TrimSpace(text)) == 0:
		return nil, usagef("%s has no rows; name the file that --json was written to", f.rows)
	}
	return text, nil
}

// speedAgain, selfAgain and windowAgain print the table of rows that were measured
// before, and write their plot, for a page that holds both.
func (f *benchFlags) speedAgain(p *program, _ []string) error {
	var rows []speedRow
	if err := f.readAgain(p, &rows); err != nil {
		return err
	}
	return f.publish(p, speedTable(rows), speedPlot(rows))
}

func (f *benchFlags) selfAgain(p *program, _ []string) error {
	var rows []selfRow
	if err := f.readAgain(p, &rows); err != nil {
		return err
	}
	return f.publish(p, selfTable(rows), selfPlot(rows))
}

func (f *benchFlags) windowAgain(p *program, _ []string) error {
	var rows []windowRow
	if err := f.readAgain(p, &rows); err != nil {
		return err
	}
	return f.publish(p, windowTable(rows), windowPlot(rows))
}

// tasksAgain is the same for the rows of tasks. All that belong to the file of tasks
// count, whatever the models, seeds and kinds of check; one that is there twice counts
// once.
func (f *benchFlags) tasksAgain(p *program, args []string) error {
	tasks, err := f.tasks(args[0])
	if err != nil {
		return err
	}
	text, err := f.rowText()
	if err != nil {
		return err
	}
	b := &taskBench{benchFlags: f, p: p, tasks: tasks}
	if err := b.readRows(f.rows, text); err != nil {
		return err
	}
	f.steps, f.runs, f.seeds = 0, 1, nil
	for _, r := range b.known {
		ours := slices.ContainsFunc(tasks, func(t benchTask) bool { return t.ID == r.ID })
		if !ours || slices.ContainsFunc(b.rows, r.same) {
			continue
		}
		b.rows = append(b.rows, r)
		f.steps, f.runs = max(f.steps, r.MaxSteps), max(f.runs, r.Run)
		if !slices.Contains(f.seeds, r.Seed) {
			f.seeds = append(f.seeds, r.Seed)
		}
		if f.json {
			if err := p.json(r); err != nil {
				return err
			}
		}
	}
	if len(b.rows) == 0 {
		return usagef("%s has no row of a task in %s; name another file with --rows", f.rows, args[0])
	}
	configs, err := f.configs(p)
	if err != nil {
		return err
	}
	return f.publish(p, b.markdown(filepath.Base(args[0]), configs), b.plot(filepath.Base(args[0])))
}

// same says whether o is of the same task under the same conditions.
func (r benchRow) same(o benchRow) bool {
	return r.ID == o.ID && r.Model == o.Model && r.Seed == o.Seed && r.Run == o.Run && r.Gates == o.Gates && r.MaxSteps == o.MaxSteps
}
