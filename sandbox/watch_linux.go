package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The pace of the watchdogs. A look at the free space is one system call, and a page cache takes 5 GB a second; a look at
// the memory reads a file for each process. What ends before the first look costs nothing.
const (
	paceDisk   = 10 * time.Millisecond // 50 MB at most meanwhile; five times as long let a whole attack of 480 MB through
	paceMemory = 250 * time.Millisecond
	paceWalk   = 500 * time.Millisecond // and one at the files, a system call for each
)

// watchdog ends a command that takes more memory or disk than the policy allows. Limits on one process or one file
// cannot: a command has many of both.
type watchdog struct {
	policy Policy
	began  time.Time
	disks  []disk
	memory func(exact bool) int64          // bytes that the processes hold together
	usage  func(ctx context.Context) usage // what the command wrote
	walk   time.Time                       // when the files are counted next
	rest   time.Time                       // not before this, in any case
}

// disk is a file system that commands can fill, as it was before the command.
type disk struct {
	free  func() (space, error)
	start space
	floor int64 // bytes
}

// space is what a file system has left.
type space struct {
	bytes, size int64
	files       int64 // 0 if it does not count them
}

// usage is what a command wrote.
type usage struct {
	bytes int64 // on disk
	files int64 // how many were made
	whole bool  // all was counted
}

// newWatchdog notes how the disks are. The folders are those that a command can fill: two on one disk watch it twice.
func newWatchdog(p Policy, now time.Time, dirs []string) *watchdog {
	// The kernel stamps files with the time of its last tick, at most 10 ms ago.
	w := &watchdog{policy: p, began: now.Add(-10 * time.Millisecond), walk: now.Add(paceWalk)}
	c := counter{dirs: dirs, since: w.began, old: map[string]int64{}}
	w.usage = c.count
	for _, dir := range dirs {
		d := disk{free: func() (space, error) { return spaceAt(dir) }}
		var err error
		if d.start, err = d.free(); err == nil {
			d.floor = floor(p.Floor, d.start)
			w.disks = append(w.disks, d)
		}
	}
	return w
}

// floor returns how much of a disk has to stay free. A disk that is nearly full already must not end every command, so
// half of what is left may be used in any case.
func floor(asked int64, s space) int64 {
	if asked <= 0 {
		asked = min(DefaultFloor, s.size/20)
	}
	return min(asked, s.bytes/2)
}

// spaceAt asks the file system of a folder.
func spaceAt(dir string) (space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return space{}, err
	}
	block := st.Bsize
	return space{bytes: int64(st.Bavail) * block, size: int64(st.Blocks) * block, files: int64(st.Ffree)}, nil
}

// guardResources starts the watchdog of a command. The channel tells the limit that it passed; call the function when it
// is over. Without a sandbox there is none, as there are no other limits.
func (b *Box) guardResources(p *process) (<-chan string, func()) {
	passed := make(chan string, 1)
	if b.policy.Profile == Off {
		return passed, func() {}
	}
	dirs := []string{b.policy.Root}
	if b.policy.Cache != "" {
		dirs = append(dirs, b.policy.Cache)
	}
	if p.private != "" {
		dirs = append(dirs, string(p.private))
	}
	w := newWatchdog(b.policy, time.Now(), dirs)
	if p.group == nil && p.status != nil {
		w.memory = func(exact bool) int64 { return residents(p.first(), exact) }
	}
	if p.guarded() {
		guard := p.cmd.Process.Pid
		w.memory = func(exact bool) int64 { return residentsOf("/proc", descendants(guard), exact) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(paceDisk)
		defer ticker.Stop()
		if limit := w.watch(ctx, ticker.C); limit != "" {
			passed <- limit
		}
	})
	return passed, func() { cancel(); done.Wait() }
}

// watch looks at each tick until the context ends, and returns the limit that was passed, or "".
func (w *watchdog) watch(ctx context.Context, ticks <-chan time.Time) string {
	nextMemory := w.began.Add(paceMemory)
	for {
		select {
		case <-ctx.Done():
			return ""
		case now := <-ticks:
			if w.diskPassed(ctx, now) {
				return killedDisk
			}
			if now.Before(nextMemory) || w.memory == nil {
				continue
			}
			nextMemory = now.Add(paceMemory)
			// The sum counts shared pages once for each process, so it is only a reason to look closely.
			if w.memory(false) > w.policy.Memory && w.memory(true) > w.policy.Memory {
				return killedMemory
			}
		}
	}
}

// diskPassed reports whether a disk is nearly full, or the command made or grew files beyond its budget. The files are
// counted now and then, and at once when as much space is gone: that is cheap to ask for, but others use the disk too.
func (w *watchdog) diskPassed(ctx context.Context, now time.Time) bool {
	var lost, made int64
	for _, d := range w.disks {
		s, err := d.free()
		if err != nil {
			continue // the folder was removed meanwhile: nothing can grow there
		}
		if s.bytes < d.floor {
			return true
		}
		lost, made = max(lost, d.start.bytes-s.bytes), max(made, d.start.files-s.files)
	}
	suspect := lost > w.policy.Growth || made > int64(w.policy.Inodes)
	if now.Before(w.rest) || !suspect && now.Before(w.walk) {
		return false
	}
	began := time.Now()
	u := w.usage(ctx)
	if ctx.Err() != nil {
		return false
	}
	const share = 50 // counting takes at most a fiftieth of one processor
	w.rest = now.Add(share * time.Since(began))
	w.walk = now.Add(paceWalk)
	return u.bytes > w.policy.Growth || u.files > int64(w.policy.Inodes) || !u.whole && lost > 2*w.policy.Growth
}

// residents returns the sum of the memory of all processes in the namespace whose first process is init: resident, or
// exactly, with shared pages divided among those that share them. The list comes from the /proc of the sandbox, which
// has no others in it.
func residents(init int, exact bool) int64 {
	if init == 0 {
		return 0 // it has not begun
	}
	dir := fmt.Sprintf("/proc/%d/root/proc", init)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return residentsOf(dir, pids, exact)
}

// residentsOf adds up the memory of processes as a /proc shows them.
func residentsOf(proc string, pids []int, exact bool) int64 {
	var sum int64
	for _, pid := range pids {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if exact {
			sum += proportional(filepath.Join(dir, "smaps_rollup"))
		} else {
			sum += resident(filepath.Join(dir, "statm"))
		}
	}
	return sum
}

// resident reads the second number of a statm file, in pages.
func resident(file string) int64 {
	data, err := os.ReadFile(file)
	fields := bytes.Fields(data)
	if err != nil || len(fields) < 2 {
		return 0 // the process ended meanwhile
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64) // the kernel's own number
	return pages * int64(os.Getpagesize())
}

// ownMemory names the lines of a smaps_rollup file that are memory of the processes themselves: pages of files, which the
// kernel can drop at any time, are in none of them.
var ownMemory = []string{"Pss_Anon:", "Pss_Shmem:", "SwapPss:"}

// proportional adds up those lines, which read "Pss_Anon:  104 kB".
func proportional(file string) int64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	var kib int64
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && slices.Contains(ownMemory, string(fields[0])) {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64) // the kernel's own number
			kib += n
		}
	}
	return kib << 10
}

// counter adds up what was written below some folders since a moment: files that were made, and what files grew that were
// there. How large these were at the beginning is not known, only how large they are when they are counted first; so they
// may grow by the budget once more.
type counter struct {
	dirs   []string
	since  time.Time
	old    map[string]int64 // bytes on disk
	before bool             // it has counted before
	links  map[uint64]bool  // files with several names that this count has had
}

// maxCounted bounds a count: a second's work.
const maxCounted = 1_000_000 // entries

// count walks once.
func (c *counter) count(ctx context.Context) usage {
	u, seen := usage{whole: true}, 0
	c.links = map[uint64]bool{}
	for _, top := range c.dirs {
		for queue := []string{top}; len(queue) > 0; queue = queue[1:] {
			if ctx.Err() != nil || seen > maxCounted {
				u.whole = false
				return u
			}
			seen += c.folder(ctx, queue[0], &u, &queue)
		}
	}
	c.before = true
	return u
}

// folder counts one folder and queues those in it. A name that leads through a link is not followed.
func (c *counter) folder(ctx context.Context, dir string, u *usage, queue *[]string) int {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxCounted + 1) // what can be read counts
	for i, name := range names {
		if i%1000 == 999 && ctx.Err() != nil { // nobody waits for the count any more
			break
		}
		var st unix.Statx_t
		const want = unix.STATX_TYPE | unix.STATX_NLINK | unix.STATX_INO | unix.STATX_BLOCKS | unix.STATX_CTIME | unix.STATX_BTIME
		if unix.Statx(int(f.Fd()), name, unix.AT_SYMLINK_NOFOLLOW, want, &st) != nil {
			continue // gone meanwhile
		}
		path := filepath.Join(dir, name)
		if !stampedBefore(st.Ctime, c.since) {
			c.add(u, path, &st)
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			*queue = append(*queue, path)
		}
	}
	return len(names)
}

// add counts something that was changed since the beginning. A file system that keeps no time of birth does not tell
// what is new from what is not; the first count then takes everything for old.
func (c *counter) add(u *usage, path string, st *unix.Statx_t) {
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if c.links[st.Ino] {
			return
		}
		c.links[st.Ino] = true
	}
	size, dated := int64(st.Blocks)*512, st.Mask&unix.STATX_BTIME != 0
	base, known := c.old[path]
	switch {
	case dated && !stampedBefore(st.Btime, c.since), !dated && c.before && !known:
		u.bytes += size
		u.files++
	case known:
		u.bytes += max(0, size-base)
	default:
		c.old[path] = size
	}
}

// stampedBefore compares a time of the kernel.
func stampedBefore(t unix.StatxTimestamp, since time.Time) bool {
	return time.Unix(t.Sec, int64(t.Nsec)).Before(since)
}
