package harness_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/harness/llm"
	"tether/memory"
	"tether/sandbox"
	"tether/skills"
)

var update = flag.Bool("update", false, "write the expected parts of the dialogues anew")

// TestDialogue runs testdata/*.txtar. Each is a session with the scripted
// model: the files task, gate (a command line each), schema, model (a reply a line),
// window (its tokens and those of a reply), compact (summaries are asked for),
// fenced (the hints are those of the fenced form) and dir/… go in; end (how the run ended) and seen (the last window that the
// model was shown) come out.
func TestDialogue(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { dialogue(t, file) })
	}
}

func dialogue(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in, dir := map[string]string{}, t.TempDir()
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		in[f.Name] = string(f.Data)
		if name, ok := strings.CutPrefix(f.Name, "dir/"); ok {
			if err := os.WriteFile(filepath.Join(ws, name), f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	script := filepath.Join(dir, "model.jsonl")
	if err := os.WriteFile(script, []byte(in["model"]), 0o644); err != nil {
		t.Fatal(err)
	}
	a, seen := agent(t, ws, script)
	for _, g := range strings.Split(strings.TrimSpace(in["gate"]), "\n") {
		if g != "" {
			a.Gates = append(a.Gates, harness.Gate{Cmd: g})
		}
	}
	if in["schema"] != "" {
		if a.Form, err = harness.ParseForm([]byte(in["schema"])); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Sscan(in["steps"], &a.Limits.Steps)
	fmt.Sscan(in["window"], &a.Budget.Window, &a.Budget.Reserve)
	_, a.Compact = in["compact"]
	_, a.Setup.Fenced = in["fenced"]
	_, a.Project = in["dir/AGENTS.md"]
	out, err := a.Do(context.Background(), strings.TrimSpace(in["task"]))
	end := fmt.Sprintf("stop %s, exit %d, %d steps, changed %v\nreport %s\n", out.Stop, out.Exit, out.Steps, out.Changed, out.Report)
	for _, g := range out.Gates {
		end += fmt.Sprintf("gate %s: status %d after %d\n", g.Cmd, g.Status, g.Tries)
	}
	if out.Unfit != "" {
		end += "unfit " + out.Unfit + "\n"
	}
	if err != nil {
		end += "error " + strings.ReplaceAll(err.Error(), dir, "DIR") + "\n"
	}
	compare(t, file, ar, map[string]string{"end": end, "seen": *seen})
}

// compare checks the parts that come out, or writes them.
func compare(t *testing.T, file string, ar *txtar.Archive, got map[string]string) {
	t.Helper()
	for i, f := range ar.Files {
		if want, ok := got[f.Name]; ok {
			if string(f.Data) != want && !*update {
				t.Errorf("%s is:\n%s\nwant:\n%s", f.Name, want, f.Data)
			}
			ar.Files[i].Data = []byte(want)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A watched model keeps the newest window it was shown.
type watched struct {
	harness.Model
	seen *string
}

func (w watched) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	var b strings.Builder
	for _, m := range r.Messages[1:] {
		fmt.Fprintf(&b, "[%s]\n", m.Role)
		if m.Call != nil {
			fmt.Fprintf(&b, "$ %s\n%s", m.Call.Cmd, m.Call.Stdin)
		}
		if m.Text != "" {
			b.WriteString(m.Text + "\n")
		}
	}
	*w.seen = b.String()
	return w.Model.Reply(ctx, r, stream)
}

// agent is an agent with a real sandbox and a real store in ws.
func agent(t *testing.T, ws, script string) (*harness.Agent, *string) {
	t.Helper()
	ctx := context.Background()
	box, err := sandbox.New(ctx, sandbox.Policy{Root: ws})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.Open(ctx, ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(); box.Close() })
	lib, err := skills.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.NewSession(ctx, "task", "script")
	if err != nil {
		t.Fatal(err)
	}
	model, err := llm.Open(ctx, llm.Config{Model: "script:" + script})
	if err != nil {
		t.Fatal(err)
	}
	env := act.Env{Box: box, Memory: store, Session: s.ID, Skills: lib}
	check, err := act.Grant(act.Builtins(), []string{"sh"})
	if err != nil {
		t.Fatal(err)
	}
	seen := new(string)
	return &harness.Agent{
		Model: watched{model, seen}, Shell: act.NewShell(env, act.Builtins()), Check: act.NewShell(env, check),
		Budget: window.Default, Store: store, Session: s,
	}, seen
}
