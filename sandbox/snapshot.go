package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxEntries bounds a snapshot: a workspace with more is compared as far as it was seen.
const maxEntries = 50_000

// skipped are folders that a snapshot leaves out: nobody asks which files of them changed, and they are large.
var skipped = []string{".git", hiddenDir, "node_modules"}

// Snapshot is the state of a workspace at one moment: what can be known of its files without reading them.
type Snapshot struct {
	files map[string]mark
	cut   bool // there were more than maxEntries, or the context ended
}

// mark is what tells two states of a file apart. The time of the inode cannot be set back by a command.
type mark struct {
	size, mtime, ctime int64 // bytes, nanoseconds
	inode              uint64
	mode               uint32
}

// snapshot walks the workspace, nearest folders first, without following links.
func snapshot(ctx context.Context, root *os.Root) Snapshot {
	s := Snapshot{files: map[string]mark{}}
	folders := []string{"."}
	for seen := 0; len(folders) > 0; folders = folders[1:] {
		names, err := s.folder(root, folders[0], &folders)
		if seen += names; seen > maxEntries || ctx.Err() != nil || err != nil && !unreadable(err) {
			s.cut = true
			break
		}
	}
	return s
}

// folder notes the files of one folder and queues its folders.
func (s *Snapshot) folder(root *os.Root, dir string, queue *[]string) (int, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries + 1)
	if err == io.EOF { // it is empty
		err = nil
	}
	slices.Sort(names)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // gone meanwhile
		}
		rel := path.Join(dir, name)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			s.files[rel] = mark{st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino, uint32(st.Mode)}
		} else if !slices.Contains(skipped, name) {
			s.files[rel+"/"] = mark{inode: st.Ino, mode: uint32(st.Mode)} // its time changes with its files
			*queue = append(*queue, rel)
		}
	}
	return len(names), err
}

// unreadable reports whether a folder could not be opened for a reason that concerns only itself.
func unreadable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// Sum is the same for two snapshots between which nothing has changed, and most
// likely another one if something has. It can be kept, where a snapshot is too
// large to be.
func (s Snapshot) Sum() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		fmt.Fprintf(h, "%q %v\n", name, s.files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Complete reports whether the whole workspace was seen. Otherwise Changed says nothing about the rest.
func (s Snapshot) Complete() bool { return !s.cut }

// Changed lists, sorted, the files that are new, changed or gone in t, and with
// a slash at their end the folders of which that is true and of whose files it is not.
func (s Snapshot) Changed(t Snapshot) []string {
	changed := map[string]bool{}
	for name, m := range t.files {
		if old, ok := s.files[name]; old != m && (ok || !s.cut) {
			changed[name] = true
		}
	}
	for name := range s.files {
		if _, ok := t.files[name]; !ok && !t.cut {
			changed[name] = true
		}
	}
	var names []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(changed))) {
		if n := len(names); n == 0 || !strings.HasSuffix(name, "/") || !strings.HasPrefix(names[n-1], name) {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return names
}

var _ fs.ReadDirFS = filesFS{} // the walkers of io/fs use the sorted, bounded forms
var _ fs.StatFS = filesFS{}
