//go:build linux

package sandbox

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// swapper keeps each name a folder or file most of the time, and a link for a moment.
const swapper = `
import os, random, time
os.mkdir("v1"); os.mkdir(".vscode"); open(".envrc", "w").close()
os.symlink("/oldroot%[1]s/keys", "l1"); os.symlink("/oldroot%[1]s/new", "l2"); os.symlink("/oldroot%[1]s/file", "l3"); os.symlink("/oldroot%[1]s", "l4")
open("begun", "w").close()
def swap(name, link):
    os.rename(name, "aside"); os.rename(link, name)
    time.sleep(random.random() / 500)
    os.rename(name, link); os.rename("aside", name)
while not os.path.exists("stop"):
    swap(*random.choice([(".vscode", "l1"), (".vscode", "l2"), (".envrc", "l3"), (".envrc", "l3"), ("sub", "l4")]))
    time.sleep(random.random() / 50)
`

// One command swaps folders and files for links as fast as it can, while others are set up in the same workspace: no
// link is followed out of it, neither to read nor to make something there (CVE-2026-87766).
func TestLinksSwappedMeanwhile(t *testing.T) {
	base, secret := t.TempDir(), rand.Text()
	root, out := filepath.Join(base, "ws"), filepath.Join(base, "out")
	write(t, filepath.Join(out, "keys/id"), secret)
	write(t, filepath.Join(root, "sub/.git/config"), "[core]\n")
	a, b := newBox(t, Policy{Root: root}), newBox(t, Policy{Root: root})
	until(t, "the first looks are done", func() bool { <-a.looked; <-b.looked; return true })
	line := "exec python3 -c '" + fmt.Sprintf(swapper, out) + "'"
	done := make(chan error)
	go func() {
		_, err := a.Run(t.Context(), Cmd{Shell: line})
		done <- err
	}()
	until(t, "the swapping has begun", func() bool { return exists(filepath.Join(root, "begun")) })
	ran := 0
	for range 300 {
		o, err := b.Run(t.Context(), Cmd{Shell: "cat .vscode/* sub/* 2>/dev/null; true"})
		if err == nil {
			ran++
		}
		if strings.Contains(o.Output, secret) {
			t.Fatalf("a key of the host shows: %+v", o)
		}
	}
	write(t, filepath.Join(root, "stop"), "")
	<-done
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 {
		t.Errorf("made outside: %v, %v", entries, err)
	}
	t.Logf("%d of 300 commands ran", ran)
}

// The launcher itself, without the checks that come before it: with the host frozen it makes nothing at the end of a link.
func TestFrozenLauncher(t *testing.T) {
	b := newBox(t, Policy{})
	base := t.TempDir()
	root, out := filepath.Join(base, "ws"), filepath.Join(base, "out")
	write(t, filepath.Join(root, "file"), "")
	write(t, filepath.Join(out, "x"), "")
	for name, target := range map[string]string{"end": out + "/new", "above": out} {
		if err := os.Symlink("/oldroot"+target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, frozen := range []bool{false, true} {
		h := b.host
		if !frozen {
			h.Freeze = nil
		}
		for _, dest := range []string{"end", "above/new"} {
			v := vector{"--unshare-user", "--unshare-pid", "--bind", root, root}
			v.system(h)
			v.freeze(h)
			v.add("--ro-bind", "/usr/bin/env", filepath.Join(root, dest), "--", "/usr/bin/touch", filepath.Join(root, "touched"))
			text, err := exec.Command(h.Bwrap, v...).CombinedOutput()
			if made := exists(filepath.Join(out, "new")); made == frozen && b.host.Freeze != nil || made && frozen {
				t.Errorf("%s, frozen %v: made %v: %v, %s", dest, frozen, made, err, text)
			}
			_ = os.Remove(filepath.Join(out, "new"))
		}
		v := vector{"--unshare-user", "--unshare-pid", "--bind", root, root}
		v.system(h)
		v.freeze(h)
		v.add("--", "/usr/bin/touch", filepath.Join(root, "touched"))
		if text, err := exec.Command(h.Bwrap, v...).CombinedOutput(); err != nil || !exists(filepath.Join(root, "touched")) {
			t.Errorf("frozen %v: what is bound before cannot be written: %v, %s", frozen, err, text)
		}
		_ = os.Remove(filepath.Join(root, "touched"))
	}
}

func TestWritableMounts(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, `a b\c`)
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	info := "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw\n" +
		"2 1 0:2 / /proc rw - proc proc rw\n" +
		"3 1 0:3 / " + strings.NewReplacer(`\`, `\134`, " ", `\040`).Replace(odd) + " rw,nosuid - xfs /dev/x rw\n" +
		"4 1 0:4 / " + dir + " ro,relatime - ext4 /dev/y rw\n" +
		"5 1 0:5 / " + dir + "/missing rw - tmpfs tmpfs rw\n" +
		"6 1 0:6 / / rw - ext4 /dev/sda rw\n" + "nonsense\n"
	if got, want := writableMounts(info), []string{"/", odd}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
