//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// planted are the paths of findings.
func planted(fs []Finding) string {
	var paths []string
	for _, f := range fs {
		paths = append(paths, f.Path)
	}
	return strings.Join(paths, " ")
}

func TestPlanted(t *testing.T) {
	b := newBox(t, Policy{})
	for _, tt := range []struct{ line, want, why string }{
		{"true", "", ""},
		{"mkdir src && echo 'package x' > src/x.go && ln -s src/x.go y && chmod +x src/x.go", "", ""},
		{"mkdir sub && git init -q sub", "sub/.git", "git repository"},
		{"echo 'gitdir: ../x' > src/.git", "src/.git", "git repository"},
		{"git init -q --bare data", "data", "bare"},
		{"mkdir a a/objects a/refs && touch a/HEAD", "a", "bare"},
		{"mkdir b b/objects b/refs", "", ""},
		{"touch b/HEAD", "b", "bare"},
		{"echo x > src/.envrc", "src/.envrc", "direnv"},
		{"echo {} > .mcp.json", ".mcp.json", "servers"},
		{"mkdir .vscode && echo {} > .vscode/x.json", "", ""},
		{"mkdir src/.vscode && echo {} > src/.vscode/tasks.json", "src/.vscode/tasks.json", "Visual Studio"},
		{"mkdir .claude src/.cursor .idea src/.devcontainer src/.gemini", ".claude .idea src/.cursor src/.devcontainer src/.gemini", ""},
		{"echo x > src/AGENTS.md; echo x > tether.toml", "tether.toml src/AGENTS.md", "from it"},
		{"printf '#!/bin/sh' > src/git", "", ""},
		{"chmod +x src/git", "src/git", "name of a tool"},
		{"cp src/git src/make", "src/make", "name of a tool"},
		{"mkfifo pipe", "pipe", "FIFO"},
		{"ln -s /etc/passwd out; ln -s ../../x up; ln -s /usr/bin/env env; ln -s ~/x home; ln -s nowhere dangling", "home out up", "leaves the workspace, to "},
		{"ln -s $PWD abs; ln -s $PWD/src/x.go file", "", ""},
		{"ln -s $PWD src/round; ln -s round/../secret src/hidden", "src/hidden", "leaves the workspace, to round/../secret"},
		{"ln -sf /etc/shadow out", "out", "to /etc/shadow"},
		{"rm src/.envrc; echo y > src/.envrc; mkdir x; mv sub x/sub", "x/sub/.git", "git repository"},
		{"python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", "s", "socket"},
		{"true", "", ""},
	} {
		o := shell(t, b, tt.line)
		if got := planted(o.Planted); got != tt.want {
			t.Errorf("%s: found %q, want %q (status %d, %s)", tt.line, got, tt.want, o.Status, o.Output)
		}
		for _, f := range o.Planted {
			if !strings.Contains(f.Why, tt.why) || f.Why == "" {
				t.Errorf("%s: %s: %q, want %q in it", tt.line, f.Path, f.Why, tt.why)
			}
		}
	}
}

// What was there before the first command is not what a command planted.
func TestPlantedByOthers(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, ReadOnly, Full, Off} {
		root := t.TempDir()
		write(t, filepath.Join(root, "sub/.envrc"), "x")
		write(t, filepath.Join(root, "sub/.git/HEAD"), "x")
		write(t, filepath.Join(root, ".tether/tether.db"), "x")
		write(t, filepath.Join(root, "state/.envrc"), "x")
		if err := os.Symlink("/etc", filepath.Join(root, "out")); err != nil {
			t.Fatal(err)
		}
		b := newBox(t, Policy{Root: root, Profile: profile, State: filepath.Join(root, "state")})
		write(t, filepath.Join(root, "state/.mcp.json"), "x")
		if o := shell(t, b, "true"); len(o.Planted) != 0 {
			t.Errorf("%s: %v", profile, o.Planted)
		}
	}
}

// Only where nothing forbids it can a command set these bits.
func TestPlantedSetID(t *testing.T) {
	for profile, want := range map[Profile]string{WorkspaceWrite: "", Full: "file", Off: "file"} {
		b := newBox(t, Policy{Profile: profile})
		shell(t, b, "touch file; mkdir folder")
		o := shell(t, b, "chmod 4755 file; chmod g+s folder; true")
		if got := planted(o.Planted); got != want || want != "" && !strings.Contains(o.Planted[0].Why, "set-id") {
			t.Errorf("%s: %v, want %q", profile, o.Planted, want)
		}
	}
}

// A command that was killed may have left something, too; one that was cancelled is told of after the next.
func TestPlantedByTheKilled(t *testing.T) {
	b := newBox(t, Policy{Output: 1000})
	if o := shell(t, b, "touch .envrc; yes"); planted(o.Planted) != ".envrc" || o.Killed == "" {
		t.Errorf("%+v", o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Outcome)
	go func() {
		o, _ := b.Run(ctx, Cmd{Shell: "touch .mcp.json; sleep 300"})
		done <- o
	}()
	until(t, "the command has written", func() bool { return exists(filepath.Join(b.Policy().Root, ".mcp.json")) })
	cancel()
	if o := <-done; len(o.Planted) != 0 {
		t.Errorf("cancelled: %v", o.Planted)
	}
	if o := shell(t, b, "true"); planted(o.Planted) != ".mcp.json" {
		t.Errorf("after the cancelled: %v", o.Planted)
	}
}

// scanned returns a scanner over a folder and what it finds after the first look.
func scanned(t *testing.T, p Policy, change func()) (*scanner, []Finding) {
	t.Helper()
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s := newScanner(p, root)
	s.first(t.Context())
	change()
	return s, s.fresh(t.Context())
}

func TestScanBounds(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat("d/", scanDepth+2))
	write(t, filepath.Join(deep, ".envrc"), "x")
	s, got := scanned(t, Policy{Root: dir, Profile: WorkspaceWrite}, func() { write(t, filepath.Join(deep, ".mcp.json"), "x") })
	if len(got) != 1 || !strings.Contains(got[0].Why, "more than 16 deep") {
		t.Errorf("%v", got)
	}
	if again := s.fresh(t.Context()); len(again) != 0 {
		t.Errorf("told again: %v", again)
	}
}

func TestScanOfManyFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/x"), "")
	_, got := scanned(t, Policy{Root: dir, Profile: WorkspaceWrite}, func() {
		for i := range scanEntries { // links to one file: they cost no blocks
			if err := os.Link(filepath.Join(dir, "a/x"), filepath.Join(dir, "a", fmt.Sprint(i))); err != nil {
				if err = os.WriteFile(filepath.Join(dir, "a", fmt.Sprint(i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	if len(got) != 1 || !strings.Contains(got[0].Why, "more than 50000 files") {
		t.Errorf("%v", got)
	}
}

func TestScanTellsSome(t *testing.T) {
	dir := t.TempDir()
	_, got := scanned(t, Policy{Root: dir, Profile: WorkspaceWrite}, func() {
		for i := range scanTold + 7 {
			write(t, filepath.Join(dir, fmt.Sprint(i), ".envrc"), "x")
		}
	})
	if len(got) != scanTold+1 || got[scanTold].Why != "7 more of the kind" {
		t.Errorf("%d findings, the last %v", len(got), got[len(got)-1])
	}
}

// A folder whose time of change is the same is not read again, a file in a changed one is seen at once.
func TestScanReadsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "old/x"), "")
	s, _ := scanned(t, Policy{Root: dir, Profile: WorkspaceWrite}, func() {})
	until(t, "the folder is remembered", func() bool { s.fresh(t.Context()); return s.folders["old"].entries == 1 })
	l := s.folders["old"]
	l.found = []Finding{{"old/x", "remembered"}}
	s.folders["old"] = l
	if got := s.fresh(t.Context()); planted(got) != "old/x" {
		t.Errorf("an unchanged folder: %v", got)
	}
	write(t, filepath.Join(dir, "old/.envrc"), "")
	if got := s.fresh(t.Context()); planted(got) != "old/.envrc" {
		t.Errorf("a changed folder: %v", got)
	}
}

// Unreadable and vanishing folders, and names of every kind, are no reason to stop.
func TestScanOfOddThings(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "before"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, got := scanned(t, Policy{Root: dir, Profile: WorkspaceWrite}, func() {
		write(t, filepath.Join(dir, "closed/.envrc"), "x")
		write(t, filepath.Join(dir, "new\nline\xff/.envrc"), "x")
		if err := unix.Mkfifo(filepath.Join(dir, "-rf"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "closed"), 0); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "closed"), 0o700) })
	want := []string{"-rf", "new\nline\xff/.envrc"}
	if os.Geteuid() == 0 { // reads it all the same
		want = []string{"-rf", "closed/.envrc", "new\nline\xff/.envrc"}
	}
	var paths []string
	for _, f := range got {
		paths = append(paths, f.Path)
	}
	if !slices.Equal(paths, want) {
		t.Errorf("found %q, want %q", paths, want)
	}
}

// filled makes a workspace of n files, ten in a folder.
func filled(tb testing.TB, n int) string {
	dir := tb.TempDir()
	for i := range n {
		write(tb, filepath.Join(dir, fmt.Sprintf("d%d/e%d/f%d", i/100, i/10, i)), "x")
	}
	return dir
}

func BenchmarkScan(b *testing.B) {
	dir := filled(b, 5000)
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for profile, name := range map[Profile]string{WorkspaceWrite: "by-times", Full: "thorough"} {
		b.Run(name, func(b *testing.B) {
			s := newScanner(Policy{Root: dir, Profile: profile}, root)
			s.first(b.Context())
			for b.Loop() {
				if got := s.fresh(b.Context()); len(got) != 0 {
					b.Fatal(got)
				}
			}
		})
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			newScanner(Policy{Root: dir, Profile: WorkspaceWrite}, root).first(b.Context())
		}
	})
}

func BenchmarkBoxRunManyFiles(b *testing.B) {
	box := newBox(b, Policy{Root: filled(b, 5000)})
	for b.Loop() {
		if o := do(b, box, Cmd{Argv: []string{"true"}}); o.Status != 0 {
			b.Fatal(o)
		}
	}
}
