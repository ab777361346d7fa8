package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Finding is something in the workspace that other programs execute or believe. No mount can keep a command from making
// it, so a person has to know.
type Finding struct {
	Path string // slash separated, relative to the workspace; "." is the workspace itself
	Why  string // what it is and who goes by it
}

// setID are the bits of a mode that lend the rights of a file's owner, or group, to who runs it.
const setID = 0o6000 // S_ISUID | S_ISGID

// Bounds of a scan. They are those of a workspace that can be looked at after every command.
const (
	scanDepth   = 16     // folders below the root: Java has ten in every project
	scanEntries = 50_000 // files and folders, nearest first
	scanNested  = 32     // repositories below the root that are protected: each costs every command a mount
	scanTold    = 50     // findings of one scan that are told one by one
)

// scanner finds what is new in a workspace. A folder whose own time of change is that of the last look has the same
// names in it and is not read again, so a scan costs little more than a look at every folder.
type scanner struct {
	root     *os.Root
	thorough bool              // set-id bits can be set, so every file is looked at every time
	skip     func(string) bool // paths that are tether's own, or cannot be new

	mu      sync.Mutex
	folders map[string]listing
	known   map[Finding]bool // was there at the first look, or has been told
	nested  []string         // the first repositories below the root, as they were at the first look
	live    []string         // sockets at which a program of the host listens
	stale   []string         // temporary files that an interrupted write left
	excess  Finding          // what nested has no room for, the zero Finding if it has
	bounds  []Finding        // why the last walk did not see all
}

// listing is what was seen in one folder.
type listing struct {
	dev, ino uint64
	ctime    int64 // nanoseconds
	entries  int
	folders  []string // names
	found    []Finding
	tools    []string // names of files called like a tool that are not executable yet
}

// newScanner returns a scanner that has seen nothing.
func newScanner(p Policy, root *os.Root) *scanner {
	s := &scanner{root: root, thorough: p.Profile == Full || p.Profile == Off, folders: map[string]listing{}, known: map[Finding]bool{}}
	state, err := filepath.Rel(p.Root, p.State)
	if p.State == "" || err != nil {
		state = hiddenDir
	}
	s.skip = func(rel string) bool {
		return rel == hiddenDir || rel == filepath.ToSlash(state) || rel == gitName && p.Profile == WorkspaceWrite
	}
	return s
}

// first remembers what is there, and returns the temporary files that an interrupted write left.
func (s *scanner) first(ctx context.Context) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.walk(ctx) {
		s.known[f] = true
		s.hear(f)
		if path.Base(f.Path) == gitName && f.Path != gitName {
			s.nested = append(s.nested, f.Path)
		}
	}
	if more := len(s.nested) - scanNested; more > 0 {
		s.excess = Finding{s.nested[scanNested], fmt.Sprintf("%d repositories, from this one on, can be written by commands: only %d are protected", more, scanNested)}
		s.nested = s.nested[:scanNested]
	}
	return s.stale
}

// fresh returns what is there and was not at any earlier look. A bound that cut the walk short is told once, too.
func (s *scanner) fresh(ctx context.Context) []Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	var told []Finding
	s.stale = nil
	for _, f := range append(append(s.walk(ctx), s.bounds...), s.excess) {
		if !s.known[f] && f != (Finding{}) {
			s.known[f] = true
			s.hear(f)
			told = append(told, f)
		}
	}
	if more := len(told) - scanTold; more > 0 {
		told = append(told[:scanTold], Finding{".", fmt.Sprintf("%d more of the kind", more)})
	}
	return told
}

// queued is a folder to look at.
type queued struct {
	rel   string
	depth int
}

// walk looks at the folders, nearest first, and returns all that is to be found.
func (s *scanner) walk(ctx context.Context) []Finding {
	var found []Finding
	top, err := s.root.Open(".")
	if err != nil {
		return nil // the workspace is gone, and the next command says so
	}
	defer top.Close()
	if s.bounds = nil; len(s.folders) > 2*scanEntries { // most of them are gone
		clear(s.folders)
	}
	entries := 0
	for queue := []queued{{".", 0}}; len(queue) > 0 && ctx.Err() == nil; queue = queue[1:] {
		at := queue[0]
		f, ok := s.visit(int(top.Fd()), at.rel)
		if !ok {
			continue
		}
		found = append(found, f.found...)
		if entries += f.entries; entries > scanEntries {
			s.bounds = append(s.bounds, Finding{".", fmt.Sprintf("the workspace has more than %d files: those in the deeper folders were not looked at", scanEntries)})
			return found
		}
		if at.depth == scanDepth {
			if len(f.folders) > 0 {
				s.bounds = []Finding{{".", fmt.Sprintf("it has folders more than %d deep: what is in them was not looked at", scanDepth)}}
			}
			continue
		}
		for _, name := range f.folders {
			queue = append(queue, queued{path.Join(at.rel, name), at.depth + 1})
		}
	}
	return found
}

// visit returns what is in a folder: as it was seen last, if it is the same.
func (s *scanner) visit(top int, rel string) (listing, bool) {
	var st unix.Stat_t
	if unix.Fstatat(top, rel, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		delete(s.folders, rel)
		return listing{}, false
	}
	f, ok := s.folders[rel]
	same := ok && !s.thorough && f.dev == uint64(st.Dev) && f.ino == st.Ino && f.ctime == st.Ctim.Nano()
	if same && !slices.ContainsFunc(f.tools, func(name string) bool { return executable(top, path.Join(rel, name)) }) {
		return f, true
	}
	now := time.Now()
	if f, ok = s.read(rel); !ok {
		delete(s.folders, rel)
		return f, false
	}
	if f.ctime < now.Add(-50*time.Millisecond).UnixNano() { // else the next change might have the same time
		s.folders[rel] = f
	}
	return f, true
}

// read looks at every name in a folder.
func (s *scanner) read(rel string) (listing, bool) {
	dir, err := s.root.OpenFile(rel, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return listing{}, false // unreadable: nobody else reads it either
	}
	defer dir.Close()
	var st unix.Stat_t
	if unix.Fstat(int(dir.Fd()), &st) != nil {
		return listing{}, false
	}
	f := listing{dev: uint64(st.Dev), ino: st.Ino, ctime: st.Ctim.Nano()}
	entries, _ := dir.ReadDir(scanEntries + 1) // what can be read counts
	f.entries = len(entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	bare := 0
	for _, e := range entries {
		at := path.Join(rel, e.Name())
		if s.skip(at) {
			continue
		}
		if e.Name() == "HEAD" || e.Name() == "objects" || e.Name() == "refs" {
			bare++
		}
		s.entry(&f, int(dir.Fd()), at, e)
	}
	if bare == 3 {
		f.found = append(f.found, Finding{rel, "it looks like a bare git repository: git run in it takes programs to start from its config"})
	}
	return f, true
}

// entry notes one name of a folder.
func (s *scanner) entry(f *listing, dir int, at string, e fs.DirEntry) {
	name, kind := e.Name(), e.Type()
	switch {
	case kind.IsDir() && !strings.EqualFold(name, gitName):
		f.folders = append(f.folders, name)
	case kind.IsRegular() && leftover(name):
		s.stale = append(s.stale, at)
	}
	if why := believed(at); why != "" {
		f.found = append(f.found, Finding{at, why})
	}
	if why := s.special(at, kind); why != "" {
		f.found = append(f.found, Finding{at, why})
	}
	tool := slices.Contains(toolNames, name) && kind.IsRegular()
	if !tool && !(s.thorough && kind.IsRegular()) {
		return
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return // gone meanwhile
	}
	switch {
	case tool && st.Mode&0o111 != 0:
		f.found = append(f.found, Finding{at, "it is a program with the name of a tool: who has this folder on the PATH runs it instead"})
	case tool:
		f.tools = append(f.tools, name)
	}
	if st.Mode&setID != 0 {
		f.found = append(f.found, Finding{at, "it is a set-id program: who runs it has the rights of its owner"})
	}
}

// whySocket is the finding of a socket.
const whySocket = "it is a socket"

// special says what is no file, or a link that leaves the workspace.
func (s *scanner) special(at string, kind fs.FileMode) string {
	switch {
	case kind.IsRegular() || kind.IsDir():
		return ""
	case kind&fs.ModeSymlink != 0:
		return s.leaves(at)
	case kind&fs.ModeNamedPipe != 0:
		return "it is a FIFO: a program that opens it waits for ever"
	case kind&fs.ModeSocket != 0:
		return whySocket
	}
	return "it is a device"
}

// leaves says where a link leads that leaves the workspace. Links to the programs of the system, of which a Python
// environment has many, lead to what only root can change and everybody can read.
func (s *scanner) leaves(at string) string {
	target, err := s.root.Readlink(at)
	if err != nil {
		return ""
	}
	if path.IsAbs(target) {
		if path.Clean(target) == target && system(target) && !within(target, "/etc") {
			return ""
		}
		rest, ok := strings.CutPrefix(target, s.root.Name()+"/")
		if !ok && target != s.root.Name() {
			return "it is a link that leaves the workspace, to " + target
		}
		_, err = s.root.Stat("./" + rest)
	} else {
		_, err = s.root.Stat(at)
	}
	if err != nil && strings.Contains(err.Error(), "path escapes") { // os has no exported error for it
		return "it is a link that leaves the workspace, to " + target
	}
	return ""
}

// executable reports whether a regular file can be run.
func executable(top int, rel string) bool {
	var st unix.Stat_t
	return unix.Fstatat(top, rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0
}

// toolNames are the programs that people and build systems start by name alone.
var toolNames = []string{"git", "go", "gofmt", "python", "python3", "make", "cmake", "ninja", "sh", "bash", "zsh", "ls", "cat", "cp", "mv", "rm",
	"cd", "sudo", "su", "ssh", "scp", "curl", "wget", "node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "cargo", "rustc", "rustup", "java", "javac", "mvn", "gradle",
	"gcc", "g++", "cc", "c++", "clang", "ld", "ar", "docker", "podman", "kubectl", "code", "vim", "vi", "less", "grep", "find", "sed", "awk", "env", "tar", "gpg", "gh",
	"ruby", "gem", "bundle", "php", "composer", "perl", "dotnet", "terraform", "tether"}

// believed says who goes by a path, "" if nobody does.
func believed(at string) string {
	name := strings.ToLower(path.Base(at))
	if name == gitName {
		return "it is a git repository: git run there takes programs to start from its config and hooks"
	}
	if why, ok := believedNames[name]; ok {
		return why
	}
	if strings.ToLower(path.Base(path.Dir(at))) == ".vscode" && slices.Contains([]string{"tasks.json", "launch.json", "settings.json"}, name) {
		return "Visual Studio Code runs what it says"
	}
	return ""
}

// believedNames are the files and folders that programs look for, in lower case, since some disks do not tell the cases
// apart.
var believedNames = map[string]string{
	".gitmodules":        "git fetches and checks out what it names",
	".mcp.json":          "agents start the servers that it names",
	".envrc":             "direnv runs it when somebody enters the folder",
	".idea":              "JetBrains editors run what it says",
	".devcontainer":      "editors build and start the container that it describes",
	".devcontainer.json": "editors build and start the container that it describes",
	".claude":            "an agent takes settings and hooks from it",
	".codex":             "an agent takes settings from it",
	".cursor":            "an agent takes settings and servers from it",
	".gemini":            "an agent takes settings and hooks from it",
	".agents":            "agents take settings from it",
	".windsurf":          "an agent takes settings from it",
	".cursorrules":       "an agent takes orders from it",
	".windsurfrules":     "an agent takes orders from it",
	"agents.md":          "agents take orders from it",
	"claude.md":          "an agent takes orders from it",
	"gemini.md":          "an agent takes orders from it",
	"tether.toml":        "tether takes settings and gates from it",
}
