package harness_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/memory"
)

// TestReady: what ended for good needs a word from a person, and what is used up
// has to be raised.
func TestReady(t *testing.T) {
	for stop, want := range map[harness.Stop]string{
		harness.Done: "is done", harness.GateFailed: "ended with gate_failed", harness.GateError: "ended with gate_error",
		harness.Stalled: "ended with stalled", harness.Waiting: "waits for an answer",
		harness.Interrupted: "", harness.Terminated: "", harness.Unreachable: "", harness.NoModel: "", harness.Failed: "",
		harness.Config: "", harness.Sandbox: "", harness.Steps: "", harness.Time: "", harness.Tokens: "",
	} {
		h := harness.Replay([]memory.Event{event("setup", `{"system":"S","prompt":"P"}`), event("stop", fmt.Sprintf(`{"stop":%q}`, stop))})
		err := h.Ready("20260101", harness.Limits{})
		if want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), "session 20260101 "+want) {
			t.Errorf("%s: %v", stop, err)
		}
		h = harness.Replay([]memory.Event{event("stop", fmt.Sprintf(`{"stop":%q}`, stop)), event("message", `{"text":"Go on."}`)})
		if err := h.Ready("20260101", harness.Limits{}); err != nil {
			t.Errorf("%s, and the person said something: %v", stop, err)
		}
	}
	used := harness.Replay([]memory.Event{event("request", `{"n":1}`), event("reply", `{"n":1,"prompt":90,"output":10}`), event("turn", `{"obs":"obs_1","how":"missed","step":7}`)})
	for _, c := range []struct {
		limits harness.Limits
		want   string
	}{
		{harness.Limits{Steps: 7}, "has used its 7 steps\nraise them: tether resume s --max-steps 14"},
		{harness.Limits{Tokens: 100}, "has used 100 tokens, and may not use more\nraise them: tether resume s --max-tokens 200"},
		{harness.Limits{Steps: 8, Tokens: 101}, "<nil>"},
	} {
		if err := used.Ready("s", c.limits); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %v, want %s", c.limits, err, c.want)
		}
	}
}

// TestSay: what a person says is the newest message that the model reads, the
// window before it is as it was, and limits and tries begin anew.
func TestSay(t *testing.T) {
	p := newPlace(t, func(a *harness.Agent) {
		a.Gates, a.Limits.Steps = []harness.Gate{{Cmd: "test -f right.txt"}}, 5
	})
	m := &tape{replies: calls("write wrong.txt < x", "done", "write wrong.txt < y", "done", "write wrong.txt < z", "write right.txt < x", "done")}
	if out, _ := p.do(m); out.Stop != harness.Steps {
		t.Fatalf("%+v", out)
	}
	say := func(text string) error {
		a, end := p.agent(nil)
		defer end()
		h := p.history()
		return h.Say(t.Context(), a.Store, p.session.ID, text)
	}
	if err := say(strings.Repeat("long ", 9000)); err == nil || !strings.Contains(err.Error(), "tokens") {
		t.Errorf("a message larger than the window: %v", err)
	}
	if err := say("The file is right.txt.\xff"); err != nil {
		t.Fatal(err)
	}
	out, err := p.resume(m, nil)
	if err != nil || out.Stop != harness.Done || out.Steps != 7 || out.Gates[0].Tries != 3 {
		t.Errorf("%+v, %v", out, err)
	}
	before, after := m.asked[4].Messages, m.asked[5].Messages
	if !reflect.DeepEqual(before, after[:len(before)]) {
		t.Error("the window before the message is another one")
	}
	if got := after[len(after)-1]; got.Role != window.RoleUser || got.Text != "The user says: The file is right.txt.\uFFFD" {
		t.Errorf("the newest message is %s", show(got))
	}
	h := p.history()
	for i, want := range m.asked {
		if got, err := h.Window(i + 1); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("window %d is not what was sent: %v", i+1, err)
		}
	}
}

// TestResumeNames: what is no longer as it was is told, and the session keeps
// what the model was told.
func TestResumeNames(t *testing.T) {
	p := newPlace(t, nil)
	m := &tape{replies: calls("read .", "read odd.txt 1:3", "sh true", "done", "done"), until: 1}
	if _, err := p.do(m); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	m.until = 0
	moved := p.ws + "2"
	if err := os.Rename(p.ws, moved); err != nil {
		t.Fatal(err)
	}
	p.ws = moved
	var told []string
	out, err := p.resume(m, func(a *harness.Agent) {
		cmds, err := act.Grant(act.Builtins(), []string{"read", "done", "web"})
		if err != nil {
			cmds, err = act.Grant(act.Builtins(), []string{"read", "done"})
		}
		if err != nil {
			t.Fatal(err)
		}
		a.Shell = act.NewShell(a.Shell.Env, cmds)
		a.Setup = harness.Setup{Model: "other", System: "another prompt", Root: moved, Commands: []string{"read", "done", "new"}, Version: "2", Sandbox: "read-only"}
		a.Budget.Window = 4096
		a.Notify = func(e harness.Event) {
			if e.Type == harness.EventWarning {
				told = append(told, e.Output)
			}
		}
	})
	if err != nil || out.Stop != harness.Done || out.Model != "other" {
		t.Errorf("%+v, %v", out, err)
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{
		"the model was tape and is other now", "the workspace was " + strings.TrimSuffix(moved, "2") + " and is " + moved + " now",
		"tether was 1 and is 2 now", "the window was 8192 tokens and is 4096 tokens now", "no longer granted: sh", "granted now, and not known to the model: new",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody is told %q in\n%s", want, all)
		}
	}
	if got := m.asked[1].Messages[0].Text; got != "S" {
		t.Errorf("the system prompt is %q", got)
	}
	if h := p.history(); h.Turns[2].Status != act.NotFound {
		t.Errorf("a command that is no longer granted ends with %d", h.Turns[2].Status)
	}
}

// TestResumeAfterAChange: what a person changes between two runs is told, and
// what failed before may be run again at once.
func TestResumeAfterAChange(t *testing.T) {
	for _, changed := range []bool{false, true} {
		p := newPlace(t, nil)
		m := &tape{replies: calls("test -f right.txt", "test -f right.txt", "test -f right.txt", "done", "done"), until: 1}
		if _, err := p.do(m); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		if changed {
			if err := os.WriteFile(filepath.Join(p.ws, "right.txt"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m.until = 0
		var told []string
		_, err := p.resume(m, func(a *harness.Agent) {
			a.Notify = func(e harness.Event) {
				if e.Type == harness.EventWarning {
					told = append(told, e.Output)
				}
			}
		})
		h := p.history()
		if ran := h.Turns[1].Status == act.OK; err != nil || ran != changed {
			t.Errorf("changed %v: the same command again gives %+v, %v", changed, h.Turns[1], err)
		}
		if said := strings.Contains(strings.Join(told, "\n"), "files of the workspace have changed since"); said != changed {
			t.Errorf("changed %v: told %q", changed, told)
		}
	}
}
