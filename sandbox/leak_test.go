//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// belongings are what commands could leave behind, counted.
type belongings struct {
	files, children, mounts, goroutines int
	workspace, temp                     string // what is in there, by name
}

func takeStock(t *testing.T, root string) belongings {
	t.Helper()
	list := func(pattern string) []string {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	s := belongings{files: len(list("/proc/self/fd/*")), mounts: strings.Count(read(t, "/proc/self/mountinfo"), "\n"), goroutines: runtime.NumGoroutine()}
	for _, f := range list("/proc/self/task/*/children") { // zombies too
		data, err := os.ReadFile(f) // a thread may end just now
		if err == nil {
			s.children += len(strings.Fields(string(data)))
		}
	}
	s.workspace = strings.Join(append(list(root+"/*"), list(root+"/.*")...), "\n")
	s.temp = strings.Join(list(filepath.Join(os.TempDir(), "*")), "\n")
	return s
}

// After a thousand acts of every kind nothing of them is left: no process, not even a dead one, no mount, no open file,
// no goroutine, no folder that stood in for a missing one.
func TestThousandActs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // nobody else's files come and go there
	root := t.TempDir()
	write(t, filepath.Join(root, "file"), "text\n")
	b := newBox(t, Policy{Root: root, Cache: t.TempDir(), Timeout: 20 * time.Second, Output: 1 << 20})
	hasty := newBox(t, Policy{Root: root})
	hasty.policy.Timeout = 50 * time.Millisecond // for its acts, not for its own probe
	shell(t, b, "true")                          // what is made once is there now
	before := takeStock(t, root)
	const acts, hands = 1000, 4
	next := make(chan int)
	var wg sync.WaitGroup
	for range hands {
		wg.Go(func() {
			for i := range next {
				if err := act(t.Context(), b, hasty, i); err != nil {
					t.Errorf("act %d: %v", i, err)
				}
			}
		})
	}
	for i := range acts {
		next <- i
	}
	close(next)
	wg.Wait()
	var after belongings
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("before: %+v\nafter: %+v", before, after)
		}
	})
	until(t, "all is given back", func() bool {
		after = takeStock(t, root)
		return after == before || t.Failed()
	})
	t.Logf("%d acts: %d files, %d processes, %d mounts, %d goroutines, before and after", acts, after.files, after.children, after.mounts, after.goroutines)
}

// act runs one command; most of a session's are of the first kinds, and every kind of end comes up.
func act(ctx context.Context, b, hasty *Box, i int) error {
	var c Cmd
	want := 0
	switch i % 25 {
	default:
		c.Argv = []string{"true"}
	case 1, 2, 3, 4, 5:
		c.Shell = "cat file"
	case 6:
		c.Shell, want = "exit 7", 7
	case 7:
		c.Argv, want = []string{"nonesuch-program"}, 127
	case 8:
		c.Shell = "sleep 300 & setsid sleep 300 & (sleep 300 &) ; true"
	case 9:
		c.Shell, want = "yes", statusKilled
	case 10:
		c.Shell, c.Stdin = "head -c 1 >/dev/null", strings.NewReader(strings.Repeat("x", 1<<18))
	case 11:
		c.Shell, want = "kill -9 $$", statusKilled
	case 12:
		c.Shell, want = "true \x00", statusCannotRun
	case 13:
		c.Shell, c.Dir, want = "true", "nonesuch", statusCannotRun
	case 14:
		b, c.Shell, want = hasty, "sh -c 'kill -STOP $$' & sleep 300", statusTimedOut
	case 15:
		cancelled, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := b.Run(cancelled, Cmd{Shell: "sleep 300"}); err != context.DeadlineExceeded {
			return fmt.Errorf("cancelled: %v", err)
		}
		return nil
	}
	o, err := b.Run(ctx, c)
	if err == nil && o.Status != want {
		err = fmt.Errorf("%+v: %+v, want status %d", c, o, want)
	}
	return err
}
