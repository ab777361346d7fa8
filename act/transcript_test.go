package act

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"tether/memory"
	"tether/sandbox"
	"tether/skills"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata with what happens now")

// A transcript is the comment of an archive whose files are the workspace:
//
//	prose
//	@ grant read help   only these commands (all without it)
//	@ timeout 1s        of a command
//	@ remember          seed the memory with an observation
//	@ remember N        and one of N lines
//	@ elsewhere         seed it with another session
//	@ web [HOST…]       the network is granted, or a proxy with these hosts; www/ is served
//	@ search            there is a search server
//	$ CMD               > continues it on a further line
//	< a line of stdin
//		output, behind a tab
//	= 1                 the status, if it is not 0; "= done REPORT", "= ask QUESTION"
//
// $WORK stands for the path of the workspace.
type transcript struct {
	t       testing.TB
	root    string
	timeout time.Duration
	shell   *Shell
	site    *site
}

func newTranscript(t testing.TB, files []txtar.File) *transcript {
	tr := &transcript{t: t, root: t.TempDir(), timeout: 20 * time.Second}
	for _, f := range files {
		name := filepath.Join(tr.root, filepath.FromSlash(f.Name))
		check(t, os.MkdirAll(filepath.Dir(name), 0o755))
		check(t, os.WriteFile(name, f.Data, 0o644))
	}
	tr.open(Builtins())
	return tr
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newBox opens a real sandbox; without one there is nothing to test.
func newBox(t testing.TB, root string, timeout time.Duration) *sandbox.Box {
	t.Helper()
	box, err := sandbox.New(context.Background(), sandbox.Policy{Root: root, Timeout: timeout})
	check(t, err)
	t.Cleanup(func() { box.Close() })
	return box
}

func (tr *transcript) open(cmds []*Command) {
	store, err := memory.Open(context.Background(), ":memory:")
	check(tr.t, err)
	tr.t.Cleanup(func() { store.Close() })
	library, err := skills.Open("", nil)
	check(tr.t, err)
	tr.shell = NewShell(Env{Box: newBox(tr.t, tr.root, tr.timeout), Memory: store, Session: "s", Skills: library}, cmds)
}

// play runs the session and returns it with the output that happens now. each is
// called after every command.
func (tr *transcript) play(session string, each func(line, stdin string, r Result)) string {
	var out strings.Builder
	all := strings.SplitAfter(session, "\n")
	for i := 0; i < len(all); i++ {
		l := all[i]
		switch {
		case strings.HasPrefix(l, "\t"), strings.HasPrefix(l, "= "):
			continue
		case strings.HasPrefix(l, "@ "):
			tr.directive(strings.Fields(l[2:]))
		}
		out.WriteString(l)
		if !strings.HasPrefix(l, "$ ") {
			continue
		}
		line, n := gather(l[2:], all[i+1:], "> ")
		stdin, m := gather("", all[i+1+n:], "< ")
		for _, more := range all[i+1 : i+1+n+m] {
			out.WriteString(more)
		}
		i += n + m
		line, stdin = tr.expand(line), tr.expand(stdin)
		r := tr.shell.Do(context.Background(), strings.TrimSuffix(line, "\n"), stdin)
		check(tr.t, r.Err)
		out.WriteString(tr.format(r))
		if each != nil {
			each(line, stdin, r)
		}
	}
	return out.String()
}

func gather(text string, next []string, prefix string) (string, int) {
	n := 0
	for n < len(next) && (strings.HasPrefix(next[n], prefix) || next[n] == strings.TrimSpace(prefix)+"\n") {
		text += strings.TrimPrefix(strings.TrimPrefix(next[n], strings.TrimSpace(prefix)), " ")
		n++
	}
	return text, n
}

func (tr *transcript) expand(text string) string { return strings.ReplaceAll(text, "$WORK", tr.root) }

func (tr *transcript) directive(words []string) {
	switch words[0] {
	case "grant":
		cmds, err := Grant(Builtins(), words[1:])
		check(tr.t, err)
		tr.open(cmds)
	case "timeout":
		d, err := time.ParseDuration(words[1])
		check(tr.t, err)
		tr.timeout = d
		tr.open(Builtins())
	case "remember":
		tr.remember(words[1:])
	case "elsewhere":
		tr.elsewhere()
	case "web":
		network := sandbox.NetHost
		if len(words) > 1 {
			network = sandbox.NetProxy
		}
		tr.site = newSite(tr.t, filepath.Join(tr.root, "www"))
		tr.shell.Env.Box, tr.shell.Env.Web = tr.site.web(tr.t, tr.root, network, words[1:]...)
	case "search":
		tr.shell.Env.Web.Search = tr.site.URL
	default:
		tr.t.Fatalf("unknown directive %q", words)
	}
}

// remember seeds a new session with something to be found.
func (tr *transcript) remember(words []string) {
	ctx, env := context.Background(), &tr.shell.Env
	s, err := env.Memory.NewSession(ctx, "a task", "a model")
	check(tr.t, err)
	env.Session = s.ID
	o := memory.Observation{ID: "obs_1", Cmd: "python3 test.py", Status: 1, Output: "test.py line 3: AssertionError\n"}
	check(tr.t, env.Memory.Observe(ctx, s.ID, o))
	if len(words) == 0 {
		return
	}
	n, err := strconv.Atoi(words[0])
	check(tr.t, err)
	o = memory.Observation{ID: "obs_2", Cmd: "make test"}
	for i := range n {
		o.Output += fmt.Sprintf("%03d: compiling the unit number%d\n", i+1, i+1)
	}
	check(tr.t, env.Memory.Observe(ctx, s.ID, o))
}

// elsewhere adds a session that is over, with an observation, a note and a report.
func (tr *transcript) elsewhere() {
	ctx, store := context.Background(), tr.shell.Env.Memory
	const other = "20260102-150405-k7qa"
	add := func(kind string, body any) {
		_, err := store.Append(ctx, other, kind, body)
		check(tr.t, err)
	}
	add(memory.KindStart, map[string]string{"task": "mend the lexer"})
	add(memory.KindObservation, memory.Observation{ID: "obs_1", Cmd: "read lexer.go", Output: "func lex(input string) []token\n"})
	add(memory.KindNote, map[string]string{"key": "secret", "text": "the lexer is mine"})
	add(memory.KindStop, map[string]string{"stop": "done", "task": "mend the lexer", "report": "Quotes are lexed."})
}

// format writes a result as the transcript shows it.
func (tr *transcript) format(r Result) string {
	var b strings.Builder
	for l := range strings.Lines(strings.ReplaceAll(r.Output, tr.root, "$WORK")) {
		b.WriteString("\t" + l)
	}
	if r.Done {
		b.WriteString(strings.TrimRight("= done "+r.Report, " ") + "\n")
	}
	if r.Asked {
		b.WriteString("= ask " + strings.ReplaceAll(r.Report, "\n", " | ") + "\n")
	}
	if r.Status != OK {
		fmt.Fprintf(&b, "= %d\n", r.Status)
	}
	return b.String()
}

func archives(t *testing.T) []string {
	names, err := filepath.Glob("testdata/*.txtar")
	check(t, err)
	return names
}

func TestTranscripts(t *testing.T) {
	for _, name := range archives(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			check(t, err)
			tr := newTranscript(t, archive.Files)
			got := tr.play(string(archive.Comment), nil)
			if got == string(archive.Comment) {
				return
			}
			if *update {
				archive.Comment = []byte(got)
				check(t, os.WriteFile(name, txtar.Format(archive), 0o644))
				return
			}
			t.Errorf("%s says something else now (-update accepts it):\n%s", name, difference(string(archive.Comment), got))
		})
	}
}

// difference shows the first line that is not the same, and what is around it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			from := max(0, i-3)
			return fmt.Sprintf("line %d\nwant\n%s\ngot\n%s", i+1,
				strings.Join(w[from:min(len(w), i+6)], "\n"), strings.Join(g[from:min(len(g), i+6)], "\n"))
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

func TestEveryCommandHasTranscript(t *testing.T) {
	for _, c := range Builtins() {
		data, err := os.ReadFile("testdata/" + c.Name + ".txtar")
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if !bytes.Contains(data, []byte("\n$ "+c.Name)) && !bytes.HasPrefix(data, []byte("$ "+c.Name)) {
			t.Errorf("testdata/%s.txtar never runs %s", c.Name, c.Name)
		}
	}
}

// TestHintsWork runs every "try:" line of the transcripts where it appears, in a
// copy of the workspace, with the text that the refused command had.
func TestHintsWork(t *testing.T) {
	var tries atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, name := range archives(t) {
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				archive, err := txtar.ParseFile(name)
				check(t, err)
				tr := newTranscript(t, archive.Files)
				tr.play(string(archive.Comment), func(line, stdin string, r Result) { tries.Add(tr.hints(line, stdin, r)) })
			})
		}
	})
	if tries.Load() < 20 {
		t.Errorf("only %d hints were tried", tries.Load())
	}
}

// hints runs the hints of one result and counts them.
func (tr *transcript) hints(line, stdin string, r Result) (n int64) {
	for l := range strings.Lines(r.Output) {
		if hint, ok := strings.CutPrefix(l, "try: "); ok && r.Status != OK {
			n++
			tr.try(line, strings.TrimSuffix(hint, "\n"), stdin)
		}
	}
	if n > 1 {
		tr.t.Errorf("%q is refused with %d hints, want at most one", line, n)
	}
	return n
}

func (tr *transcript) try(line, hint, stdin string) {
	root := tr.t.TempDir()
	check(tr.t, os.CopyFS(root, regular{os.DirFS(tr.root)}))
	env := tr.shell.Env
	env.Box = newBox(tr.t, root, tr.timeout)
	again := NewShell(env, tr.shell.cmds)
	again.Env.seen = maps.Clone(tr.shell.Env.seen)
	if r := again.Do(context.Background(), hint, stdin); r.Status != OK || r.Err != nil {
		tr.t.Errorf("after %q the hint %q fails with %d %v:\n%s", line, hint, r.Status, r.Err, r.Output)
	}
}

func TestNamesAreInTheOrderOfHelp(t *testing.T) {
	cmds, err := Grant(Builtins(), []string{"help", "read"})
	check(t, err)
	s := NewShell(Env{}, cmds)
	if got, want := s.Names(), []string{"read", "help"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := Grant(Builtins(), []string{"fly"}); err == nil {
		t.Error("an unknown command was granted")
	}
}
