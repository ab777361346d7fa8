package sandbox

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// gitGuards are the parts of a repository from which git takes programs to run: settings, where further settings are,
// and filters; the hooks come with them. The whole of .git is a mount that cannot be written, so a difference means that
// this failed. HEAD, refs, index and objects run nothing and are not looked at: a person may commit meanwhile.
var gitGuards = []string{"config", "config.worktree", "commondir", "info/attributes", "hooks"}

// imprint is what is remembered of a protected path. The zero one is that of a path that does not exist.
type imprint struct {
	dev, ino uint64
	mode     uint32
	size     int64
	ctime    int64             // nanoseconds; nobody can set it
	sum      [sha256.Size]byte // of a regular file of at most maxHashed bytes
}

// maxHashed bounds the files that are hashed. A larger one must not even be touched.
const maxHashed = 8 << 20 // bytes: some 10 ms

// imprints holds the protected paths of a workspace as they are before a command.
type imprints struct {
	dir   *os.File // the workspace
	paths map[string]imprint
	at    time.Time
}

// sums remembers contents by the rest of a imprint, so that a file is read only when it has changed.
type sums struct {
	mu   sync.Mutex
	seen map[string]imprint
}

// note notes the protected paths. It reads what has changed since it was last noted.
func (s *sums) note(dir *os.File, t tree) (imprints, error) {
	all := imprints{dir: dir, paths: map[string]imprint{}, at: time.Now()}
	for _, rel := range guards(dir, t) {
		now, err := imprintOf(dir, rel)
		if err != nil {
			return all, err
		}
		if all.paths[rel], err = s.fill(dir, rel, now, all.at); err != nil {
			return all, err
		}
	}
	return all, nil
}

// guards lists what is compared: each protected path, and for a repository the parts that run something.
func guards(dir *os.File, t tree) []string {
	var list []string
	for _, rel := range t.Protect {
		list = append(list, rel)
		if path.Base(rel) != gitName {
			continue
		}
		for _, name := range gitGuards {
			list = append(list, path.Join(rel, name))
		}
		list = append(list, hooks(dir, path.Join(rel, "hooks"))...)
	}
	for _, hidden := range t.Hide {
		if rel, err := filepath.Rel(dir.Name(), hidden); err == nil && filepath.IsLocal(rel) && !slices.Contains(t.Hold, hidden) {
			list = append(list, rel)
		}
	}
	return list
}

// hooks lists the hooks of a repository, the examples that git puts there left out.
func hooks(dir *os.File, rel string) []string {
	const most = 100 // git knows about thirty
	fd, err := unix.Openat(int(dir.Fd()), rel, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // there is no such folder; imprintOf says the same
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	names, _ := f.Readdirnames(most)
	var list []string
	for _, name := range names {
		if !strings.HasSuffix(name, ".sample") {
			list = append(list, path.Join(rel, name))
		}
	}
	return list
}

// imprintOf describes a path without following a link at its end. What is not there has the zero one.
func imprintOf(dir *os.File, rel string) (imprint, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), rel, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		return imprint{}, nil
	case err != nil:
		return imprint{}, &fs.PathError{Op: "look at", Path: rel, Err: err}
	}
	s := imprint{dev: uint64(st.Dev), ino: st.Ino, mode: uint32(st.Mode), size: st.Size, ctime: st.Ctim.Nano()}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		s.size, s.ctime = 0, 0 // they change with what lies in it, and that is not the folder's own
	}
	return s, nil
}

// fill adds the hash of the contents, from memory if the file has been the same for a while.
func (s *sums) fill(dir *os.File, rel string, now imprint, at time.Time) (imprint, error) {
	if now.mode&unix.S_IFMT != unix.S_IFREG || now.size > maxHashed {
		return now, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.seen[rel]
	if sum := old.sum; ok && settled(now, at) {
		if old.sum = now.sum; old == now {
			now.sum = sum
			return now, nil
		}
	}
	var err error
	if now.sum, err = digest(dir, rel); err != nil && !errors.Is(err, fs.ErrPermission) { // as a larger one then
		return now, err
	}
	if settled(now, at) {
		if s.seen == nil {
			s.seen = map[string]imprint{}
		}
		s.seen[rel] = now
	}
	return now, nil
}

// settled reports whether a file was last changed so long before a moment that a later change has another time: the
// kernel's clock for files ticks every 4 or 10 ms.
func settled(s imprint, at time.Time) bool { return s.ctime < at.Add(-50*time.Millisecond).UnixNano() }

// digest hashes a regular file.
func digest(dir *os.File, rel string) (sum [sha256.Size]byte, err error) {
	fd, err := unix.Openat(int(dir.Fd()), rel, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return sum, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxHashed+1)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// compare returns what is no longer as it was, or nil. A mount point cannot be renamed, but a folder above it can
// ("mv tests old; cp -r old tests"): then another file stands at the path.
func (a imprints) compare(t tree) *TamperedError {
	for _, rel := range guards(a.dir, t) { // what is new among them has no imprint
		if _, ok := a.paths[rel]; !ok {
			a.paths[rel] = imprint{}
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(a.paths)) {
		before := a.paths[rel]
		after, err := imprintOf(a.dir, rel)
		if err != nil {
			return &TamperedError{rel, "it cannot be looked at any more (" + plainError(err) + ")"}
		}
		if what := a.difference(rel, before, after); what != "" {
			return &TamperedError{rel, what}
		}
	}
	return nil
}

// difference says in words what became of a path, "" if it is the same. Contents are read only if something hints at a
// change that is no other difference.
func (a imprints) difference(rel string, before, after imprint) string {
	switch {
	case before == (imprint{}) && after == before:
		return ""
	case after == (imprint{}):
		return "it is gone"
	case before == (imprint{}):
		return "it appeared"
	case before.dev != after.dev || before.ino != after.ino || (before.mode^after.mode)&unix.S_IFMT != 0:
		return "it was replaced"
	case before.mode != after.mode:
		return "its permissions changed"
	case before.size != after.size:
		return "its contents changed"
	case before.mode&unix.S_IFMT != unix.S_IFREG || before.ctime == after.ctime && settled(before, a.at):
		return ""
	case before.size > maxHashed:
		return "it was touched"
	}
	if sum, err := digest(a.dir, rel); err != nil || sum != before.sum {
		return "its contents changed"
	}
	return ""
}
