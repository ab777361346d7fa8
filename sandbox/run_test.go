//go:build linux

package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHello(t *testing.T) {
	for _, profile := range []Profile{"", WorkspaceWrite, ReadOnly, Full, Off} {
		b := newBox(t, Policy{Profile: profile})
		o := shell(t, b, `echo "hello  'world'"`)
		if o.Status != 0 || o.Output != "hello  'world'\n" || o.Killed != "" || o.Left != 0 || o.Elapsed <= 0 {
			t.Errorf("%q: %+v", profile, o)
		}
	}
}

func TestDefaults(t *testing.T) {
	p := newBox(t, Policy{}).Policy()
	if p.Profile != WorkspaceWrite || p.Timeout != DefaultTimeout || p.Output != DefaultOutput || !filepath.IsAbs(p.Root) {
		t.Errorf("defaults: %+v", p)
	}
}

func TestStatus(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile})
		for _, tt := range []struct {
			line   string
			want   int
			output string // contained
		}{
			{"true", 0, ""},
			{"exit 3", 3, ""},
			{"false", 1, ""},
			{"exit 125", 125, ""},
			{"nonesuch-program", 127, "bash: line 1: nonesuch-program: command not found"},
			{"./folder", 126, "folder"},
			{"if then", 2, "syntax error near unexpected token `then'"},
			{`echo "open`, 2, "unexpected EOF"},
			{"kill -9 $$", 137, ""},
			{"kill -SEGV $$", 139, ""},
			{"-x", 127, "-x: command not found"},
			{"set -e; false; true", 1, ""},
			{"trap 'exit 9' EXIT", 9, ""},
			{"exec sh -c 'exit 5'", 5, ""},
			{"echo out; echo err >&2; exit 4", 4, "out\nerr\n"},
		} {
			if err := os.MkdirAll(filepath.Join(b.Policy().Root, "folder"), 0o755); err != nil {
				t.Fatal(err)
			}
			o := shell(t, b, tt.line)
			if o.Status != tt.want || !strings.Contains(o.Output, tt.output) {
				t.Errorf("%s, %s: status %d, want %d; %q", profile, tt.line, o.Status, tt.want, o.Output)
			}
		}
	}
}

func TestArgvIsNotAShell(t *testing.T) {
	b := newBox(t, Policy{})
	args := []string{"", "a b", `"`, "'", "$(id)", "`id`", "\\", "*", "-n", "\n", "é"}
	o := do(t, b, Cmd{Argv: append([]string{"printf", "<%s>"}, args...)})
	if want := "<" + strings.Join(args, "><") + ">"; o.Output != want || o.Status != 0 {
		t.Errorf("got %q (status %d), want %q", o.Output, o.Status, want)
	}
}

func TestCannotStart(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile})
		for name, tt := range map[string]struct {
			c    Cmd
			want int
		}{
			"missing":  {Cmd{Argv: []string{"nonesuch-program"}}, 127},
			"nothing":  {Cmd{}, 126},
			"too long": {Cmd{Shell: "true " + strings.Repeat("x", 200_000)}, 126},
			"NUL":      {Cmd{Shell: "echo a\x00b"}, 126},
			"no dir":   {Cmd{Shell: "true", Dir: "gone"}, 126},
			"outside":  {Cmd{Shell: "true", Dir: "../.."}, 126},
			"NUL dir":  {Cmd{Shell: "true", Dir: "a\x00--bind\x00/\x00/"}, 126},
		} {
			if o := do(t, b, tt.c); o.Status != tt.want || o.Output == "" {
				t.Errorf("%s, %s: %+v, want status %d and a reason", profile, name, o, tt.want)
			}
		}
	}
}

func TestStdin(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Off} {
		b := newBox(t, Policy{Profile: profile})
		text := strings.Repeat("line\n", 100_000) // more than a pipe holds
		o := do(t, b, Cmd{Shell: "wc -l", Stdin: strings.NewReader(text)})
		if strings.TrimSpace(o.Output) != "100000" {
			t.Errorf("%s: counted %q", profile, o.Output)
		}
		if o := do(t, b, Cmd{Shell: "head -c 4", Stdin: strings.NewReader(text)}); o.Output != "line" || o.Status != 0 {
			t.Errorf("%s: input that is not read: %+v", profile, o)
		}
		if o := shell(t, b, "cat; [ -t 0 ] || [ -t 1 ] || echo none"); o.Output != "none\n" {
			t.Errorf("%s: closed input, no terminal: %+v", profile, o)
		}
		silent, w := io.Pipe()
		if o := do(t, b, Cmd{Shell: "exit 6", Stdin: silent}); o.Status != 6 {
			t.Errorf("%s: input that never comes: %+v", profile, o)
		}
		w.Close()
	}
}

func TestDir(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, Full, Off} {
		b := newBox(t, Policy{Profile: profile})
		outside := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(b.Policy().Root, "out")); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			dir, line, want string
			status          int
		}{
			{"", "mkdir -p 'a b/c'; cd 'a b/c'", "a b/c", 0},
			{"a b/c", "cd ..; exit 3", "a b", 3},
			{"a b", "cd /", "a b", 0},
			{"a b", "cd ../..", "a b", 0},
			{"a b", "cd ../out; true", "a b", 0},
			{"a b", "(cd c)", "a b", 0},
			{"a b", "if then", "a b", 2},
			{"a b", "cd c; kill -9 $$", "a b", 137},
			{"a b", forge("/etc"), "a b", 137},
			{"a b", forge("$PWD/../../.."), "a b", 137},
			{"a b", forge("$PWD/nonesuch"), "a b", 137},
			{"a b", forge("c"), "a b", 137},
			{"a b", "set -eu; cd c; false", "a b/c", 1},
			{"a b/c", "cd ../..", "", 0},
			{"a b/c", "rmdir ../c; true", "a b/c", 0},
		} {
			o := do(t, b, Cmd{Shell: tt.line, Dir: tt.dir})
			if o.Dir != tt.want || o.Status != tt.status {
				t.Errorf("%s: %q in %q ended in %q with %d, want %q with %d (%s)", profile, tt.line, tt.dir, o.Dir, o.Status, tt.want, tt.status, o.Output)
			}
		}
		if o := do(t, b, Cmd{Argv: []string{"pwd"}, Dir: "a b"}); strings.TrimSpace(o.Output) != filepath.Join(b.Policy().Root, "a b") {
			t.Errorf("%s: pwd: %+v", profile, o)
		}
	}
}

// forge is a line that reports a folder itself and keeps the shell from doing so.
func forge(dir string) string {
	return `{ echo "` + dir + `" >/proc/1/fd/6 || echo "` + dir + `" >&6; } 2>/dev/null; kill -9 $$`
}

func TestHeadAndTail(t *testing.T) {
	b := newBox(t, Policy{})
	o := shell(t, b, "seq 1 100000")
	if !strings.HasPrefix(o.Output, "1\n2\n3\n") || !strings.HasSuffix(o.Output, "\n99999\n100000\n") || o.Killed != "" || o.Left == 0 {
		t.Errorf("kept %d bytes, left %d, killed %q", len(o.Output), o.Left, o.Killed)
	}
}
