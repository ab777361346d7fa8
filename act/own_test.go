package act

import (
	"context"
	"strings"
	"testing"
)

func own(t *testing.T, o Own) *Command {
	t.Helper()
	c, err := o.Command()
	check(t, err)
	return c
}

// TestOwn: a command of the user gets the arguments as they are and stdin as
// stdin, runs where the model is, and is known by its table alone.
func TestOwn(t *testing.T) {
	root := t.TempDir()
	cmds := append(Builtins(),
		own(t, Own{Name: "count", Summary: "count words", Usage: "[-l]", Argv: []string{"wc", "-w"}}),
		own(t, Own{Name: "show", Summary: "show arguments", Usage: "WORD…", Shell: `printf '<%s>' "$@"; echo; cat; pwd`}),
		own(t, Own{Name: "build", Summary: "run the tool", Argv: []string{"./bin/tool"}}),
	)
	s := NewShell(Env{Box: newBox(t, root, 0)}, cmds)
	for _, c := range []struct{ line, stdin, want string }{
		{"count", "a b c\n", "3\n"},
		{"count -l", "a b c\n", "1"},
		{`show 'a b' "$HOME" ; read nope.txt`, "", "<a b><$HOME>\n"},
		{"show x", "from stdin\n", "<x>\nfrom stdin\n"},
		{"mkdir -p bin d && printf '#!/bin/sh\\npwd >out; echo made' > bin/tool && chmod +x bin/tool && cd d", "", "The working directory is d."},
		{"build", "", "made\nout now holds:\n" + root + "/d\n"},
		{"show x | tr a-z A-Z", "", "<X>\n"},
		{"show x > kept.txt", "", "<x>"},
		{"echo piped | count", "", "1\n"},
		{"help count", "", "usage: count [-l]\ncount words.\n"},
		{"count --help", "", "usage: count [-l]\n"},
		{"sh count", "x y", "2\n"},
	} {
		r := s.Do(context.Background(), c.line, c.stdin)
		check(t, r.Err)
		if !strings.Contains(r.Output, c.want) {
			t.Errorf("%s: status %d\n%s\nwant %q", c.line, r.Status, r.Output, c.want)
		}
	}
	if s.Env.Dir != "d" {
		t.Errorf("the working directory is %q", s.Env.Dir)
	}
	if !strings.Contains(s.List(), "count [-l] - count words\n") {
		t.Errorf("it is not in the list:\n%s", s.List())
	}
	without := NewShell(Env{Box: newBox(t, root, 0)}, Builtins())
	if r := without.Do(context.Background(), "count", "a"); r.Status != NotFound {
		t.Errorf("without its table it is there: %+v", r)
	}
}

func TestOwnRefuses(t *testing.T) {
	ok := Own{Name: "fmt", Summary: "format", Shell: "gofmt -w ."}
	if _, err := ok.Command(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Own){
		"that there is":      func(o *Own) { o.Name = "read" },
		"already: take":      func(o *Own) { o.Name = "web" },
		"no name":            func(o *Own) { o.Name = "Do It" },
		"nothing to run":     func(o *Own) { o.Shell = "" },
		"no summary":         func(o *Own) { o.Summary = " " },
		"one line":           func(o *Own) { o.Summary = "a\nb" },
		"in the prompt":      func(o *Own) { o.Summary = strings.Repeat("long ", 12) },
		"without a name":     func(o *Own) { o.Shell, o.Argv = "", []string{""} },
		"run is a line":      func(o *Own) { o.Argv = []string{"x"} },
		"is the name of a c": func(o *Own) { o.Name = "while" },
	} {
		o := ok
		change(&o)
		if _, err := o.Command(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
