package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree holds the facts about one workspace that the vector depends on. They change while a session runs, so they are
// gathered before every command.
type tree struct {
	Protect []string // slash paths below the root, bound read-only over themselves
	Hide    []string // absolute folders, covered by an empty read-only one
	GitDirs []string // absolute folders outside, where the git data of a worktree lies: shown read-only
	Hold    []string // the folders of Hide that must be made first, and are taken away again
	Deaf    []string // slash paths below the root: sockets of the host's programs, covered
	Absent  []string // slash paths below the root that would be protected if they existed: who makes them has git run them
}

// protected are the names in a workspace that other programs believe or execute: a command that may write them has code
// run on the host later. tether.toml is tether's own.
var protected = []string{".git", "tether.toml", ".claude", ".codex", ".cursor", ".gemini", ".vscode", ".idea", ".devcontainer",
	".mcp.json", ".envrc", ".gitmodules"}

// gitName is the name by which git finds a repository, in whatever folder.
const gitName = ".git"

// hiddenDir is the folder of a workspace in which tether may keep its state.
const hiddenDir = ".tether"

// inspect gathers the facts about a workspace. It refuses what cannot be protected: the launcher would follow a link
// with rights that the command does not have (CVE-2026-87766), and a file with a second name can be written through it.
func inspect(p Policy, h host) (tree, error) {
	var t tree
	if !launched(p) { // nothing can be covered, but what is asked for can be watched
		t.Protect = p.Protect
		return t, nil
	}
	if err := t.hidden(p, h); err != nil {
		return t, err
	}
	if p.Profile != Full {
		if err := t.git(p, h); err != nil {
			return t, err
		}
		for _, name := range protected[1:] {
			if err := t.protect(p, h, name); err != nil {
				return t, err
			}
		}
	}
	for _, rel := range p.Protect {
		if fi, err := plain(p.Root, rel); err == nil && fi == nil {
			return t, &TamperedError{rel, "it is gone"}
		}
		if err := t.protect(p, h, rel); err != nil {
			return t, err
		}
	}
	return t, nil
}

// protect covers a path that exists, unless it lies in a folder that is covered anyway. With a .git comes what git runs
// beside it.
func (t *tree) protect(p Policy, h host, rel string) error {
	if slices.ContainsFunc(t.Protect, func(q string) bool { return within("/"+rel, "/"+q) }) {
		return nil
	}
	fi, err := plain(p.Root, rel)
	if fi == nil || err != nil {
		return err
	}
	t.Protect = append(t.Protect, rel)
	if path.Base(rel) != gitName || p.Profile == Full {
		return nil
	}
	dir := filepath.Join(p.Root, rel)
	work := filepath.Dir(dir)
	if fi.Mode().IsRegular() { // it may belong to a repository outside, which is shown
		dir = repository(dir)
		t.outside(p, dir)
	}
	return t.runs(p, h, gitRuns(p.Root, work, dir, h.Home))
}

// runs protects what git runs.
func (t *tree) runs(p Policy, h host, rels []string) error {
	for _, rel := range rels {
		fi, err := plain(p.Root, rel)
		if err == nil && fi == nil {
			t.Absent = append(t.Absent, rel)
			continue
		}
		if err := t.protect(p, h, rel); err != nil {
			return err
		}
	}
	return nil
}

// outside shows a repository that does not lie in the workspace.
func (t *tree) outside(p Policy, dir string) {
	if dir != "" && !within(dir, p.Root) && !slices.Contains(t.GitDirs, dir) {
		t.GitDirs = append(t.GitDirs, dir)
	}
}

// git protects the repository as a whole. Where there is none, an empty folder stands in, so that none can be planted and
// git goes on to find the one of a parent folder, whose hooks may lie here.
func (t *tree) git(p Policy, h host) error {
	fi, err := plain(p.Root, gitName)
	if err != nil {
		return err
	}
	if fi != nil && !(fi.IsDir() && emptyDir(filepath.Join(p.Root, gitName))) {
		return t.protect(p, h, gitName)
	}
	t.hold(p, filepath.Join(p.Root, gitName))
	for dir := p.Root; dir != "/"; {
		dir = filepath.Dir(dir)
		file := filepath.Join(dir, gitName)
		if fi, err := os.Lstat(file); err == nil {
			if fi.Mode().IsRegular() {
				file = repository(file)
			}
			return t.runs(p, h, gitRuns(p.Root, dir, file, h.Home))
		}
	}
	return nil
}

// hidden covers tether's state wherever a command could see it.
func (t *tree) hidden(p Policy, h host) error {
	path := filepath.Join(p.Root, hiddenDir)
	fi, err := plain(p.Root, hiddenDir)
	switch {
	case err != nil:
		return err
	case fi != nil && !fi.IsDir():
		t.Protect = append(t.Protect, hiddenDir)
	case p.State != "" && within(p.State, path): // never held: taking it away would take the state away
		t.Hide = append(t.Hide, path)
		return nil
	case fi == nil || emptyDir(path):
		t.hold(p, path)
	default:
		t.Hide = append(t.Hide, path)
	}
	if p.State == "" {
		return nil
	}
	if within(p.State, p.Root) {
		if _, err := plain(p.Root, strings.TrimPrefix(p.State, p.Root+"/")); err != nil {
			return err
		}
		t.Hide = append(t.Hide, p.State)
	} else if visible(p, h, p.State) {
		t.Hide = append(t.Hide, p.State)
	}
	return nil
}

// hold covers a folder that is missing or empty. Nothing is needed where a command cannot make it, and nothing is made
// in a profile that does not protect the workspace.
func (t *tree) hold(p Policy, path string) {
	if p.Profile == WorkspaceWrite {
		t.Hide = append(t.Hide, path)
		t.Hold = append(t.Hold, path)
	}
}

// plain looks at a path below root without following links. It returns nil for what is missing, and an error for a
// link in any place of the path or a file with several names.
func plain(root, rel string) (fs.FileInfo, error) {
	path := root
	var fi fs.FileInfo
	for part := range strings.SplitSeq(rel, "/") {
		path = filepath.Join(path, part)
		var err error
		if fi, err = os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			return nil, &RefusedError{root, rel + " is a symbolic link; tether cannot protect it", "replace the link by what it points to, or remove it"}
		}
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && fi.Mode().IsRegular() && st.Nlink > 1 {
		return nil, &RefusedError{root, rel + " has a second name (hard link); tether cannot protect it", "replace it by a copy of itself"}
	}
	return fi, nil
}

// emptyDir reports whether a folder holds nothing: then it is, or may as well be, a stand-in.
func emptyDir(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// holders keeps the stand-in folders of a command in place while it runs.
type holders struct {
	top  *os.File // the workspace: its path may lead elsewhere by now, where nothing must be made
	dirs []*os.File
}

// makeHolders makes the folders, all in the workspace itself, and locks them, shared: several commands, also of several
// processes, may run in one workspace, and removing a mount point on the host takes the cover off inside.
func makeHolders(top *os.File, paths []string) (holders, error) {
	hs := holders{top: top}
	for _, path := range paths {
		f, err := holdDir(top, filepath.Base(path))
		if err != nil {
			hs.release()
			return holders{}, err
		}
		hs.dirs = append(hs.dirs, f)
	}
	return hs, nil
}

// holdDir makes one folder and locks it. A command that ends at the same moment may take the folder away between the
// two, hence the second look.
func holdDir(top *os.File, name string) (*os.File, error) {
	const tries = 100 // each lost one means that another command ended just then
	for range tries {
		err := unix.Mkdirat(int(top.Fd()), name, 0o755)
		made := err == nil
		if !made && !errors.Is(err, fs.ErrExist) {
			return nil, &RefusedError{filepath.Clean(top.Name()), "the folder that keeps a command from making " + name + " cannot be made (" + err.Error() + ")",
				"see that you can write there, or take --sandbox read-only"}
		}
		fd, err := unix.Openat(int(top.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			if made { // by a umask that takes everything, or without a descriptor left
				_ = unix.Unlinkat(int(top.Fd()), name, unix.AT_REMOVEDIR) // the first error is the one to tell
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		f := os.NewFile(uintptr(fd), name)
		// Waits: the exclusive lock is held only for the moment in which a folder is taken away.
		if err := unix.Flock(fd, unix.LOCK_SH); err == nil && sameEntry(top, f) {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("%s comes and goes; is another program removing it?", name)
}

// sameEntry reports whether an open folder is still the one that its name in the workspace leads to.
func sameEntry(top, f *os.File) bool {
	var a, b unix.Stat_t
	return unix.Fstat(int(f.Fd()), &a) == nil && unix.Fstatat(int(top.Fd()), f.Name(), &b, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		a.Dev == b.Dev && a.Ino == b.Ino
}

// release removes the folders that nobody else holds. One that was filled meanwhile (a person ran "git init") stays.
func (hs holders) release() {
	for _, f := range slices.Backward(hs.dirs) {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && sameEntry(hs.top, f) {
			_ = unix.Unlinkat(int(hs.top.Fd()), f.Name(), unix.AT_REMOVEDIR) // not empty: it is somebody's now
		}
		f.Close()
	}
}

// pins are open files by which the launcher shows the workspace and the protected paths in it.
type pins []*os.File

// pin opens what the tree protects, no part of a path being a link. The launcher takes the very files: whatever a path
// comes to name afterwards, no other file of the machine is shown in its place.
func (b *Box) pin(t tree) (pins, error) {
	var ps pins
	for _, rel := range t.Protect {
		f, err := openBeneath(b.files.top, rel)
		if err != nil {
			ps.close()
			return nil, err
		}
		ps = append(ps, f)
	}
	for _, dir := range t.GitDirs {
		f, err := openPlain(dir)
		if err != nil {
			ps.close()
			return nil, &RefusedError{b.policy.Root, dir + " was replaced while a command was set up (" + err.Error() + ")", "run one command at a time in this workspace"}
		}
		ps = append(ps, f)
	}
	return ps, nil
}

// openPlain opens a folder outside that was found a moment ago. It may lie in a cache or another workspace, where a command
// can have put a link in its place.
func openPlain(dir string) (*os.File, error) {
	fd, err := openUnlinked(dir)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir), nil
}

func (ps pins) close() {
	for _, f := range ps {
		f.Close()
	}
}

// openBeneath opens a path without following any link in it.
func openBeneath(dir *os.File, rel string) (*os.File, error) {
	at := dir
	for part := range strings.SplitSeq(rel, "/") {
		fd, err := unix.Openat(int(at.Fd()), part, pathOnly|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if at != dir {
			at.Close()
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: rel, Err: err}
		}
		at = os.NewFile(uintptr(fd), rel)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(at.Fd()), &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink != 1 {
		at.Close()
		return nil, &RefusedError{filepath.Clean(dir.Name()), rel + " was replaced while a command was set up", "run one command at a time in this workspace"}
	}
	return at, nil
}
