package memory

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// roleRebuild makes the index anew again and again, and says when it begins.
func roleRebuild(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, args[0])
	for err == nil {
		fmt.Println("begin")
		err = s.Rebuild(ctx)
		fmt.Println("end")
	}
	return err
}

// TestKillInRebuild ends a process by SIGKILL while it makes the index anew, as
// soon as a part of the new one is on the disk. The old one must still be there
// and right, and the log with it.
func TestKillInRebuild(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	n := fill(t, s, 4000, "strings", "bytes", "sort", "net")
	remember(t, s, "s0", "needle", "the only zymurgy here")
	want := look(t, s, "", "reader of bytes", 5)
	if err := s.Close(); err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	for round := range 5 {
		killedInRebuild(t, path)
		s := at(t, path)
		intact(t, s)
		if _, err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		if got := look(t, s, "", "reader of bytes", 5); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("round %d: got %v, want %v", round, got, want)
		}
		if got := look(t, s, "s0", "zymurgy", 5); len(got) != 1 {
			t.Errorf("round %d: the note: %v", round, got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("5 kills while %d passages were indexed", n)
}

// killedInRebuild starts a rebuild and kills it in its middle: when the log of
// SQLite has a megabyte of it, of about twelve.
func killedInRebuild(t *testing.T, path string) {
	t.Helper()
	c := start(t, "rebuild", path)
	c.says(t, "begin")
	for deadline := time.Now().Add(20 * time.Second); ; {
		info, err := os.Stat(path + "-wal")
		if err == nil && info.Size() > 1<<20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the index does not reach the disk")
		}
	}
	c.Process.Kill()
	if c.lines.Scan() {
		t.Errorf("it was not killed in the middle: %q", c.lines.Text())
	}
	c.Wait()
}
