//go:build linux

package sandbox

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLeftoversAreSwept(t *testing.T) {
	root := t.TempDir()
	name := func() string { return ".tether-" + rand.Text() + ".tmp" }
	gone := []string{name(), "a/b/" + name(), "a/" + name()}
	stays := []string{".tether-x.tmp", name() + "x", "x" + name(), strings.ToLower(name()), ".tether-" + strings.Repeat("1", 26) + ".tmp", "a/file"}
	for _, rel := range slices.Concat(gone, stays) {
		write(t, filepath.Join(root, rel), "half")
	}
	folder, link, double, locked := name(), name(), name(), name()
	write(t, filepath.Join(root, folder, "x"), "")
	write(t, filepath.Join(root, double), "")
	write(t, filepath.Join(root, locked), "")
	if err := os.Symlink("a/file", filepath.Join(root, link)); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, double), filepath.Join(root, "second")); err != nil {
		t.Fatal(err)
	}
	writing, err := os.Open(filepath.Join(root, locked))
	if err == nil {
		err = unix.Flock(int(writing.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Close()
	for _, profile := range []Profile{ReadOnly, WorkspaceWrite} {
		b := newBox(t, Policy{Root: root, Profile: profile})
		if b.looked != nil {
			<-b.looked
		}
		for _, rel := range gone {
			if exists(filepath.Join(root, rel)) != (profile == ReadOnly) {
				t.Errorf("%s: %s: is there: %v", profile, rel, profile != ReadOnly)
			}
		}
		for _, rel := range append(stays, folder, link, double, locked) {
			if !exists(filepath.Join(root, rel)) {
				t.Errorf("%s: %s was taken away", profile, rel)
			}
		}
	}
}

// Two processes in one workspace: the start of one does not take away what the other is writing.
func TestSweepBesideWrites(t *testing.T) {
	root := t.TempDir()
	f, err := openFiles(Policy{Root: root, Profile: WorkspaceWrite}, root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	const writes = 60
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < writes && err == nil; i++ {
			err = f.WriteFile("file", []byte(fmt.Sprint(i)))
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil || read(t, filepath.Join(root, "file")) != fmt.Sprint(writes-1) {
				t.Errorf("%v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(root, ".tether-*")); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
			return
		default:
			entries, err := os.ReadDir(root)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if leftover(e.Name()) {
					f.sweep([]string{e.Name()})
				}
			}
		}
	}
}
