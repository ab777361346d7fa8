package sandbox

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// WriteFile replaces or makes a file: readers see the old or the new contents, never a mix, also after a crash. Folders
// are made, an existing file keeps its permissions. It writes through no link, not even one that stays inside. Errors:
// *ProtectedError, *NotRegularError, ErrOutside.
func (f *Files) WriteFile(rel string, data []byte) error {
	rel, err := f.Rel("", rel)
	if err != nil {
		return err
	}
	if err := f.writable(rel); err != nil {
		return err
	}
	perm, err := f.target(rel)
	if err != nil {
		return err
	}
	dir, err := f.parent(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := replace(dir, path.Base(rel), data, perm); err != nil {
		return f.plain(rel, err)
	}
	return nil
}

// writable refuses what an agent may not change: the profile, the state, and what other programs run or believe.
func (f *Files) writable(rel string) error {
	parts := strings.Split(rel, "/")
	switch {
	case rel == ".":
		return &NotRegularError{rel, "folder"}
	case f.policy.Profile == ReadOnly:
		return &ProtectedError{rel, "the workspace is read-only in this run"}
	case f.hidden(rel) || strings.EqualFold(parts[0], hiddenDir):
		return &ProtectedError{rel, "it holds the state of tether"}
	case slices.ContainsFunc(parts, func(p string) bool { return strings.EqualFold(p, ".git") }):
		return &ProtectedError{rel, "git runs code from there"}
	case slices.ContainsFunc(f.policy.Protect, func(p string) bool { return within("/"+rel, "/"+p) }):
		return &ProtectedError{rel, "the task is judged by it"}
	case slices.ContainsFunc(protected, func(p string) bool { return strings.EqualFold(p, parts[0]) }):
		return &ProtectedError{rel, "other programs take their settings from it, only a person may change it"}
	case f.covered != nil:
		return f.covered(rel)
	}
	return nil
}

// target looks at every part of a path without following links, and returns the permissions for the file: those it has,
// or the default.
func (f *Files) target(rel string) (fs.FileMode, error) {
	const ordinary = 0o644 // before the umask
	for i, r := range rel + "/" {
		if r != '/' {
			continue
		}
		fi, err := f.root.Lstat(rel[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ordinary, nil
		case err != nil:
			return 0, f.plain(rel, err)
		case fi.IsDir() == (i == len(rel)) || !fi.IsDir() && !fi.Mode().IsRegular():
			return 0, &NotRegularError{rel[:i], kindFor(fi.Mode(), i < len(rel))}
		case i == len(rel):
			return fi.Mode().Perm(), nil
		}
	}
	return ordinary, nil
}

// kindFor names what stands where a folder (or a file) should be.
func kindFor(m fs.FileMode, parent bool) string {
	if parent && m.IsRegular() {
		return "file and no folder"
	}
	return kind(m)
}

// parent makes and opens the folder of a path, and checks that it is the one that the path names: a link that was
// slipped in after target looked would have led elsewhere.
func (f *Files) parent(rel string) (*os.Root, error) {
	dir := path.Dir(rel)
	if err := f.root.MkdirAll(dir, 0o755); err != nil {
		return nil, f.plain(rel, err)
	}
	root, err := f.root.OpenRoot(dir)
	if err != nil {
		return nil, f.plain(rel, err)
	}
	self, err := root.Open(".")
	if err == nil {
		defer self.Close()
		if real := realPath(self); real != path.Join(f.policy.Root, dir) {
			err = &NotRegularError{dir, "link"}
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// replace writes a file beside its name and renames it over it, flushing both, so that a crash leaves one or the other.
func replace(dir *os.Root, name string, data []byte, perm fs.FileMode) error {
	file, temp, err := makeTemp(dir, perm)
	if err != nil {
		return err
	}
	defer file.Close() // it was flushed, so nothing can be lost here
	if err = fill(dir, file, name, data, perm); err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp) // the first error is the one to tell
		return err
	}
	return syncDir(dir)
}

// fill writes and flushes the new contents. An existing file's permissions are given on; for a new one the umask has
// done its part.
func fill(dir *os.Root, file *os.File, name string, data []byte, perm fs.FileMode) error {
	_, err := file.Write(data)
	if _, serr := dir.Lstat(name); err == nil && serr == nil {
		err = file.Chmod(perm)
	}
	if err == nil {
		err = file.Sync()
	}
	return err
}

// makeTemp makes the file that becomes another one. It is locked as long as it is being written: what is not locked is
// left over from a process that was killed. A sweep may have taken it away before the lock; then it has no name left.
func makeTemp(dir *os.Root, perm fs.FileMode) (*os.File, string, error) {
	for {
		name := ".tether-" + rand.Text() + ".tmp"
		file, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if err != nil {
			return nil, "", err
		}
		_ = unix.Flock(int(file.Fd()), unix.LOCK_EX) // where there are no locks, nothing is swept
		var st unix.Stat_t
		if unix.Fstat(int(file.Fd()), &st) != nil || st.Nlink > 0 {
			return file, name, nil
		}
		file.Close()
	}
}

// leftover matches the names that makeTemp gives.
var leftover = regexp.MustCompile(`^\.tether-[A-Z2-7]{26}\.tmp$`).MatchString

// sweep removes temporary files of writes that were interrupted. A file that is somebody else's, has a second name or is
// being written stays.
func (f *Files) sweep(names []string) {
	const most = 1000 // one is left for each process that was killed
	for _, rel := range names[:min(most, len(names))] {
		f.sweepOne(rel)
	}
}

func (f *Files) sweepOne(rel string) {
	file, err := f.root.OpenFile(rel, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	defer file.Close()
	var st, now unix.Stat_t
	fd := int(file.Fd())
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 || int(st.Uid) != os.Geteuid() {
		return
	}
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if unix.Fstatat(int(f.top.Fd()), rel, &now, unix.AT_SYMLINK_NOFOLLOW) == nil && now.Ino == st.Ino && now.Dev == st.Dev {
		_ = f.root.Remove(rel) // it stays for the next time
	}
}

// syncDir flushes the name of a new file to disk.
func syncDir(dir *os.Root) error {
	self, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(self.Sync(), self.Close())
}
