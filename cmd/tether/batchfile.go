package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A batchTask is one line of a file of tasks. What a line leaves out is as the
// flags and the settings have it.
type batchTask struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"` // a label for whoever reads the results
	Prompt  string    `json:"prompt"`
	Dir     string    `json:"dir"`   // the folder that the task gets a copy of, from the file's own folder
	SetUp   string    `json:"setup"` // a command line that makes files in the copy first
	Verify  taskLines `json:"verify"`
	Model   string    `json:"model"`
	Tools   []string  `json:"tools"`
	Skills  []string  `json:"skills"`
	Protect []string  `json:"protect"`
	Steps   int       `json:"max_steps"`
	Tokens  int       `json:"max_tokens"`
	Time    duration  `json:"timeout"`

	sum string // of the line: another one is another task
}

// batchKeys are the keys that a line may have.
var batchKeys = []string{"id", "kind", "prompt", "dir", "setup", "verify", "model", "tools", "skills", "protect", "max_steps", "max_tokens", "timeout"}

// taskLines are command lines: a string is one.
type taskLines []string

// UnmarshalJSON reads a string or a list of strings.
func (l *taskLines) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err == nil {
		*l = nil
		if one != "" {
			*l = taskLines{one}
		}
		return nil
	}
	var all []string
	if err := json.Unmarshal(text, &all); err != nil {
		return errors.New("verify takes a command line, or a list of them")
	}
	*l = all
	return nil
}

// batchForm shows what a line of a file of tasks is.
const batchForm = `{"id":"a-name","prompt":"…","dir":"a folder","verify":"a command line"}`

// maxBatchLine is the longest line of a file of tasks in bytes. A task brings the
// files that it needs in its setup.
const maxBatchLine = 4 << 20

// maxBatch is how many tasks one file may hold. Their texts are kept in memory.
const maxBatch = 100_000

// batchName is an id that can be the name of a folder on every system.
var batchName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$`)

// A batchReader gathers tasks, and sees that no two have the same id.
type batchReader struct {
	tasks []batchTask
	at    map[string]string // where each id was
}

// readBatch reads the tasks of a JSONL file, or of the files in a folder. The
// error names the line of a mistake, and then there is no task at all: a batch
// whose file is wrong has not begun.
func readBatch(path string) ([]batchTask, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("the tasks %s cannot be read (%v); name a JSONL file or a folder of tasks", path, reason(err))
	}
	r := batchReader{at: map[string]string{}}
	switch {
	case info.IsDir():
		err = r.folder(path)
	case !info.Mode().IsRegular():
		err = usagef("the tasks %s are no file; name a JSONL file or a folder of tasks", path)
	default:
		err = r.lines(path)
	}
	if err == nil && len(r.tasks) == 0 {
		err = usagef("%s has no tasks; a line is %s", path, batchForm)
	}
	return r.tasks, err
}

// lines reads a JSONL file.
func (r *batchReader) lines(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return usagef("the tasks %s cannot be read (%v); name a JSONL file or a folder of tasks", path, reason(err))
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(in, maxBatchLine)
		where := fmt.Sprintf("%s:%d", path, n)
		if err != nil && err != io.EOF {
			return usagef("%s: %v", where, err)
		}
		if n == 1 {
			if line, err = unmarked(line, err); err != nil && err != io.EOF {
				return usagef("%s: %v", where, err)
			}
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := r.add(where, line, ""); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// readLine returns the next line of at most limit bytes. The last one comes with io.EOF.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > limit {
			return nil, fmt.Errorf("the line is longer than %d bytes\nput what is long into a file of the task's dir, and name the file in the prompt", limit)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// unmarked is the first line of a file without a byte order mark, which some
// editors write. after is what came with the line.
func unmarked(line []byte, after error) ([]byte, error) {
	if bytes.HasPrefix(line, []byte{0xff, 0xfe}) || bytes.HasPrefix(line, []byte{0xfe, 0xff}) {
		return nil, errors.New("the file is UTF-16; save it as UTF-8")
	}
	line = bytes.TrimPrefix(line, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
		return nil, errors.New("a list, and a file of tasks has one object on each line\nmake it so: jq -c '.[]' tasks.json > tasks.jsonl")
	}
	return line, after
}

// folder reads every NAME.jsonl (tasks), NAME.json (one task) and NAME.md or
// NAME.txt (the prompt of one) in a folder, in the order of their names. Folders
// in it belong to the tasks. Another file may be a task whose name is wrong, so
// it is not passed over in silence.
func (r *batchReader) folder(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return usagef("the tasks %s cannot be read (%v)", path, reason(err))
	}
	for _, e := range entries {
		name, file := e.Name(), filepath.Join(path, e.Name())
		ext := filepath.Ext(name)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, resultsEnding) {
			continue
		}
		id := strings.TrimSuffix(name, ext)
		switch ext {
		case ".jsonl":
			err = r.lines(file)
		case ".json", ".md", ".txt":
			err = r.file(file, id, ext)
		default:
			err = usagef("%s is no task\na folder of tasks holds NAME.json, NAME.jsonl, and NAME.md or NAME.txt with a prompt", file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file reads a file that is one task.
func (r *batchReader) file(file, id, ext string) error {
	f, err := os.Open(file)
	if err != nil {
		return usagef("%s cannot be read (%v)", file, reason(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBatchLine+1))
	switch {
	case err != nil:
		return usagef("%s cannot be read (%v)", file, reason(err))
	case len(text) > maxBatchLine:
		return usagef("%s is longer than %d bytes", file, maxBatchLine)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if ext != ".json" {
		if !utf8.Valid(text) {
			return usagef("%s is not text (UTF-8)", file)
		}
		if text, err = json.Marshal(map[string]string{"prompt": strings.TrimSpace(string(text))}); err != nil {
			return err
		}
	}
	return r.add(file, text, id)
}

// add reads one task. id is the one of a task that names none; empty: it has to.
func (r *batchReader) add(where string, text []byte, id string) error {
	t, err := parseBatchTask(text, id)
	name := strings.ToLower(t.ID) // some file systems have one folder for both
	if first, again := r.at[name]; err == nil && again {
		err = fmt.Errorf("the id %q is that of %s already", t.ID, first)
	}
	if err == nil && len(r.tasks) == maxBatch {
		err = fmt.Errorf("more than %d tasks; split the file", maxBatch)
	}
	if err != nil {
		return usagef("%s: %v", where, err)
	}
	r.at[name] = where
	r.tasks = append(r.tasks, t)
	return nil
}

// parseBatchTask reads one task.
func parseBatchTask(text []byte, id string) (batchTask, error) {
	t := batchTask{ID: id}
	if !utf8.Valid(text) {
		return t, errors.New("not text (UTF-8)")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil || keys == nil {
		return t, fmt.Errorf("not a task (%w); a line is %s", notObject(err), batchForm)
	}
	if again := twice(text); again != "" {
		return t, fmt.Errorf("the key %q is there twice", again)
	}
	for key := range keys {
		if !slices.Contains(batchKeys, key) {
			return t, fmt.Errorf("unknown key %q%s", key, didYouMean(key, batchKeys))
		}
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return t, wrongValue(err)
	}
	sum := sha256.Sum256(bytes.TrimSpace(text))
	t.sum = hex.EncodeToString(sum[:8])
	return t, t.check()
}

// notObject is err, or that the value is of another kind.
func notObject(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil {
		if wrong != nil {
			return errors.New("a " + wrong.Value + ", not an object")
		}
		return errors.New("null, not an object")
	}
	return err
}

// twice is a key that an object has more than once; empty: it has none. Of two values
// the decoder takes the last one without a word.
func twice(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	seen := map[string]bool{}
	for depth, isKey := 0, true; ; {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		switch s, isText := t.(string); {
		case t == json.Delim('{'), t == json.Delim('['):
			depth++
			continue
		case t == json.Delim('}'), t == json.Delim(']'):
			if depth--; depth == 0 {
				return ""
			}
		case depth == 1 && isKey && isText:
			if seen[s] {
				return s
			}
			seen[s], isKey = true, false
			continue
		}
		if depth == 1 { // a value of the object has ended
			isKey = true
		}
	}
}

// wrongValue says which key of a task has a value of the wrong kind.
func wrongValue(err error) error {
	if strings.HasSuffix(err.Error(), notTime) { // only one key takes a time
		return fmt.Errorf("timeout: %w", err)
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok || wrong.Field == "" {
		return err
	}
	want := map[string]string{"int": "a number", "[]string": "a list of strings", "main.duration": `a time such as "10m"`}[wrong.Type.String()]
	if want == "" {
		want = "a string"
	}
	return fmt.Errorf("%s is a %s and takes %s", wrong.Field, wrong.Value, want)
}

// check refuses a task that means nothing.
func (t batchTask) check() error {
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	switch {
	case t.ID == "":
		return errors.New("a task needs an id; a line is " + batchForm)
	case !batchName.MatchString(t.ID):
		return fmt.Errorf("the id %q is no plain name: letters, digits, - _ and . only, 80 at most", t.ID)
	case blank(t.Prompt):
		return fmt.Errorf("task %s needs a prompt", t.ID)
	case !isText(t.Prompt):
		return fmt.Errorf("the prompt of task %s is not text", t.ID)
	case slices.ContainsFunc(t.Verify, blank):
		return fmt.Errorf("task %s has an empty line in verify", t.ID)
	case t.Steps < 0, t.Tokens < 0:
		return fmt.Errorf("task %s: max_steps and max_tokens are 1 or more, or left out", t.ID)
	}
	return nil
}
