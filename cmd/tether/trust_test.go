package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A place is a user with a workspace and a home of their own.
type place struct {
	t        *testing.T
	home, ws string
	own      string // the user's own configuration
}

func newPlace(t *testing.T, own, workspace string) place {
	p := place{t: t, home: t.TempDir(), ws: t.TempDir()}
	p.own = filepath.Join(p.home, "own.toml")
	p.write(p.own, own)
	p.write(workspaceFile(p.ws), workspace)
	return p
}

func (p place) write(file, text string) {
	p.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) env(name string) string {
	return map[string]string{"HOME": p.home, "TETHER_CONFIG": p.own}[name]
}

func (p place) load() (Config, error) { return loadConfig(p.own, workspaceFile(p.ws), p.env) }

// trust runs tether config trust --yes and returns what it printed.
func (p place) trust() (string, error) {
	var out bytes.Buffer
	err := trustConfig(context.Background(), &program{In: strings.NewReader("y\n"), Out: &out, Err: &out, Getenv: p.env}, p.ws, true)
	return out.String(), err
}

// TestWorkspaceOnlyNarrows: what a workspace's file may say without consent, what
// with it, and what never.
func TestWorkspaceOnlyNarrows(t *testing.T) {
	const free, asks, never = "free", "asks", "never"
	cases := []struct{ own, text, want string }{
		{"", "[sandbox]\nprofile = \"read-only\"\n", free},
		{"", "[sandbox]\nprofile = \"off\"\n", never},
		{"", "[sandbox]\nprofile = \"full\"\n", never},
		{"", "[sandbox]\nprofile = \"landlock\"\n", never},
		{"[sandbox]\nprofile = \"read-only\"\n", "[sandbox]\nprofile = \"workspace-write\"\n", asks},
		{"[sandbox]\nprofile = \"full\"\n", "[sandbox]\nprofile = \"landlock\"\n", free},
		{"", "[sandbox]\ntimeout = \"1h\"\n", asks},
		{"", "[sandbox]\ntimeout = \"0s\"\n", asks},
		{"", "[sandbox]\ntimeout = \"1s\"\n", free},
		{"", "[sandbox]\noutput = 99999999\n", asks},
		{"", "[sandbox]\nmemory = 9999999999\n", asks},
		{"", "[sandbox]\nmemory = 100000000\ngrowth = 1000\n", free},
		{"", "[sandbox]\nnetwork = \"host\"\n", never},
		{"", "[sandbox]\nnetwork = \"proxy\"\n", asks},
		{"", "[network]\nallow = [\"pkg.go.dev\"]\n", asks},
		{"[network]\nallow = [\"pkg.go.dev\"]\n", "[sandbox]\nnetwork = \"off\"\n", free},
		{"[network]\nallow = [\"pkg.go.dev\"]\n", "[network]\nallow = []\n", free},
		{"[network]\nallow = [\"pkg.go.dev\", \"x.org\"]\n", "[network]\nallow = [\"x.org\"]\n", free},
		{"[network]\nallow = [\".golang.org\"]\n", "[network]\nallow = [\"Pkg.golang.org\"]\n", free},
		{"[network]\nallow = [\".golang.org\"]\n", "[network]\nallow = [\"golang.org\"]\n", free},
		{"[network]\nallow = [\".golang.org\"]\n", "[network]\nallow = [\"evilgolang.org\"]\n", asks},
		{"[network]\nallow = [\".golang.org\"]\n", "[network]\nallow = [\"pkg.golang.org:8443\"]\n", asks},
		{"[network]\nallow = [\"golang.org\"]\n", "[network]\nallow = [\".golang.org\"]\n", asks},
		// What is listed and not reached today is reached with a flag tomorrow.
		{"[sandbox]\nnetwork = \"off\"\n", "[network]\nallow = [\"evil.org\"]\n", asks},
		{"[sandbox]\nnetwork = \"host\"\n", "[sandbox]\nnetwork = \"proxy\"\n[network]\nallow = [\"x.org\"]\n", free},
		{"", "[model]\nname = \"openai/x\"\n", asks},
		{"", "[model]\ntemperature = 0.5\n", free},
		{"", "[run]\ntools = [\"read\", \"done\"]\n", free},
		{"[run]\ntools = [\"read\", \"done\"]\n", "[run]\ntools = [\"sh\"]\n", asks},
		{"", "[run]\nverify = [\"make test\"]\nprotect = [\"tests/**\"]\n", free},
		{"", "[run]\ngate_change = \"report\"\n", asks},
		{"[run]\ngate_change = \"report\"\n", "[run]\ngate_change = \"fail\"\n", free},
		{"", "[run]\nsteps = 41\n", asks},
		{"", "[run]\nsteps = 7\ntime = \"5m\"\ntokens = 1000\n", free},
		{"[run]\ntime = \"5m\"\n", "[run]\ntime = \"0s\"\n", asks},
		{"[run]\ntokens = 5\n", "[run]\ntokens = 0\n", asks},
	}
	for _, c := range cases {
		p := newPlace(t, c.own, c.text)
		before, got := "", free
		_, err := p.load()
		if err != nil {
			before, got = err.Error(), asks
			if _, err := p.trust(); err != nil {
				got = never
			} else if _, err := p.load(); err != nil {
				t.Errorf("%q was trusted, and still: %v", c.text, err)
			}
		}
		if got != c.want {
			t.Errorf("%q over %q: %s (%s), want %s", c.text, c.own, got, before, c.want)
		}
		if hint := "tether config trust --dir " + p.ws; strings.Contains(before, hint) != (c.want == asks) {
			t.Errorf("%q: %q, and the next step is %q only if that helps", c.text, before, hint)
		}
	}
}

// TestGatesAddUp: a workspace adds gates and their files and takes none away.
func TestGatesAddUp(t *testing.T) {
	p := newPlace(t, "[run]\nverify = [\"one\"]\nprotect = [\"a\"]\n", "[run]\nverify = [\"two\"]\nprotect = [\"b\"]\n")
	c, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(append(c.Run.Verify, c.Run.Protect...), " "); got != "one two a b" {
		t.Errorf("gates and files %q", got)
	}
}

// TestTrustIsOfContent: a changed file is asked for again, the old one is still
// known, and untrust takes all of it back.
func TestTrustIsOfContent(t *testing.T) {
	const one, two = "[model]\nname = \"openai/one\"\n", "[model]\nname = \"openai/two\"\n"
	p := newPlace(t, "", one)
	if said, err := p.trust(); err != nil || !strings.Contains(said, `  | name = "openai/one"`) || !strings.Contains(said, `model.name: "openai/one" instead of ""`) {
		t.Fatalf("trust: %v, and it shows:\n%s", err, said)
	}
	file := trustFile(p.env)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, mode %v, want 0600", file, err, info.Mode())
	}
	p.write(workspaceFile(p.ws), two)
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "it has changed since you trusted it\nread it and decide: tether config trust") {
		t.Errorf("a changed file: %v", err)
	}
	p.write(workspaceFile(p.ws), one)
	if _, err := p.load(); err != nil {
		t.Errorf("as it was trusted: %v", err)
	}
	if err := untrustConfig(&program{Err: &bytes.Buffer{}, Getenv: p.env}, p.ws); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "it is not trusted") {
		t.Errorf("after untrust: %v", err)
	}
	other := newPlace(t, "", one)
	other.home = p.home
	other.own = p.own
	if _, err := p.trust(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.load(); err == nil {
		t.Error("the same file in another workspace is trusted too")
	}
}

// TestTrustIsBounded: the oldest consents of a workspace go.
func TestTrustIsBounded(t *testing.T) {
	l := trustList{Trusted: []trust{{Workspace: "/other"}}}
	for i := range maxTrusted + 3 {
		l.Trusted = append(l.Trusted, trust{Workspace: "/ws", SHA256: strings.Repeat("x", i)})
	}
	l = l.bounded("/ws")
	if n := len(l.Trusted); n != maxTrusted+1 || l.Trusted[0].Workspace != "/other" || len(l.Trusted[1].SHA256) != 3 {
		t.Errorf("%d entries, %v", n, l.Trusted)
	}
}

// TestTrustFileOfOthers: what others could have written is not believed, and
// nor is what is no list.
func TestTrustFileOfOthers(t *testing.T) {
	p := newPlace(t, "", "[model]\nname = \"x\"\n")
	if _, err := p.trust(); err != nil {
		t.Fatal(err)
	}
	file := trustFile(p.env)
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "chmod 600 "+file) {
		t.Errorf("a list that anyone may write: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.own, file); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "others may write") && !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.write(file, "{}")
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "no list of trusted files") {
		t.Errorf("no list: %v", err)
	}
}

// TestPlacesOfOnesOwn: no variable moves the user's files into the workspace,
// also not through a link.
func TestPlacesOfOnesOwn(t *testing.T) {
	p := newPlace(t, "", "")
	link := filepath.Join(p.home, "link")
	if err := os.Symlink(p.ws, link); err != nil {
		t.Fatal(err)
	}
	p.write(filepath.Join(p.ws, "own.toml"), "[sandbox]\nprofile = \"off\"\n")
	for name, value := range map[string]string{
		"TETHER_CONFIG": filepath.Join(p.ws, "own.toml"), "XDG_CONFIG_HOME": p.ws, "XDG_STATE_HOME": filepath.Join(p.ws, "not", "there"),
		"TETHER_CONFIG ": filepath.Join(link, "own.toml"),
	} {
		env := func(n string) string {
			return map[string]string{"HOME": p.home, strings.TrimSpace(name): value}[n]
		}
		if _, err := loadConfig(userConfig(env), workspaceFile(p.ws), env); err == nil || !strings.Contains(err.Error(), "would be in the workspace") {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for name, value := range map[string]string{"TETHER_STATE": p.ws, "XDG_STATE_HOME": filepath.Join(link, "x")} {
		env := func(n string) string { return map[string]string{"HOME": p.home, name: value}[n] }
		if _, _, err := places(env, p.ws); err == nil || !strings.Contains(err.Error(), "in the workspace") {
			t.Errorf("places with %s=%s: %v", name, value, err)
		}
	}
}

// TestVisible: nothing that a file holds acts on the screen or hides on it.
func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb é 漢": "a\tb é 漢", "\x1b[2J": `\x1b[2J`, "x\r": `x\r`, "\u202eoff": `\u202eoff`, "a\u200bb": `a\u200bb`, "\x9b": `\x9b`,
		"\u009b": `\u009b`, "\xff": `\xff`, "\x00": `\x00`, "\ufeff": `\ufeff`, "\u2028": `\u2028`,
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
}
