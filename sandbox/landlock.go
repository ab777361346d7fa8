package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// LandlockPromise says what the profile Landlock holds and what it does not, for a person who is about to choose it.
const LandlockPromise = `landlock is weaker than bubblewrap; choose it only where that cannot run.
It holds: no file outside the workspace, the cache and a private temporary folder is made, written or deleted; outside of
these, system folders and tools, no file is read and no folder listed; no socket is opened, so there is no network, no
loopback and no docker.sock; no shared memory or queue of the system; no other process is signalled, traced or limited;
what still runs when the command returns is killed; time, output, memory, disk, open files and processes are bounded.
It does not hold: .git, editor and agent settings in the workspace can be changed; mode, owner, times and attributes of
your other files can be changed, and a guessed name be asked for; the priority of your other processes can be changed;
what a command left running lives on if somebody kills tether's guard.`

// landlockABI is the least version of the kernel's interface that the promise needs: 6 (Linux 6.12) keeps signals and
// abstract sockets in. There is no going on with less.
const landlockABI = 6

// landlockMissing explains a version that is too low, or returns nil.
func landlockMissing(abi int) error {
	switch {
	case abi >= landlockABI:
		return nil
	case abi == 0:
		return &UnavailableError{Cause: "this kernel has no Landlock, or does not start it",
			Repair: "use Linux 6.12 or later, with landlock in the list of its start option lsm=; " + textOff}
	}
	return &UnavailableError{Cause: fmt.Sprintf("this kernel has version %d of Landlock, and %d is needed to keep signals in", abi, landlockABI),
		Repair: "use Linux 6.12 or later; " + textOff}
}

// fence is what Landlock leaves open. All else is closed.
type fence struct {
	Read    []string `json:"read"`  // files and folders with all below
	Omit    []string `json:"omit"`  // but not these
	Write   []string `json:"write"` // folders with all below
	Devices []string `json:"devices"`
}

// Files of /proc that say something about the machine and nothing about its processes. The rest of /proc shows what
// other programs were started with.
var procFiles = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems", "/proc/loadavg", "/proc/uptime", "/proc/sys"}

// fenceOf returns the fence of a policy: the same folders that the other profiles show.
func fenceOf(p Policy, h host) *fence {
	f := &fence{Read: []string{"/usr", "/etc", "/opt", "/nix/store"}, Omit: slices.Concat(h.Files, h.Folders),
		Write:   []string{p.Root},
		Devices: []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}}
	for _, d := range h.Dirs {
		f.Read = append(f.Read, "/"+d)
	}
	for _, t := range h.Tools {
		f.Read = append(f.Read, t.From)
	}
	f.Read = append(f.Read, procFiles...)
	for _, d := range []string{p.Cache, h.Private} {
		if d != "" {
			f.Write = append(f.Write, d)
		}
	}
	return f
}

// privateDir is a folder for one command's temporary files and home, "" if there is none.
type privateDir string

// makePrivate makes the folder and turns to it the facts that the command's environment is made of: its home has nothing
// but links to tools and the cache.
func (h *host) makePrivate(p Policy) (privateDir, error) {
	made, err := os.MkdirTemp(h.Temp, "tether-")
	if err != nil {
		return "", err
	}
	d, home := privateDir(made), filepath.Join(made, "home")
	h.Tasks = tasks(h.EUID)
	links := []tool{{From: p.Cache, At: filepath.Join(home, ".cache")}}
	tools := slices.Clone(h.Tools)
	for i, t := range tools {
		if rest, ok := strings.CutPrefix(t.At, h.Home+"/"); ok {
			tools[i].At = filepath.Join(home, rest)
			links = append(links, tools[i])
		}
	}
	h.Tools, h.Home, h.Private, h.Temp = tools, home, made, filepath.Join(made, "tmp")
	if err = os.MkdirAll(h.Temp, 0o700); err == nil {
		err = makeHome(links)
	}
	if err != nil {
		d.remove()
		return "", err
	}
	return d, nil
}

// makeHome makes the links, and a folder where one leads nowhere.
func makeHome(links []tool) error {
	for _, l := range links {
		if err := os.MkdirAll(filepath.Dir(l.At), 0o700); err != nil {
			return err
		}
		make := func() error { return os.Symlink(l.From, l.At) }
		if l.From == "" {
			make = func() error { return os.Mkdir(l.At, 0o700) }
		}
		if err := make(); err != nil {
			return err
		}
	}
	return nil
}

// remove takes the folder away, also the parts that the command closed to its owner.
func (d privateDir) remove() {
	if d == "" || os.RemoveAll(string(d)) == nil {
		return
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return
	}
	defer root.Close()
	openAll(root, ".", 0)
	_ = os.RemoveAll(string(d)) // what is left is in the user's own temporary folder
}

// openAll gives the owner back every folder below one, as deep as is reasonable. The root keeps links from leading out.
func openAll(root *os.Root, dir string, depth int) {
	const deepest = 100
	if depth > deepest || root.Chmod(dir, 0o700) != nil {
		return
	}
	f, err := root.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if e.IsDir() {
			openAll(root, filepath.Join(dir, e.Name()), depth+1)
		}
	}
}

// prepareLandlock checks that the kernel can hold the promise.
func (b *Box) prepareLandlock(ctx context.Context) error {
	if err := landlockMissing(kernelABI()); err != nil {
		return err
	}
	if p := b.policy; p.State != "" && within(p.State, p.Root) {
		return &RefusedError{p.Root, "the state of tether lies in it, and landlock cannot hide it there", "name another folder with TETHER_STATE"}
	}
	return b.probe(ctx, "landlock")
}

// tempInside is the folder for temporary files as a command sees it.
func tempInside(p Policy, h host) string {
	if p.Profile == Landlock {
		return h.Temp
	}
	return "/tmp"
}
