package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
)

// A benchTask is one line of a file of tasks.
type benchTask struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Prompt string `json:"prompt"`
	Setup  string `json:"setup"`
	Verify string `json:"verify"`
}

// maxTaskLine is the longest line of a file of tasks in bytes. A task brings the
// files that it needs in its setup.
const maxTaskLine = 4 << 20

// readTasks reads a JSONL file of tasks and names the line of a mistake.
func readTasks(file string) ([]benchTask, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("the tasks %s cannot be read (%v); name a JSONL file", file, reason(err))
	}
	var tasks []benchTask
	at := map[string]int{} // the line of each id
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxTaskLine)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		t, err := parseTask(lines.Bytes())
		if first, again := at[t.ID]; err == nil && again {
			err = fmt.Errorf("the id %q is that of line %d already", t.ID, first)
		}
		if err != nil {
			return nil, usagef("%s:%d: %v", file, n, err)
		}
		at[t.ID] = n
		tasks = append(tasks, t)
	}
	switch {
	case lines.Err() != nil:
		return nil, usagef("%s:%d: the line is longer than %d bytes", file, n, maxTaskLine)
	case len(tasks) == 0:
		return nil, usagef("%s has no tasks; a line is %s", file, taskForm)
	}
	return tasks, nil
}

// taskForm shows what a line of a file of tasks is.
const taskForm = `{"id":"a-name","prompt":"…","setup":"a command line","verify":"a command line"}`

// plainID is an id that can be the name of a folder on every system.
var plainID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$`)

// parseTask reads one line of a file of tasks.
func parseTask(line []byte) (benchTask, error) {
	var t benchTask
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return t, fmt.Errorf("not a task (%w); a line is %s", err, taskForm)
	}
	switch {
	case dec.More():
		return t, errors.New("more than one value on the line")
	case t.ID == "" || t.Prompt == "" || t.Verify == "":
		return t, errors.New("a task needs id, prompt and verify")
	case !plainID.MatchString(t.ID):
		return t, fmt.Errorf("the id %q is no plain name: letters, digits, - _ and . only", t.ID)
	}
	return t, nil
}

// choose returns the tasks with the ids in only, or all if there are none.
func choose(tasks []benchTask, only []string) ([]benchTask, error) {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	for _, id := range only {
		if !slices.Contains(ids, id) {
			return nil, usagef("there is no task %q%s", id, didYouMean(id, ids))
		}
	}
	if len(only) == 0 {
		return tasks, nil
	}
	return slices.DeleteFunc(tasks, func(t benchTask) bool { return !slices.Contains(only, t.ID) }), nil
}
