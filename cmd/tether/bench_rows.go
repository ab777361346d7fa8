package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"tether/harness"
)

// A benchRow is one task that was run: a line of --json and of the file that
// --resume names.
type benchRow struct {
	V        int    `json:"v"`
	ID       string `json:"id"`
	Model    string `json:"model"`
	Seed     int    `json:"seed"`
	Run      int    `json:"run"`
	Gates    bool   `json:"gates"`     // the check answered the model's done
	MaxSteps int    `json:"max_steps"` //
	Tether   string `json:"tether"`    // version
	Solved   bool   `json:"solved"`    // the model said done, and the check passes
	Right    bool   `json:"right"`     // the check passes, whatever the model said

	Replies    int `json:"replies"`
	Unreadable int `json:"unreadable"` // no call could be read in them, cut ones aside
	Cut        int `json:"cut"`        // at the limit of tokens
	Resampled  int `json:"resampled"`  // requests that asked for another reply than the likeliest

	Outcome harness.Outcome `json:"outcome"`
}

// is says whether r is the row of k.
func (r benchRow) is(k benchCase) bool {
	return r.ID == k.task.ID && r.Model == k.model && r.Seed == k.seed && r.Run == k.run && r.Gates == k.gates && r.MaxSteps == k.steps
}

// row is the finished row of a case, or nil.
func (b *taskBench) row(k benchCase) *benchRow {
	for i := range b.known {
		if b.known[i].is(k) {
			return &b.known[i]
		}
	}
	return nil
}

// openRows opens the file of --resume and reads what it has. A last line without
// its end is what a killed bench was writing: it is taken off.
func (b *taskBench) openRows() error {
	if b.resume == "" {
		return nil
	}
	file, err := os.OpenFile(b.resume, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return usagef("the rows %s cannot be opened (%v); name a file", b.resume, reason(err))
	}
	text, err := io.ReadAll(file)
	if err == nil {
		whole := text[:bytes.LastIndexByte(text, '\n')+1]
		if err = b.readRows(b.resume, whole); err == nil && len(whole) < len(text) {
			err = file.Truncate(int64(len(whole)))
		}
		if err == nil {
			_, err = file.Seek(int64(len(whole)), io.SeekStart)
		}
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	b.file = file
	return nil
}

// readRows reads the rows of an earlier bench. Of another file of tasks they
// would say nothing here.
func (b *taskBench) readRows(name string, text []byte) error {
	prompts := map[string]string{}
	for _, t := range b.tasks {
		prompts[t.ID] = t.Prompt
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxTaskLine)
	n := 1
	for ; lines.Scan(); n++ {
		var r benchRow
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.ID == "" || r.Model == "" {
			return usagef("%s:%d: not a row of a bench; name the file that --json was written to", name, n)
		}
		if prompt, ours := prompts[r.ID]; ours && prompt != r.Outcome.Task {
			return usagef("%s:%d: its task %s is another one than in the file of tasks\nname another file of rows", name, n, r.ID)
		}
		b.known = append(b.known, r)
	}
	if lines.Err() != nil {
		return usagef("%s:%d: the line is longer than %d bytes", name, n, maxTaskLine)
	}
	return nil
}

// add keeps a row that is finished: a bench that is killed loses none.
func (b *taskBench) add(r benchRow) error {
	b.rows = append(b.rows, r)
	if b.file != nil {
		line, err := json.Marshal(r)
		if err == nil {
			_, err = b.file.Write(append(line, '\n'))
		}
		if err != nil {
			return fmt.Errorf("the row cannot be kept: %w", err)
		}
	}
	if b.json {
		return b.p.json(r)
	}
	o, word := r.Outcome, "gates"
	if !r.Gates {
		word = "bare"
	}
	verdict := "not solved"
	switch {
	case r.Solved:
		verdict = "solved"
	case r.Right:
		verdict = "right, and not said so"
	}
	_, err := fmt.Fprintf(b.p.Err, "tether: %-14s %-5s seed %d  %-12s %2d steps %6.1f s  %s\n", r.ID, word, r.Seed, o.Stop, o.Steps, o.Seconds, verdict)
	return err
}
