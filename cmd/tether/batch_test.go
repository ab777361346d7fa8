//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tether/harness"
)

// batchFile writes n tasks that one script does, and returns the file.
func (h *desk) batchFile(n int, more string) string {
	h.t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"task-%d","prompt":"Task %d.","setup":"echo %d > number"%s}`+"\n", i, i, i, more)
	}
	file := filepath.Join(h.dir, "ws", "tasks.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return file
}

// TestBatchKilled kills a batch with kill -9 again and again. What had a result keeps
// it and is not run again; what was in flight is; in the end each task has one.
func TestBatchKilled(t *testing.T) {
	const tasks, jobs = 24, 4
	h := newDesk(t)
	h.batchFile(tasks, `,"verify":"test -s number"`)
	args := []string{"batch", "tasks.jsonl", "-j", fmt.Sprint(jobs), "-m", h.script("write a.txt < a", "append a.txt < b", "done"), "--json"}
	results := filepath.Join(h.dir, "ws", "tasks.results.jsonl")
	had := map[string]string{}
	kills := 0
	for {
		cmd := h.command(args...)
		var out bytes.Buffer
		cmd.Stdout = &out
		err := killAfter(t, cmd, func() bool { return len(wholeLines(t, results)) >= len(had)+1+rand.IntN(6) })
		has := wholeLines(t, results)
		for id, line := range had {
			if has[id] != line {
				t.Fatalf("the result of %s was %q and is %q", id, line, has[id])
			}
		}
		if had = has; err == nil {
			var s batchSum
			if err := json.Unmarshal(out.Bytes(), &s); err != nil || s.Done != tasks || s.Left != 0 {
				t.Errorf("%s, %v", out.String(), err)
			}
			break
		}
		if kills++; kills > 200 {
			t.Fatalf("after %d kills %d tasks have a result", kills, len(has))
		}
	}
	if len(had) != tasks {
		t.Errorf("%d results, want %d", len(had), tasks)
	}
	list, _, _ := h.do("ls", "-C", "tasks.results", "--json", "-n", "0")
	if n := strings.Count(list, "\n"); n < tasks || n > tasks+kills*jobs {
		t.Errorf("%d sessions for %d tasks and %d kills with %d in flight at most", n, tasks, kills, jobs)
	}
	t.Logf("%d kills, %d sessions for %d tasks", kills, strings.Count(list, "\n"), tasks)
}

// killAfter runs cmd and kills it soon after it has come so far. The error is nil if it
// had ended by itself.
func killAfter(t *testing.T, cmd *exec.Cmd, far func() bool) error {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	for deadline := time.Now().Add(patience); !far(); {
		select {
		case err := <-gone:
			return err
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not go on")
		}
	}
	select { // anywhere in a task
	case err := <-gone:
		return err
	case <-time.After(time.Duration(rand.IntN(60)) * time.Millisecond):
	}
	_ = cmd.Process.Kill()
	return <-gone
}

// wholeLines are the results in a file by their ids. All but a last line that was cut
// are whole, and no task has two.
func wholeLines(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	has := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var r batchResult
		if err := json.Unmarshal([]byte(line), &r); !strings.HasSuffix(line, "\n") || err != nil {
			if !strings.HasSuffix(string(text), line) {
				t.Fatalf("a line in the middle is cut: %q", line)
			}
			break
		}
		if has[r.ID] != "" {
			t.Fatalf("%s has two results", r.ID)
		}
		has[r.ID] = line
	}
	return has
}

// TestBatchInterrupted: the first signal ends a batch in order and soon. The task that
// ran has no result, the others have, and the same command goes on.
func TestBatchInterrupted(t *testing.T) {
	for sig, status := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		h := newDesk(t)
		quick := h.script("done")
		tasks := fmt.Sprintf("{\"id\":\"a\",\"prompt\":\"p\",\"model\":%q}\n{\"id\":\"b\",\"prompt\":\"p\",\"setup\":\"mkfifo begun\"}\n{\"id\":\"c\",\"prompt\":\"p\",\"model\":%q}\n", quick, quick)
		if err := os.WriteFile(filepath.Join(h.dir, "ws", "tasks.jsonl"), []byte(tasks), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := h.command("batch", "tasks.jsonl", "-m", h.script(busy))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() { gone <- cmd.Wait() }()
		fifo := filepath.Join(h.dir, "ws", "tasks.results", "workspace", "b", "begun")
		for deadline := time.Now().Add(patience); ; {
			if _, err := os.Lstat(fifo); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("task b did not begin\n%s", errs.String())
			}
		}
		held := openFIFO(fifo, gone)
		if held == nil {
			t.Fatalf("task b did not run\n%s", errs.String())
		}
		if _, err := held.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		<-gone
		if took := time.Since(began); ended(cmd) != status || took > 2*time.Second {
			t.Errorf("%v: status %d after %s, want %d within 2 s\n%s", sig, ended(cmd), took, status, errs.String())
		}
		if _, err := io.Copy(io.Discard, held); err != nil {
			t.Errorf("something of it still runs: %v", err)
		}
		held.Close()
		if has := wholeLines(t, filepath.Join(h.dir, "ws", "tasks.results.jsonl")); len(has) != 1 || has["a"] == "" {
			t.Errorf("%v: results %v", sig, has)
		}
		if !strings.Contains(errs.String(), "1 of 3 tasks have a result; go on with the same command") || !strings.Contains(out.String(), "no result    2\n") {
			t.Errorf("%v: %s%s", sig, out.String(), errs.String())
		}
		if got, said, status := h.do("batch", "tasks.jsonl", "-m", h.script("done"), "--json"); status != 0 || !strings.Contains(got, `"done":3`) {
			t.Errorf("again: status %d\n%s%s", status, got, said)
		}
	}
}

// TestBatchOnce: a second batch that would write the same results is refused while the
// first one runs.
func TestBatchOnce(t *testing.T) {
	h := newDesk(t)
	h.batchFile(1, "")
	folder := filepath.Join(h.dir, "ws", "tasks.results")
	r, err := openResults(filepath.Join(h.dir, "ws", "tasks.results.jsonl"), folder, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, errs, status := h.do("batch", "tasks.jsonl", "-m", h.script("done")); status != 1 || !strings.Contains(errs, "another tether batch writes tasks.results.jsonl now") {
		t.Errorf("status %d: %s", status, errs)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := h.do("batch", "tasks.jsonl", "-m", h.script("done")); status != 0 {
		t.Errorf("status %d: %s", status, errs)
	}
}

// TestParts: the parts of a batch are all tasks, each once, and about as many each.
func TestParts(t *testing.T) {
	const tasks, parts = 4000, 8
	var size [parts]int
	for i := range tasks {
		in := 0
		for k := range parts {
			if inPart(fmt.Sprint("task-", i), uint64(k+1), parts) {
				size[k]++
				in++
			}
		}
		if in != 1 {
			t.Fatalf("task %d is in %d parts", i, in)
		}
	}
	if low, high := slices.Min(size[:]), slices.Max(size[:]); low < 400 || high > 600 {
		t.Errorf("sizes %v of about %d", size, tasks/parts)
	}
	// Machines that do not know of each other must agree, now and in a year.
	if !inPart("task-1", 4, 4) || inPart("task-1", 1, 4) {
		t.Error("task-1 is no longer in part 4 of 4")
	}
}

// TestWorse: every reason of a run has its place in the order of badness.
func TestWorse(t *testing.T) {
	for _, stop := range stops(t) {
		if stop == harness.Interrupted || stop == harness.Terminated || stop == harness.Hangup {
			continue // they end the batch itself
		}
		if !slices.Contains(badness, stop.Exit()) {
			t.Errorf("%s (%d) has no place", stop, stop.Exit())
		}
	}
	if got := worse(worse(0, 6), 4); got != 4 {
		t.Errorf("of 0, 6 and 4 the worst is %d", got)
	}
	if got := worse(3, worse(7, 9)); got != 7 {
		t.Errorf("of 3, 7 and 9 the worst is %d", got)
	}
	if got := worse(1, 5); got != 1 {
		t.Errorf("of 1 and 5 the worst is %d", got)
	}
}

// TestFullDisk: a result that cannot be written whole is none, and the ones before it
// stay whole.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.jsonl")
	r, err := openResults(path, filepath.Join(dir, "r"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.add(batchResult{V: 1, ID: "a"}); err != nil {
		t.Fatal(err)
	}
	whole := r.file
	if r.file, err = os.OpenFile("/dev/full", os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.add(batchResult{V: 1, ID: "b"}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room there and start again") {
		t.Errorf("on a full disk: %v", err)
	}
	r.file.Close()
	r.file = whole
	if err := r.add(batchResult{V: 1, ID: "c"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if has := wholeLines(t, path); len(has) != 2 || has["c"] == "" {
		t.Errorf("%v", has)
	}
}

// BenchmarkBatch is 500 tasks, each with two replies and a gate in the sandbox: 4 at a
// time, one at a time, and as runs one after the other, each of the three with a store of
// its own. They take turns, a hundred tasks each, so that what else the machine does
// meets them alike. ratio is the time of a task 4 at a time to that of one at a time.
func BenchmarkBatch(b *testing.B) {
	const turns, each = 5, 100
	dir := b.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
		return file
	}
	model := "script:" + write("model.jsonl", "{\"cmd\":\"write a.txt\",\"stdin\":\"a\\n\"}\n{\"cmd\":\"done\"}\n")
	tether := func(state string, args ...string) time.Duration {
		env := map[string]string{"HOME": dir, "PATH": os.Getenv("PATH"), "TETHER_STATE": filepath.Join(dir, "state", state)}
		p := &program{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: func(k string) string { return env[k] }}
		began := time.Now()
		if status := p.main(b.Context(), append(args, "-m", model)); status != 0 {
			b.Fatalf("%v: status %d", args[:1], status)
		}
		return time.Since(began)
	}
	ws := filepath.Join(dir, "alone")
	if err := os.Mkdir(ws, 0o755); err != nil {
		b.Fatal(err)
	}
	var four, one, alone time.Duration
	for b.Loop() {
		for turn := range turns {
			var lines strings.Builder
			for i := range each {
				fmt.Fprintf(&lines, `{"id":"task-%d-%d","prompt":"Task.","verify":"test -s a.txt"}`+"\n", turn, i)
			}
			tasks := write("tasks.jsonl", lines.String())
			four += tether("four", "batch", tasks, "-j", "4", "--out", filepath.Join(dir, "four.jsonl"), "--resume=false")
			one += tether("one", "batch", tasks, "-j", "1", "--out", filepath.Join(dir, "one.jsonl"), "--resume=false")
			for range each {
				if err := os.RemoveAll(filepath.Join(ws, "a.txt")); err != nil {
					b.Fatal(err)
				}
				alone += tether("alone", "run", "-q", "-C", ws, "--verify", "test -s a.txt", "Task.")
			}
		}
	}
	per := func(d time.Duration) float64 { return d.Seconds() * 1e3 / turns / each / float64(b.N) }
	b.ReportMetric(per(four), "ms/task")
	b.ReportMetric(per(one), "ms/task-one-job")
	b.ReportMetric(per(alone), "ms/run")
	b.ReportMetric(per(four)/per(one), "ratio")
	b.ReportMetric(0, "ns/op")
}

// FuzzBatchLine: a line is a task with a name that can be a folder, or an error of at
// most three lines; and what is a task once more is the same task.
func FuzzBatchLine(f *testing.F) {
	f.Add(`{"id":"a","prompt":"p","verify":["x"],"timeout":"1m"}`)
	f.Add(`{"id":"..","prompt":"\u0000","dir":7}`)
	f.Add("[1]\n{")
	f.Fuzz(func(t *testing.T, line string) {
		task, err := parseBatchTask([]byte(line), "")
		if err != nil {
			if strings.Count(err.Error(), "\n") > 2 && !strings.Contains(line, "\n") {
				t.Errorf("%v", err)
			}
			return
		}
		if !filepath.IsLocal(task.ID) || strings.ContainsAny(task.ID, "/\\ \n") || strings.HasPrefix(task.ID, ".") || task.Prompt == "" {
			t.Errorf("%+v", task)
		}
		if again, err := parseBatchTask([]byte(line), ""); err != nil || again.sum != task.sum || task.sum == "" {
			t.Errorf("%+v, %v", again, err)
		}
	})
}
