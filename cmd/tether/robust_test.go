//go:build failpoint

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tether/memory"
)

var (
	robustSeconds = flag.Int("robust.seconds", 60, "how long the robustness job lasts")
	robustSeed    = flag.Uint64("robust.seed", 0, "of the robustness job; 0 is a new one")
	robustHistory = flag.String("robust.history", "", "check this history, which a failed job saved, and do nothing else")
)

// confinedEnv is the folder of a small file system, for the job that runs where
// one is mounted.
const confinedEnv = "TETHER_TEST_SMALL_DISK"

// TestRobust is the robustness job: four processes use one state directory,
// two through package memory and two as tether itself, and a nemesis kills and
// halts them, fills the disk, breaks commits and cuts the model's replies. What
// each process was told is written down outside, and a checker compares it with
// what is there in the end (violations). Then the same with three known bugs,
// which the job must find.
func TestRobust(t *testing.T) {
	if *robustHistory != "" {
		replayHistory(t, *robustHistory)
		return
	}
	if os.Getenv(confinedEnv) == "" {
		confine(t)
		return
	}
	seed := *robustSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for _, test := range []struct {
		bug, finds string
		seconds    int
	}{
		{sound, "", *robustSeconds},
		{"ack-before-commit", "lost: ", 10},
		{"no-sync", "unflushed: ", 5},
		{"rerun-unknown", "repeated: ", 15},
	} {
		t.Run(test.bug, func(t *testing.T) {
			j := newTrial(t, seed, test.bug)
			j.run(time.Duration(test.seconds) * time.Second)
			found := violations(j.history(), j.end)
			t.Logf("seed %d: %s", seed, j.summary())
			if test.finds == "" && len(found) > 0 {
				t.Errorf("%s\nthe history is kept: go test -tags failpoint -run Robust ./cmd/tether -robust.history=%s", strings.Join(found, "\n"), j.keep())
			}
			if test.finds != "" {
				if !slices.ContainsFunc(found, func(v string) bool { return strings.HasPrefix(v, test.finds) }) {
					t.Errorf("the bug was not found; want %q", test.finds)
				} else {
					t.Logf("found, with %d more: %s", len(found)-1, found[slices.IndexFunc(found, func(v string) bool { return strings.HasPrefix(v, test.finds) })])
				}
			}
		})
	}
}

// confine runs this one test again where a small file system is mounted, which
// the nemesis can fill. What the processes write by themselves, 1 MiB a second, has
// its room there.
func confine(t *testing.T) {
	dir := t.TempDir()
	size := (128 + 4**robustSeconds) << 20 // bytes
	args := append([]string{"--dev-bind", "/", "/", "--size", strconv.Itoa(size), "--tmpfs", dir,
		"--setenv", confinedEnv, dir, "--die-with-parent", "--", os.Args[0]}, os.Args[1:]...)
	cmd := exec.Command("bwrap", append(args, "-test.run=^"+t.Name()+"$")...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// replayHistory checks a history that was kept.
func replayHistory(t *testing.T, dir string) {
	var end ending
	text, err := os.ReadFile(filepath.Join(dir, "ending.json"))
	if err == nil {
		err = json.Unmarshal(text, &end)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations(loadHistory(t, files...), end) {
		t.Error(v)
	}
}

// sound is the name of no bug.
const sound = "none"

// A trial is one run of the processes and their nemesis.
type trial struct {
	t        *testing.T
	bug      string
	disk     string // the small file system
	work     string // workspaces and histories, outside of it
	model    *fickleModel
	started  int // processes
	faults   map[string]int
	end      ending
	mu       sync.Mutex
	rng      *rand.Rand
	running  map[int]*os.Process // by slot: what the nemesis may hit
	sessions []agentSession      // all that are not done
	done     int                 // sessions of agents
}

func newTrial(t *testing.T, seed uint64, bug string) *trial {
	j := &trial{t: t, bug: bug, work: t.TempDir(), disk: filepath.Join(os.Getenv(confinedEnv), "job-"+bug), faults: map[string]int{},
		rng: rand.New(rand.NewPCG(seed, 0)), running: map[int]*os.Process{}, model: newFickleModel(t),
		end: ending{Executed: map[string]int{}, Watched: map[string]int{}}}
	if err := os.MkdirAll(j.disk, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(j.disk) }) // the next one needs the room
	return j
}

// The slots in which processes run. Whatever ends is started again.
const (
	slotWatched = iota // package memory, with its flushes counted
	slotStore          // package memory
	slotAgent          // tether run and resume
	slotAgent2
	slots
)

// run lets the processes work and the nemesis rage for a time, and then looks at
// what is left.
func (j *trial) run(limit time.Duration) {
	ctx, stop := context.WithTimeout(j.t.Context(), limit)
	defer stop()
	var all sync.WaitGroup
	for slot := range slots {
		all.Go(func() {
			for ctx.Err() == nil {
				if slot < slotAgent {
					j.store(ctx, slot)
				} else {
					j.agent(ctx, slot)
				}
			}
		})
	}
	all.Go(func() { j.nemesis(ctx) })
	all.Wait()
	j.finish()
}

// draw is a random number below n.
func (j *trial) draw(n int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rng.IntN(n)
}

// environment is that of a process, which breaks at a place drawn by lot.
func (j *trial) environment(places []string, more ...string) []string {
	env := append(os.Environ(), "TETHER_BUG="+j.bug, "TETHER_STATE="+filepath.Join(j.disk, "state"))
	if len(places) > 0 && j.draw(3) == 0 {
		env = append(env, fmt.Sprintf("TETHER_FAILPOINT=%s@%d", places[j.draw(len(places))], 1+j.draw(20)))
		j.count("failpoint")
	}
	return append(env, more...)
}

func (j *trial) count(fault string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults[fault]++
}

// name is a new one for a process.
func (j *trial) name() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.started++
	return fmt.Sprint("p", j.started)
}

// store runs one process that uses package memory until it is killed.
func (j *trial) store(ctx context.Context, slot int) {
	name := j.name()
	args := []string{"robust-worker"}
	syncs := filepath.Join(j.work, name+".syncs")
	if slot == slotWatched {
		args = []string{"strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", syncs, "robust-worker"}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = j.environment([]string{"memory/commit=kill", "memory/commit=error", "memory/commit=stop", "memory/committed=kill"},
		"ROBUST_STORE="+filepath.Join(j.disk, "store", "tether.db"), "ROBUST_HISTORY="+filepath.Join(j.work, name+".jsonl"),
		"ROBUST_PROCESS="+name, fmt.Sprint("ROBUST_SEED=", j.draw(1<<30)))
	j.unwanted(cmd, j.follow(ctx, slot, cmd, func() {}))
	if text, err := os.ReadFile(syncs); err == nil {
		j.mu.Lock()
		j.end.Watched[name] = bytes.Count(text, []byte("sync("))
		j.mu.Unlock()
	}
}

// follow starts cmd in a slot, reads what it prints and waits for its end, which
// is at hand when ctx ends. It returns what was said on standard error.
func (j *trial) follow(ctx context.Context, slot int, cmd *exec.Cmd, read func()) string {
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		j.t.Error(err)
		return ""
	}
	j.mu.Lock()
	j.running[slot] = cmd.Process
	j.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			hit(cmd.Process, syscall.SIGKILL)
		case <-ended:
		}
	}()
	read()
	_ = cmd.Wait() // how it ended is in its state
	close(ended)
	j.mu.Lock()
	delete(j.running, slot)
	j.mu.Unlock()
	return said.String()
}

// unwanted reports a process that was not understood, or that crashed.
func (j *trial) unwanted(cmd *exec.Cmd, said string) {
	if s := cmd.ProcessState; s != nil && s.ExitCode() == 2 {
		j.t.Errorf("%v: %s", cmd.Args, said)
	}
}

// finish resumes the sessions of agents that were interrupted, and reads the
// store once more.
func (j *trial) finish() {
	j.model.cut.Store(false)
	for _, s := range j.sessions {
		if j.bug != sound {
			break // there is no telling what it left of them
		}
		if !j.conclude(&s) {
			j.t.Errorf("session %s cannot be resumed", s.id)
		}
	}
	j.end.Executed = executions(j.t, j.work)
	for _, file := range j.stores() {
		j.read(file)
	}
}

// stores are the databases of the job.
func (j *trial) stores() []string {
	inside, _ := filepath.Glob(filepath.Join(j.disk, "state", "*", "tether.db"))
	return append(inside, filepath.Join(j.disk, "store", "tether.db"))
}

// read opens a store as the next process would and adds what is there to the
// history.
func (j *trial) read(file string) {
	s, err := memory.Open(context.Background(), file)
	if err != nil {
		j.end.Broken = err.Error()
		return
	}
	defer s.Close()
	if _, err := s.Verify(context.Background()); err != nil {
		j.end.Broken = err.Error()
	}
	out := openHistory(filepath.Join(j.work, "final-"+filepath.Base(filepath.Dir(file))+".jsonl"), "final "+file)
	for _, session := range j.written(file) {
		out.read(s, session)
	}
}

// written are the sessions of which the history says that something was
// appended in a store.
func (j *trial) written(file string) []string {
	var names []string
	agents := !strings.HasPrefix(file, filepath.Join(j.disk, "store"))
	for _, o := range j.history() {
		if o.Kind == "append" && strings.HasPrefix(o.Process, "agent") == agents && !slices.Contains(names, o.Session) {
			if agents && !strings.Contains(file, o.Process) {
				continue // of the other agent's workspace
			}
			names = append(names, o.Session)
		}
	}
	return names
}

// history is all that was written down so far.
func (j *trial) history() []operation {
	files, _ := filepath.Glob(filepath.Join(j.work, "*.jsonl"))
	return loadHistory(j.t, files...)
}

// summary is what the job did, for the person who reads its log.
func (j *trial) summary() string {
	ok := map[string]int{}
	for _, o := range j.history() {
		if o.Phase != "invoke" {
			ok[o.Kind+" "+o.Phase]++
		}
	}
	return fmt.Sprintf("%d processes, %d sessions done, operations %v, faults %v, acts run %d", j.started, j.done, ok, j.faults, len(j.end.Executed))
}

// keep saves the history where it outlives the test, and returns the folder.
func (j *trial) keep() string {
	dir, err := os.MkdirTemp("", "tether-history-")
	if err == nil {
		var text []byte
		if text, err = json.Marshal(j.end); err == nil {
			err = os.WriteFile(filepath.Join(dir, "ending.json"), text, 0o644)
		}
	}
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "h"), os.DirFS(j.work))
	}
	if err != nil {
		j.t.Error(err)
	}
	return dir
}
