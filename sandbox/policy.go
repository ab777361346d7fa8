package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Profile names how much a command may do.
type Profile string

// The profiles, from the safest to the least safe.
const (
	ReadOnly       Profile = "read-only"       // the workspace cannot be written, no network
	WorkspaceWrite Profile = "workspace-write" // the default: only the workspace can be written, no network
	Full           Profile = "full"            // whatever the user may do, network included; state hidden, limits and clean kill kept
	Landlock       Profile = "landlock"        // where bubblewrap cannot run, by explicit choice: the weaker promise is LandlockPromise
	Off            Profile = "off"             // no sandbox: only the time limit, the output limit and the clean environment
)

// Bounds of a command when the policy gives none.
const (
	DefaultTimeout = 120 * time.Second // long enough for a test suite, short enough for a person who waits
	DefaultOutput  = 16 << 20          // bytes; a small model reads 2,400 characters of them, so more is a runaway
	DefaultMemory  = 4 << 30           // bytes; a linker takes two, and the model's server needs the rest of a laptop
	DefaultGrowth  = 2 << 30           // bytes; a debug build of a large program takes one
	DefaultInodes  = 200_000           // files; an installed node_modules has up to 100,000
	DefaultFloor   = 1 << 30           // bytes; with less, other programs of the machine begin to fail
)

// Policy says what a Box may do. It is fixed when the Box is made: nothing a model can reach changes it.
type Policy struct {
	Profile Profile       // "" is WorkspaceWrite
	Root    string        // the workspace, "" is the current folder; New makes it absolute and resolves its links
	State   string        // directory of tether's state, hidden from commands; "" if there is none
	Cache   string        // private cache directory, bound at ~/.cache and made if missing; "" if there is none
	Timeout time.Duration // per command; 0 is DefaultTimeout
	Output  int64         // bytes after which a command is killed; 0 is DefaultOutput

	Network Network        // "" is the profile's own: NetOff, or NetHost for full and off
	Allow   []string       // hosts for NetProxy: "pkg.go.dev", ".golang.org" (and all below), either with ":port"; empty allows nothing
	Decide  func(Decision) // told of every decision of the proxy, from any goroutine; nil is nobody

	Protect []string // files and folders that exist, slash separated and relative to the root, which no command may change: a gate's
	Memory  int64    // bytes that all processes of a command may hold together; 0 is DefaultMemory
	Growth  int64    // bytes by which one command may let the workspace and the cache grow; 0 is DefaultGrowth
	Inodes  int      // files and folders that one command may make there; 0 is DefaultInodes
	Floor   int64    // bytes that stay free on the disk; 0 is DefaultFloor, or a twentieth of a disk where that is less
}

// settle fills in the defaults and resolves the paths of a policy. It makes the directories for state and cache.
func settle(p Policy) (Policy, error) {
	if p.Profile == "" {
		p.Profile = WorkspaceWrite
	}
	if p.Timeout <= 0 {
		p.Timeout = DefaultTimeout
	}
	if p.Output <= 0 {
		p.Output = DefaultOutput
	}
	if !slices.Contains([]Profile{ReadOnly, WorkspaceWrite, Full, Landlock, Off}, p.Profile) {
		return p, &RefusedError{p.Root, fmt.Sprintf("there is no profile %q", p.Profile), "use workspace-write, read-only, full, landlock or off"}
	}
	if err := settleNetwork(&p); err != nil {
		return p, err
	}
	settleWatch(&p)
	root, err := filepath.Abs(p.Root)
	if err == nil {
		root, err = resolve(root)
	}
	if err != nil {
		return p, &RefusedError{p.Root, "it cannot be opened (" + plainError(err) + ")", "name a folder that exists"}
	}
	p.Root = root
	for _, dir := range []*string{&p.State, &p.Cache} {
		if err := ownDir(root, dir); err != nil {
			return p, err
		}
	}
	return p, nil
}

// settleWatch fills in the bounds that a policy does not give. The floor depends on the disk and comes later.
func settleWatch(p *Policy) {
	if p.Memory <= 0 {
		p.Memory = DefaultMemory
	}
	if p.Growth <= 0 {
		p.Growth = DefaultGrowth
	}
	if p.Inodes <= 0 {
		p.Inodes = DefaultInodes
	}
}

// ownDir makes a directory of tether's own, for its user only, and resolves its path. "" stays "".
func ownDir(root string, dir *string) error {
	if *dir == "" {
		return nil
	}
	abs, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	if within(abs, root) {
		*dir = abs
		return makeBeneath(root, abs)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return err
	}
	*dir, err = filepath.EvalSymlinks(abs)
	return err
}

// makeBeneath makes a directory in the workspace. It goes through no link: a command that runs elsewhere may be putting
// one there at this moment, and nothing must be made where it leads.
func makeBeneath(root, dir string) error {
	at, err := openUnlinked(root)
	for part := range strings.SplitSeq(strings.TrimPrefix(dir[len(root):], "/"), "/") {
		if err != nil || part == "" {
			break
		}
		parent := at
		if err = unix.Mkdirat(parent, part, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			at, err = unix.Openat(parent, part, pathOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		unix.Close(parent)
		if err != nil {
			return &RefusedError{root, dir + " cannot be made without following a link (" + err.Error() + ")", "replace the link by what it points to, or remove it"}
		}
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	return unix.Close(at)
}

// plainError drops the operation and the path, which the sentence around it already names.
func plainError(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Folders that are no workspace. Below a closed one nothing is a workspace either; below a shared one anything may be.
var (
	sharedFolders = []string{"/home", "/tmp", "/var", "/var/tmp", "/var/lib", "/opt", "/usr", "/usr/src", "/usr/local", "/usr/local/src",
		"/mnt", "/media", "/srv"}
	closedFolders = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/boot", "/dev", "/etc", "/proc", "/run", "/sys",
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/include",
		"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/share"}
	homeClosed = []string{".ssh", ".gnupg", ".aws", ".kube", ".docker"}
	homeShared = []string{".config", ".local", ".local/share", ".cache", ".cargo"}
)

// refuse returns why a resolved folder cannot be the workspace, or nil.
func refuse(p Policy, h host, fi fs.FileInfo) error {
	reason, repair := objection(p, h, fi)
	if reason == "" {
		return nil
	}
	return &RefusedError{p.Root, reason, repair}
}

// objection is refuse in words: the reason and what to do instead.
func objection(p Policy, h host, fi fs.FileInfo) (reason, repair string) {
	const elsewhere = "go to the folder of one project and start there"
	root := p.Root
	switch {
	case !fi.IsDir():
		return "it is not a folder", "name a folder"
	case !utf8.ValidString(root) || strings.ContainsFunc(root, unicode.IsControl):
		return "its path has a line break, a control byte or invalid UTF-8 in it", "rename the folder"
	case root == "/":
		return "it is the whole machine", elsewhere
	case root == h.Home || root == h.Account:
		return "it is your home directory", elsewhere
	case within(h.Home, root) || h.Account != "" && within(h.Account, root):
		return "your home directory lies in it", elsewhere
	case slices.Contains(sharedFolders, root) || root == filepath.Clean(h.Temp):
		return "it is shared by many programs", elsewhere
	case slices.ContainsFunc(closedFolders, func(d string) bool { return within(root, d) }):
		return "it belongs to the system", elsewhere
	case slices.ContainsFunc(homeClosed, func(d string) bool { return within(root, filepath.Join(h.Home, d)) }):
		return "it holds keys", elsewhere
	case slices.ContainsFunc(homeShared, func(d string) bool { return root == filepath.Join(h.Home, d) }):
		return "it is shared by many programs", elsewhere
	case p.State != "" && within(root, p.State):
		return "it is where tether keeps its own state", elsewhere
	}
	return foreign(p, h, fi)
}

// foreign objects to a workspace of another user when commands are to write in it: their files would change hands.
func foreign(p Policy, h host, fi fs.FileInfo) (reason, repair string) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || p.Profile != WorkspaceWrite && p.Profile != Landlock || int(st.Uid) == h.EUID {
		return "", ""
	}
	return fmt.Sprintf("it belongs to another user (uid %d, you are %d)", st.Uid, h.EUID),
		fmt.Sprintf("run tether as that user, or take it over with: chown -R %d %s", h.EUID, p.Root)
}

// checkProtect makes sure that what is to be protected can be: it exists, below the root, and no link is on the way.
func checkProtect(p Policy) error {
	for _, rel := range p.Protect {
		if !fs.ValidPath(rel) || rel == "." || strings.ContainsRune(rel, 0) {
			return &RefusedError{p.Root, fmt.Sprintf("%q cannot be protected, it is no path in it", rel), "name files and folders relative to the workspace"}
		}
		fi, err := plain(p.Root, rel)
		if err != nil {
			return err
		}
		if fi == nil {
			return &RefusedError{p.Root, rel + " is to be protected and does not exist", "make it, or take it out of the gate's files"}
		}
	}
	return nil
}
