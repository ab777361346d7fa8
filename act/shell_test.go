package act

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestApproveIsAskedBeforeAnythingRuns(t *testing.T) {
	root := t.TempDir()
	s := NewShell(Env{Box: newBox(t, root, 0)}, Builtins())
	var asked []string
	s.Approve = func(_ context.Context, c *Command, args []string) error {
		asked = append(asked, c.Name+" "+strings.Join(args, " "))
		if c.Name == "sh" {
			return errors.New("a person has to approve this first")
		}
		return nil
	}
	for _, line := range []string{"touch a.txt", "write b.txt hello && chmod 777 b.txt", "read b.txt | tee d.txt"} {
		r := s.Do(context.Background(), line, "")
		if r.Status != Denied {
			t.Errorf("%s: status %d\n%s", line, r.Status, r.Output)
		}
	}
	for _, name := range []string{"a.txt", "d.txt"} {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s was made without approval", name)
		}
	}
	if len(asked) == 0 || asked[0] != "sh touch a.txt" {
		t.Errorf("asked for %q", asked)
	}
}

func TestFaultIsNoResultForTheModel(t *testing.T) {
	s := NewShell(Env{Box: newBox(t, t.TempDir(), 0)}, Builtins())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := s.Do(ctx, "true", ""); r.Err == nil || r.Output != "" {
		t.Errorf("a cancelled run gives %+v", r)
	}
}

func TestUnready(t *testing.T) {
	s := NewShell(Env{Box: newBox(t, t.TempDir(), 0)}, Builtins())
	s.Unready = true
	s.Do(context.Background(), "write a.txt x", "")
	r := s.Do(context.Background(), "write a.txt x", "")
	if strings.Contains(r.Output, "done") || r.Changed {
		t.Errorf("after a failed gate an act names done or changes nothing: %+v", r)
	}
}

func TestBroken(t *testing.T) {
	s := NewShell(Env{Box: newBox(t, t.TempDir(), 0)}, Builtins())
	if r := s.Do(context.Background(), "write a.json {", ""); !r.Broken || r.Status != OK {
		t.Errorf("a broken file gives %+v", r)
	}
}

func TestOutputStaysUTF8(t *testing.T) {
	s := NewShell(Env{Box: newBox(t, t.TempDir(), 0)}, Builtins())
	text := strings.Repeat("é", 2000)
	if r := s.Do(context.Background(), "write a.txt", text); strings.ToValidUTF8(r.Output, "!") != r.Output {
		t.Errorf("a cut left half a character: %q", r.Output)
	}
	if r := s.Do(context.Background(), "read a.txt", ""); strings.ToValidUTF8(r.Output, "!") != r.Output {
		t.Errorf("a cut left half a character: %q", r.Output)
	}
}

func TestProgramIsNoBuiltin(t *testing.T) {
	s := NewShell(Env{Box: newBox(t, t.TempDir(), 0)}, nil)
	for line, want := range map[string]int{
		"wait": OK, "help test >/dev/null": OK, "sh -c 'exit 3'": 3, "read x": Failed, "no-such-program": NotFound,
		"done": 2, // a syntax error of bash, and not the end of a task
	} {
		if r := s.Program(context.Background(), line); r.Status != want || r.Done || r.Err != nil {
			t.Errorf("%s: got %+v, want status %d", line, r, want)
		}
	}
}

// TestState: a shell that is given what another one remembered goes on in its
// folder and replaces the files that the model has seen.
func TestState(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	box := newBox(t, root, 0)
	s := NewShell(Env{Box: box}, Builtins())
	s.Do(context.Background(), "read a.txt", "")
	s.Do(context.Background(), "mkdir d && cd d", "")
	next := NewShell(Env{Box: box}, Builtins())
	next.Restore(s.State())
	next.Restore(State{Dir: "d", Seen: map[string]string{"b.txt": "no hash"}})
	if r := next.Do(context.Background(), "write ../a.txt", "three\n"); r.Status != OK || !r.Changed {
		t.Errorf("after Restore a file that was seen is not replaced: %+v", r)
	}
	if r := NewShell(Env{Box: box}, Builtins()).Do(context.Background(), "write a.txt", "four\n"); r.Status == OK {
		t.Errorf("without Restore a file that was not seen is replaced: %+v", r)
	}
}
