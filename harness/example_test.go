package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/harness/llm"
	"tether/memory"
	"tether/sandbox"
	"tether/skills"
)

// A workbench is what a program needs beside an agent: a sandbox over a folder, a store
// for the sessions, and a model; here one whose replies are written down.
type workbench struct {
	dir   string
	box   *sandbox.Box
	store *memory.Store
	skill *skills.Library
}

// newBench makes a workbench over an empty folder.
func newBench(ctx context.Context) *workbench {
	w := &workbench{}
	var errs [4]error
	w.dir, errs[0] = os.MkdirTemp("", "example-")
	w.box, errs[1] = sandbox.New(ctx, sandbox.Policy{Root: w.dir})
	w.store, errs[2] = memory.Open(ctx, ":memory:")
	w.skill, errs[3] = skills.Open("", nil)
	if err := errors.Join(errs[:]...); err != nil {
		panic(err) // an example has nobody to tell
	}
	return w
}

func (w *workbench) close() {
	w.store.Close()
	w.box.Close()
	os.RemoveAll(w.dir)
}

// agent is an agent for a session that asks the scripted model. A line "cmd < text" is
// a call with a standard input.
func (w *workbench) agent(ctx context.Context, s memory.Session, replies ...string) *harness.Agent {
	var script strings.Builder
	for _, line := range replies {
		cmd, stdin, _ := strings.Cut(line, " < ")
		fmt.Fprintf(&script, "{\"cmd\":%q,\"stdin\":%q}\n", cmd, stdin)
	}
	file := filepath.Join(w.dir, "..", filepath.Base(w.dir)+".jsonl")
	defer os.Remove(file)
	err := os.WriteFile(file, []byte(script.String()), 0o600)
	model, err2 := llm.Open(ctx, llm.Config{Model: "script:" + file})
	check, err3 := act.Grant(act.Builtins(), []string{"sh"})
	if err := errors.Join(err, err2, err3); err != nil {
		panic(err)
	}
	env := act.Env{Box: w.box, Memory: w.store, Session: s.ID, Skills: w.skill}
	shell := act.NewShell(env, act.Builtins())
	return &harness.Agent{
		Model: model, Shell: shell, Check: act.NewShell(env, check), Budget: window.Default, Store: w.store, Session: s,
		Setup: harness.Setup{Model: "script", System: window.System(window.Framing{Commands: shell.List()}), Root: w.dir, Commands: shell.Names()},
	}
}

func (w *workbench) session(ctx context.Context, task string) memory.Session {
	s, err := w.store.NewSession(ctx, task, "script")
	if err != nil {
		panic(err)
	}
	return s
}

// history is what the log says of a session.
func (w *workbench) history(ctx context.Context, s memory.Session) *harness.History {
	events, err := w.store.Events(ctx, s.ID)
	if err != nil {
		panic(err)
	}
	h := harness.Replay(events)
	return &h
}

// Do carries out one task. The gate runs in the sandbox when the model says that it is
// done, and done counts only when it succeeds.
func ExampleAgent_Do() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Greet.")
	a := w.agent(ctx, s, "write hello.txt < Hallo\n", "done", "write hello.txt < Hello\n", "done I have greeted.")
	a.Gates = []harness.Gate{{Cmd: "grep -q Hello hello.txt"}}
	a.Notify = func(e harness.Event) {
		if e.Type == harness.EventGate {
			fmt.Println("gate:", e.Status)
		}
	}
	out, err := a.Do(ctx, s.Task)
	fmt.Println(out.Stop, out.Exit, out.Steps, out.Changed, err)
	fmt.Println(out.Report)
	// Output:
	// gate: 1
	// gate: 0
	// done 0 4 [hello.txt] <nil>
	// I have greeted.
}

// A context that is cancelled with a cause ends the run in order; the outcome is whole.
func ExampleAgent_Do_interrupted() {
	ctx, cancel := context.WithCancelCause(context.Background())
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Wait.")
	a := w.agent(ctx, s, "write a.txt < a", "sleep 60")
	a.Notify = func(e harness.Event) {
		if e.Type == harness.EventObservation {
			cancel(harness.ErrTerminated)
		}
	}
	out, err := a.Do(ctx, s.Task)
	fmt.Println(out.Stop, out.Exit, out.Changed, err)
	// Output: terminated 143 [a.txt] <nil>
}

// Resume goes on with a session, in another process too: everything is in its log.
func ExampleAgent_Resume() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Write two files.")
	replies := []string{"write a.txt < a", "write b.txt < b", "done Both are there."}
	a := w.agent(ctx, s, replies...)
	a.Limits.Steps = 1
	out, _ := a.Do(ctx, s.Task)
	fmt.Println(out.Stop, out.Changed)

	h := w.history(ctx, s)
	if err := h.Ready(s.ID, harness.Limits{Steps: 9}); err != nil {
		fmt.Println(err)
		return
	}
	a = w.agent(ctx, s, replies[h.Replies("script"):]...) // a script begins where it was left
	out, _ = a.Resume(ctx, h)
	fmt.Println(out.Stop, out.Steps, out.Changed, out.Report)
	// Output:
	// steps [a.txt]
	// done 3 [a.txt b.txt] Both are there.
}

// Hand runs the commands of a person as a model's would be run.
func ExampleAgent_Hand() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "by hand")
	a := w.agent(ctx, s)
	status, err := a.Hand(ctx, s.Task, []window.Call{{Cmd: "write a.txt", Stdin: "one\ntwo\n"}, {Cmd: "sh wc -l < a.txt"}}, func(t window.Turn, _ time.Duration) error {
		fmt.Println(t.ID, t.Call.Cmd, t.Status)
		return nil
	})
	fmt.Println(status, err)
	// Output:
	// obs_1 write a.txt 0
	// obs_2 sh wc -l < a.txt 0
	// 0 <nil>
}

// Replay makes of a log what is to be known of its session.
func ExampleReplay() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Write.")
	_, _ = w.agent(ctx, s, "write a.txt < a", "done").Do(ctx, s.Task)

	events, _ := w.store.Events(ctx, s.ID)
	h := harness.Replay(events)
	for _, t := range h.Turns {
		fmt.Println(t.ID, t.Call.Cmd, t.Status)
	}
	fmt.Println(h.Outcome.Stop, h.ByHand(), h.Misses(), len(h.Shape()) > 0, h.Cost().Requests)
	// Output:
	// obs_1 write a.txt 0
	// obs_2 done 0
	// done false 0 true 2
}

// Window computes again what the model was shown, from the log alone.
func ExampleHistory_Window() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Look around.")
	_, _ = w.agent(ctx, s, "sh echo one; echo two", "done").Do(ctx, s.Task)
	req, err := w.history(ctx, s).Window(2)
	for _, m := range req.Messages[1:] {
		line, _, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
		fmt.Printf("%s %q\n", m.Role, line)
	}
	fmt.Println(err)
	// Output:
	// user "Look around."
	// assistant ""
	// tool "one"
	// <nil>
}

// Say tells a session something; what a person says is the newest that the model reads.
func ExampleHistory_Say() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Write.")
	_, _ = w.agent(ctx, s, "done").Do(ctx, s.Task)
	h := w.history(ctx, s)
	err := h.Ready(s.ID, harness.Limits{})
	_, ended := errors.AsType[*harness.EndedError](err)
	fmt.Println("ended:", ended)
	if err := h.Say(ctx, w.store, s.ID, "Write it in French."); err != nil {
		fmt.Println(err)
		return
	}
	out, err := w.agent(ctx, s, "write a.txt < Bonjour", "done").Resume(ctx, h)
	fmt.Println(out.Stop, out.Steps, err)
	// Output:
	// ended: true
	// done 3 <nil>
}

// Mend completes what a kill has left half done: a command without a result is told as
// that, and never run again by itself.
func ExampleHistory_Mend() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Deploy.")
	_, _ = w.store.Append(ctx, s.ID, "intent", harness.Intended{Obs: "obs_1", Cmd: "sh ./deploy"})
	h := w.history(ctx, s)
	fmt.Println(h.Unknown.Cmd)
	err := h.Mend(ctx, w.store, s.ID)
	fmt.Println(len(h.Turns), h.Turns[0].Call.Cmd, h.Unknown == nil, err)
	// Output:
	// sh ./deploy
	// 1 sh ./deploy true <nil>
}

// Until cuts a log after a step; a fork begins with that.
func ExampleUntil() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Write.")
	_, _ = w.agent(ctx, s, "write a.txt < a", "write b.txt < b", "done").Do(ctx, s.Task)
	events, _ := w.store.Events(ctx, s.ID)
	begin, err := harness.Until(events, 1)
	h := harness.Replay(begin)
	fmt.Println(len(h.Turns), h.Turns[0].Call.Cmd, err)
	_, err = harness.Until(events, 7)
	fmt.Println(err)
	// Output:
	// 1 write a.txt <nil>
	// there is no step 7; the session has 3
}

// A run that cannot begin has an outcome too, and its session an end.
func ExampleFailure() {
	ctx := context.Background()
	w := newBench(ctx)
	defer w.close()
	s := w.session(ctx, "Write.")
	out := harness.Failure(s.Task, harness.Unreachable, errors.New("no model server"))
	err := harness.Abandon(ctx, w.store, s.ID, out)
	fmt.Println(out.Stop, out.Exit, out.Error, w.history(ctx, s).Outcome.Stop, err)
	// Output: unreachable 7 no model server unreachable <nil>
}

// Exit is the status of a process that ends for a reason, and Resumable whether the
// session can go on without a word from a person.
func ExampleStop() {
	for _, s := range []harness.Stop{harness.Done, harness.GateFailed, harness.Steps, harness.Waiting, harness.Unreachable} {
		fmt.Println(s, s.Exit(), s.Resumable())
	}
	// Output:
	// done 0 false
	// gate_failed 3 false
	// steps 4 true
	// waiting 6 false
	// unreachable 7 true
}

// A Form binds the report of done to a JSON schema.
func ExampleForm() {
	form, err := harness.ParseForm([]byte(`{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, wrong := form.Check(`{ "count": 3 }`)
	fmt.Println(text, wrong == "")
	_, wrong = form.Check(`three`)
	fmt.Println(wrong != "")
	// Output:
	// {"count":3} true
	// true
}

// A Guard tells going round in circles from progress.
func ExampleGuard() {
	var g harness.Guard
	call := window.Call{Cmd: "read a.go"}
	g.Ran(call, false)
	fmt.Println(g.Repeats(call), g.Refuse(call), g.Warnings)
	g.Ran(window.Call{Cmd: "write a.go"}, true) // now it may read otherwise
	fmt.Println(g.Repeats(call), g.Idle())
	g.Ran(call, false)
	g.Unsee(call)
	fmt.Println(g.Repeats(call), g.Idle())
	g.Ran(call, false)
	g.Forget()
	for range 3 {
		g.Warn()
	}
	fmt.Println(g.Repeats(call), g.Stalled())
	// Output:
	// true repeat 1
	// false 0
	// false 1
	// false true
}

// A line that waits for something is made again as long as what it prints changes.
func ExampleGuard_Printed() {
	var g harness.Guard
	call := window.Call{Cmd: "sleep 5; cat job.log"}
	for _, output := range []string{"10 %", "50 %", "90 %"} {
		g.Ran(call, false)
		g.Printed(call, output)
	}
	fmt.Println(g.Repeats(call), g.Refuse(call) == "", g.Idle())
	// Output: false true 0
}

// A Network books what commands ask for; the run tells it and puts it in the log.
func ExampleNetwork() {
	var n harness.Network
	asked := harness.Asked{Host: "example.org", Port: 443, Why: "not in the list"}
	n.Add(asked)
	fmt.Println(asked)
	// Output: example.org:443 refused, not in the list
}

// Costs of several sessions add up.
func ExampleCost() {
	fmt.Println(harness.Cost{Requests: 2}.Plus(harness.Cost{Requests: 3}).Requests)
	// Output: 5
}
