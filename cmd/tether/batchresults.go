package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tether/harness"
)

// A batchResult is one line of the results: how one task ended.
type batchResult struct {
	V         int             `json:"v"` // version of the format: 1
	ID        string          `json:"id"`
	Kind      string          `json:"kind,omitempty"`
	Solved    bool            `json:"solved"`
	Outcome   harness.Outcome `json:"outcome"`
	Failed    []failedGate    `json:"failed,omitempty"`    // the gates that failed last, with what they printed
	Workspace string          `json:"workspace,omitempty"` // where its files are; empty: removed
	Patch     string          `json:"patch,omitempty"`     // the file with what the model changed
	Unpatched []string        `json:"unpatched,omitempty"` // changed files that the patch does not have
	Source    string          `json:"source,omitempty"`    // the folder that it had a copy of
	Sum       string          `json:"sum"`                 // of the line of the task
}

// maxResultLine is the longest line of a file of results in bytes: a task of
// maxBatchLine may become six times as long when each of its bytes is escaped, and its
// gates have printed something too.
const maxResultLine = 8 * maxBatchLine

// resultsEnding is how the name of a file of results ends.
const resultsEnding = ".results.jsonl"

// hadTry says whether the model had its try. Otherwise it was the server, the
// configuration or the machine, and a batch runs the task again by itself.
func hadTry(stop harness.Stop) bool {
	switch stop {
	case harness.Done, harness.GateFailed, harness.GateError, harness.Steps, harness.Time, harness.Tokens, harness.Stalled, harness.Waiting:
		return true
	}
	return false
}

// batchResults is the file of results. Each task has one line at most. It belongs
// to one process at a time.
type batchResults struct {
	path  string
	lock  *os.File // the folder of the workspaces
	file  *os.File
	size  int64 // up to here the file is whole lines
	lines []batchResult
}

// openResults opens the results at path for this process alone. folder is that of
// the workspaces. A last line that a kill or a full disk has cut is taken away:
// its task has no result then. fresh begins anew.
func openResults(path, folder string, fresh bool) (*batchResults, error) {
	r := &batchResults{path: path}
	for _, dir := range []string{folder, filepath.Join(folder, "workspace"), filepath.Join(folder, "patch")} {
		// What an earlier try left there is removed, and a project may have brought
		// a link to somewhere else along.
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return nil, usagef("%s is no folder; move it away, or name another place with --out", dir)
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("the folder %s cannot be made (%w)\nname another place with --out", folder, reason(err))
	}
	var err error
	if r.lock, err = os.Open(folder); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(r.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another tether batch writes %s now\nwait for it, or name another file with --out", path), r.lock.Close())
	}
	if err := r.read(fresh); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// read reads what is there and makes the file ready for more.
func (r *batchResults) read(fresh bool) error {
	info, err := os.Lstat(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return usagef("the results %s cannot be read (%v); name another file with --out", r.path, reason(err))
	case !info.Mode().IsRegular():
		return usagef("the results %s are no file; name another one with --out", r.path)
	}
	flags := os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW
	if fresh {
		flags |= os.O_TRUNC
	}
	if r.file, err = os.OpenFile(r.path, flags, 0o644); err != nil {
		return usagef("the results %s cannot be written (%v); name another file with --out", r.path, reason(err))
	}
	if err := r.parse(); err != nil {
		return err
	}
	return errors.Join(r.file.Truncate(r.size), syncFolder(filepath.Dir(r.path)))
}

// parse reads the lines and finds where the whole ones end.
func (r *batchResults) parse() error {
	in := bufio.NewReaderSize(r.file, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(in, maxResultLine)
		if err != nil && err != io.EOF {
			return usagef("%s:%d: %v", r.path, n, err)
		}
		last := err == io.EOF
		if last && len(line) == 0 {
			return nil
		}
		var res batchResult
		bad := json.Unmarshal(line, &res)
		if bad == nil && (res.V != 1 || res.ID == "") {
			bad = errors.New("it has no id, or is of another version")
		}
		switch _, more := in.Peek(1); {
		case (last || bad != nil && more == io.EOF) && begun(line):
			return nil // cut: without its line end it may lack more
		case last && bad == nil:
			bad = errors.New("it has no line end")
			fallthrough
		case bad != nil:
			return usagef("%s:%d: not a result (%v)\nname another file with --out, or begin anew with --resume=false", r.path, n, bad)
		}
		r.size += int64(len(line))
		r.lines = append(r.lines, res)
	}
}

// begun says whether a line that is no result can be the beginning of one, or what a
// crash has left of it. What cannot be is somebody else's, and nothing is cut off it.
func begun(line []byte) bool {
	const begin = `{"v":1,"id":"`
	n := min(len(line), len(begin))
	return string(line[:n]) == begin[:n] || bytes.IndexByte(line, 0) >= 0
}

// add commits one result: when it returns nil the line is on the disk.
func (r *batchResults) add(res batchResult) error {
	line, err := jsonLine(res)
	if err != nil {
		return err
	}
	if _, err = r.file.WriteAt(line, r.size); err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		_ = r.file.Truncate(r.size) // half a line would be found at the next start all the same
		return fmt.Errorf("the result of %s cannot be written to %s (%w)\nmake room there and start again: what has a result is not run again", res.ID, r.path, reason(err))
	}
	r.size += int64(len(line))
	r.lines = append(r.lines, res)
	return nil
}

// keep drops every line that keep does not want. Others see the old or the new
// file, also after a crash.
func (r *batchResults) keep(keep func(batchResult) bool) error {
	var lines []batchResult
	var text bytes.Buffer
	for _, res := range r.lines {
		if !keep(res) {
			continue
		}
		line, err := jsonLine(res)
		if err != nil {
			return err
		}
		text.Write(line)
		lines = append(lines, res)
	}
	if len(lines) == len(r.lines) {
		return nil
	}
	if err := writeReport(r.path, text.Bytes()); err != nil {
		return err
	}
	file, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_ = r.file.Close() // the one that is no longer there
	r.file, r.size, r.lines = file, int64(text.Len()), lines
	return nil
}

// Close gives the file and the folder to others.
func (r *batchResults) Close() error {
	err := r.lock.Close()
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// jsonLine is v as one line of JSON.
func jsonLine(v any) ([]byte, error) {
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

// syncFolder commits the names in a folder.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
