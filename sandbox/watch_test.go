//go:build linux

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ticked runs a watchdog over ticks of 50 ms and returns the limit, and the tick at which it was passed (0: none).
func ticked(t *testing.T, w *watchdog, n int) (string, int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks, passed := make(chan time.Time), make(chan string, 1)
	go func() { passed <- w.watch(ctx, ticks) }()
	for i := 1; i <= n; i++ {
		select {
		case ticks <- w.began.Add(time.Duration(i) * 50 * time.Millisecond):
		case limit := <-passed:
			return limit, i - 1
		}
	}
	cancel()
	return <-passed, n
}

// fake is a watchdog over one disk that loses bytes and files at each look.
func fake(p Policy, bytes, files int64, u usage) (*watchdog, *int) {
	settleWatch(&p)
	start := space{bytes: 100 << 30, size: 200 << 30, files: 1e6}
	w, walks := &watchdog{policy: p, began: time.Now()}, new(int)
	w.walk = w.began.Add(paceWalk)
	now := start
	w.disks = []disk{{start: start, floor: floor(p.Floor, start), free: func() (space, error) {
		now.bytes, now.files = now.bytes-bytes, now.files-files
		return now, nil
	}}}
	w.usage = func(context.Context) usage { *walks++; return u }
	return w, walks
}

func TestDiskWatchdog(t *testing.T) {
	little, much := usage{bytes: 1 << 20, files: 10, whole: true}, usage{bytes: 3 << 30, files: 10, whole: true}
	for name, tt := range map[string]struct {
		p            Policy
		bytes, files int64 // lost at each tick
		u            usage // what is counted
		limit        string
		tick, walks  int
	}{
		"nothing":             {Policy{}, 0, 0, little, "", 9, 0},
		"nothing for long":    {Policy{}, 0, 0, little, "", 100, 10},
		"growth":              {Policy{}, 1 << 30, 0, much, killedDisk, 3, 1},
		"small growth":        {Policy{Growth: 1 << 20}, 1 << 20, 0, much, killedDisk, 2, 1},
		"growth, others free": {Policy{}, -1 << 30, 0, much, killedDisk, 10, 1},
		"by somebody else":    {Policy{}, 1 << 30, 0, little, "", 12, 10},
		"not all counted":     {Policy{}, 1 << 30, 0, usage{}, killedDisk, 5, 3},
		"floor":               {Policy{}, 25 << 30, 0, usage{whole: true}, killedDisk, 4, 3},
		"own floor":           {Policy{Growth: 1 << 50, Floor: 90 << 30}, 3 << 30, 0, little, killedDisk, 17, 1},
		"many files":          {Policy{Inodes: 100}, 0, 60, usage{files: 120, whole: true}, killedDisk, 2, 1},
		"files of others":     {Policy{Inodes: 100}, 0, 60, usage{files: 20, whole: true}, "", 5, 4},
		"uncounted files":     {Policy{Inodes: 100}, 0, 0, usage{files: 120, whole: true}, killedDisk, 10, 1},
	} {
		w, walks := fake(tt.p, tt.bytes, tt.files, tt.u)
		n := 100
		if tt.limit == "" {
			n = tt.tick
		}
		limit, tick := ticked(t, w, n)
		if limit != tt.limit || tick != tt.tick || *walks != tt.walks {
			t.Errorf("%s: %q after tick %d and %d walks, want %q after %d and %d", name, limit, tick, *walks, tt.limit, tt.tick, tt.walks)
		}
	}
}

func TestFloor(t *testing.T) {
	for _, tt := range []struct{ asked, size, free, want int64 }{
		{0, 1 << 40, 1 << 39, 1 << 30},          // a large disk keeps 1 GiB
		{0, 10 << 30, 8 << 30, (10 << 30) / 20}, // a small one a twentieth
		{0, 1 << 40, 600 << 20, 300 << 20},      // one that is nearly full, half of what it has
		{5 << 30, 1 << 40, 1 << 39, 5 << 30},    // as asked
		{5 << 30, 1 << 40, 4 << 30, 2 << 30},    // but commands must be able to run
	} {
		if got := floor(tt.asked, space{bytes: tt.free, size: tt.size}); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}

func TestMemoryWatchdog(t *testing.T) {
	for name, tt := range map[string]struct {
		rough, exact int64
		limit        string
		tick         int
	}{
		"little":            {10, 10, "", 20},
		"much":              {200, 150, killedMemory, 5},
		"shared":            {200, 90, "", 20},
		"exactly the limit": {100, 100, "", 20},
	} {
		w, _ := fake(Policy{Memory: 100}, 0, 0, usage{})
		closer := 0
		w.memory = func(exact bool) int64 {
			if exact {
				closer++
				return tt.exact
			}
			return tt.rough
		}
		limit, tick := ticked(t, w, 20)
		if limit != tt.limit || tick != tt.tick || tt.rough <= 100 && closer > 0 {
			t.Errorf("%s: %q after tick %d, %d closer looks; want %q after %d", name, limit, tick, closer, tt.limit, tt.tick)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, profile := range []Profile{WorkspaceWrite, ReadOnly, Full} {
		b := newBox(t, Policy{Profile: profile, Memory: 100 << 20, Timeout: time.Minute})
		for name, line := range map[string]string{
			"one":   "echo begun; head -c 400M /dev/zero | tail | cat; sleep 60",
			"eight": "echo begun; for i in 1 2 3 4 5 6 7 8; do (head -c 40M /dev/zero | tail -n 1 | (sleep 60; cat)) & (x=$(head -c 20M /dev/zero | tr '\\0' x); sleep 60) & done; wait",
		} {
			o := shell(t, b, line)
			if o.Killed != "memory limit" || o.Status != 137 || o.TimedOut || !strings.HasPrefix(o.Output, "begun\n") {
				t.Errorf("%s, %s: status %d, killed %q after %v", profile, name, o.Status, o.Killed, o.Elapsed)
			}
		}
	}
}

// Processes that share their memory have it once: 60 MB in five processes are not 300.
func TestSharedMemoryCountsOnce(t *testing.T) {
	b := newBox(t, Policy{Memory: 150 << 20})
	o := shell(t, b, `python3 -c '
import os, time
x = b"x" * (60 << 20)
for i in range(4):
    if os.fork() == 0: time.sleep(1); os._exit(0)
for i in range(4): os.wait()
print(len(x))'`)
	if o.Killed != "" || o.Output != "62914560\n" {
		t.Errorf("%+v", o)
	}
}

// The sum of many files is what no limit on one process bounds: here 480 MB in sixty of them.
func TestDiskLimit(t *testing.T) {
	b := newBox(t, Policy{Growth: 64 << 20, Timeout: time.Minute})
	o := shell(t, b, "i=0; while [ $i -lt 60 ]; do dd if=/dev/zero of=f$i bs=1M count=8 2>/dev/null; i=$((i+1)); done; sleep 60")
	if o.Killed != "disk limit" || o.Status != 137 {
		t.Errorf("%+v", o)
	}
	if got := onDisk(t, b.Policy().Root); got > 200<<20 {
		t.Errorf("%d MiB were written", got>>20)
	}
}

func TestInodeLimit(t *testing.T) {
	b := newBox(t, Policy{Inodes: 1000, Timeout: time.Minute})
	o := shell(t, b, "mkdir d; i=0; while [ $i -lt 50000 ]; do : > d/$i; i=$((i+1)); done; sleep 60")
	if o.Killed != "disk limit" || o.Status != 137 {
		t.Errorf("%+v", o)
	}
}

// The cache lies on the same disk and stays, so it counts.
func TestCacheLimit(t *testing.T) {
	b := newBox(t, Policy{Growth: 32 << 20, Timeout: time.Minute, Cache: filepath.Join(t.TempDir(), "cache")})
	o := shell(t, b, "dd if=/dev/zero of=$HOME/.cache/x bs=1M count=200; sleep 60")
	if o.Killed != "disk limit" {
		t.Errorf("%+v", o)
	}
}

// What was there before is nobody's growth, also if it is touched.
func TestLargeWorkspaceIsNoGrowth(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "large"), strings.Repeat("x", 40<<20))
	b := newBox(t, Policy{Root: root, Growth: 10 << 20})
	if o := shell(t, b, "echo y >> large; rm -f x; head -c 5M /dev/zero > x; sleep 0.7"); o.Killed != "" || o.Status != 0 {
		t.Errorf("%+v", o)
	}
}

func TestCountFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "old"), strings.Repeat("x", 100_000))
	started := time.Now()
	until(t, "the kernel's clock has ticked", func() bool {
		probe := filepath.Join(t.TempDir(), "x")
		write(t, probe, "")
		fi, err := os.Stat(probe)
		return err == nil && fi.ModTime().After(started)
	})
	since := time.Now().Add(-time.Millisecond)
	until(t, "it has ticked again", func() bool {
		probe := filepath.Join(t.TempDir(), "x")
		write(t, probe, "")
		fi, err := os.Stat(probe)
		return err == nil && fi.ModTime().After(since)
	})
	write(t, filepath.Join(dir, "a/b/new"), strings.Repeat("x", 50_000))
	if err := errors.Join(os.Symlink("/", filepath.Join(dir, "link")), os.Link(filepath.Join(dir, "a/b/new"), filepath.Join(dir, "a/twice"))); err != nil {
		t.Fatal(err)
	}
	c := counter{dirs: []string{dir, filepath.Join(dir, "missing")}, since: since, old: map[string]int64{}}
	u := c.count(t.Context())
	if u.files != 4 || u.bytes < 50_000 || u.bytes > 90_000 || !u.whole { // two folders, a file and a link
		t.Errorf("%+v", u)
	}
	grow := func(n int) {
		t.Helper()
		write(t, filepath.Join(dir, "old"), strings.Repeat("x", n))
	}
	grow(200_000)
	if again := c.count(t.Context()); again != u {
		t.Errorf("a file that was there, at first: %+v, want %+v", again, u)
	}
	grow(300_000)
	if again := c.count(t.Context()); again.files != u.files || again.bytes < u.bytes+90_000 || again.bytes > u.bytes+120_000 {
		t.Errorf("what it grew since: %+v after %+v", again, u)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if u := c.count(ctx); u.whole {
		t.Errorf("cancelled: %+v", u)
	}
}

// onDisk is what du says, in bytes.
func onDisk(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		sum += st.Blocks * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// When memory runs out, commands go before everything else.
func TestCommandsAreExpendable(t *testing.T) {
	b := newBox(t, Policy{})
	if o := shell(t, b, "cat /proc/self/oom_score_adj"); o.Output != "500\n" {
		t.Errorf("%q", o.Output)
	}
}
