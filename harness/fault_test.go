package harness_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/sandbox"
)

// A torn model's reply breaks off, with what had come of it, so often.
type torn struct {
	harness.Model
	times   int
	partial string
}

var errTorn = errors.New("the reply broke off")

func (m *torn) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	if m.times > 0 {
		m.times--
		return window.Reply{Partial: m.partial}, errTorn
	}
	return m.Model.Reply(ctx, r, stream)
}

// TestPartial: what had come of a reply that broke off is kept, nothing of it is
// run, and the command runs once when the session goes on.
func TestPartial(t *testing.T) {
	p := newPlace(t, nil)
	good := &tape{replies: calls("echo ran >> marker", "done")}
	m := &torn{good, 1, `{"cmd":"echo ran >> marker"`}
	if out, err := p.do(m); !errors.Is(err, errTorn) || out.Steps != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(p.ws, "marker")); err == nil {
		t.Fatal("half a reply was run")
	}
	h := p.history()
	if len(h.Received) != 1 || h.Received[0].Partial != m.partial || h.Received[0].Error != errTorn.Error() || h.Unknown != nil || len(h.Turns) != 0 {
		t.Errorf("the log has %+v", h.Received)
	}
	out, err := p.resume(m, nil)
	if err != nil || out.Stop != harness.Done || out.Steps != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if text, err := os.ReadFile(filepath.Join(p.ws, "marker")); err != nil || string(text) != "ran\n" {
		t.Errorf("the marker holds %q, %v", text, err)
	}
	ids := map[string]int{}
	for _, e := range p.events() {
		if e.Kind == "intent" && strings.Contains(string(e.Body), "marker") {
			ids[string(e.Body)]++
		}
	}
	if len(ids) != 1 || len(p.history().Sent) != 3 {
		t.Errorf("begun %v, after %d requests", ids, len(p.history().Sent))
	}
}

// TestUnkeptObservation: a run whose log does not take what a command did ends
// there, with that error, and the command is one of which nobody knows how it
// ended. It never ends as done.
func TestUnkeptObservation(t *testing.T) {
	for _, replies := range [][]window.Reply{calls("echo a > a.txt", "echo b > b.txt", "done"), calls("done")} {
		p := newPlace(t, func(a *harness.Agent) {
			db, err := sql.Open("sqlite", a.Store.Path())
			if err == nil {
				_, err = db.Exec("CREATE TRIGGER full BEFORE INSERT ON event WHEN NEW.kind = 'observation' BEGIN SELECT raise(ABORT, 'no room'); END")
			}
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
		})
		out, err := p.do(&tape{replies: replies})
		if err == nil || out.Stop != harness.Failed || out.Exit != 1 || strings.Count(err.Error(), "no room") != 1 {
			t.Errorf("%+v, %v", out, err)
		}
		if _, err := os.Stat(filepath.Join(p.ws, "b.txt")); err == nil {
			t.Error("a command ran that the log does not know")
		}
		if h := p.history(); h.Unknown == nil || len(h.Turns) != 0 || h.Outcome == nil || h.Outcome.Stop != harness.Failed {
			t.Errorf("the log has %d turns, unknown %v, %+v", len(h.Turns), h.Unknown, h.Outcome)
		}
	}
}

// TestGatesThatCannotJudge: a gate that is killed, times out, is not there or may
// not be run never counts as passed, and the log says how it ended.
func TestGatesThatCannotJudge(t *testing.T) {
	for line, want := range map[string]struct {
		status int
		stop   harness.Stop
	}{
		"kill -9 $$":          {137, harness.GateFailed},
		"sleep 60":            {act.TimedOut, harness.GateError},
		"no-such-program":     {act.NotFound, harness.GateError},
		"./plain.txt":         {act.Denied, harness.GateError},
		"true; kill -15 $$":   {143, harness.GateFailed},
		"./gone.sh || exit 9": {9, harness.GateFailed},
	} {
		t.Run(line, func(t *testing.T) {
			p := newPlace(t, nil)
			if err := os.WriteFile(filepath.Join(p.ws, "plain.txt"), []byte("true\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			m := &tape{replies: calls("write a.txt < 1", "done", "write a.txt < 2", "done", "write a.txt < 3", "done")}
			a, end := p.agent(m)
			box, err := sandbox.New(t.Context(), sandbox.Policy{Root: p.ws, Timeout: 400 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			a.Check.Env.Box = box
			a.Gates = []harness.Gate{{Cmd: line}}
			out, err := a.Do(t.Context(), "Do it.")
			end()
			if err := errors.Join(err, box.Close()); err != nil || out.Stop != want.stop || out.Exit != 3 {
				t.Errorf("stop %s, exit %d, %v; want %s", out.Stop, out.Exit, err, want.stop)
			}
			judged := 0
			for _, e := range p.events() {
				if e.Kind == "gate" && strings.Contains(string(e.Body), fmt.Sprintf(`"status":%d`, want.status)) {
					judged++
				}
			}
			if judged != harness.MaxTries {
				t.Errorf("the log has the status %d %d times, want %d", want.status, judged, harness.MaxTries)
			}
		})
	}
}

// TestSandboxKilled: a sandbox that is killed from outside is a fault of the
// sandbox and no result of the command: the session stops, how the command ended
// is unknown, and it can go on later.
func TestSandboxKilled(t *testing.T) {
	p := newPlace(t, nil)
	m := &tape{replies: calls(marks, "read marker", "done")}
	a, end := p.agent(m)
	killed := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		n := 0
		for ; n == 0 && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) { // between looks at another process
			if _, err := os.Stat(filepath.Join(p.ws, "marker")); err == nil {
				n = killChildren("bwrap")
			}
		}
		killed <- n
	}()
	a.Stop = func(err error) harness.Stop {
		if _, launch := errors.AsType[*sandbox.LaunchError](err); launch {
			return harness.Sandbox
		}
		return harness.Failed
	}
	out, err := a.Do(t.Context(), "Wait.")
	cancel()
	end()
	if n := <-killed; n == 0 {
		t.Fatal("no sandbox was found to kill")
	}
	if out.Stop != harness.Sandbox || err == nil {
		t.Errorf("%+v, %v", out, err)
	}
	h := p.history()
	if h.Unknown == nil || h.Unknown.Cmd != marks {
		t.Errorf("the command that was killed is no unknown one: %+v", h.Turns)
	}
	if out, err := p.resume(m, nil); err != nil || out.Stop != harness.Done {
		t.Errorf("afterwards: %+v, %v", out, err)
	}
}

// killChildren kills the processes of that name that this one has started.
func killChildren(name string) int {
	n := 0
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		text, err := os.ReadFile(file)
		var pid, parent int
		var comm, state string
		if _, scanned := fmt.Sscan(string(text), &pid, &comm, &state, &parent); err == nil && scanned == nil &&
			comm == "("+name+")" && parent == os.Getpid() && syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}

// TestAnotherModelAnswers: a server that answers with another model than before
// is told and logged, within a run and after it was taken up again.
func TestAnotherModelAnswers(t *testing.T) {
	p := newPlace(t, nil)
	m := &tape{replies: calls("read .", "read odd.txt 1:2", "read odd.txt 3:4", "done")}
	for i, name := range []string{"small-7b", "", "small-7b", "large-70b"} {
		m.replies[i].Model = name
	}
	m.until = 3
	var told []string
	listen := func(a *harness.Agent) {
		a.Notify = func(e harness.Event) {
			if e.Type == harness.EventWarning {
				told = append(told, e.Output)
			}
		}
	}
	p.set = listen
	if _, err := p.do(m); !errors.Is(err, errAway) || len(told) != 0 {
		t.Fatal(err, told)
	}
	m.until = 0
	if out, err := p.resume(m, nil); err != nil || out.Stop != harness.Done {
		t.Errorf("%+v, %v", out, err)
	}
	if len(told) != 1 || told[0] != "another model answers: large-70b, and before it small-7b" {
		t.Errorf("told %q", told)
	}
	if h := p.history(); h.Received[len(h.Received)-1].Model != "large-70b" {
		t.Errorf("the log has %+v", h.Received)
	}
}
