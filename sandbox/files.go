package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Files reads and writes one workspace for tether itself. No path and no link leads out of it, and only regular files
// are opened: a command may have planted a link to a key, a FIFO that never answers or a device that never ends. It is
// safe for concurrent use.
type Files struct {
	root   *os.Root
	top    *os.File    // the same folder: commands get it, and what is protected is looked at through it
	first  fs.FileInfo // the root as it was opened
	policy Policy
	asked  string // the root as it was asked for, "" if no absolute path: a model may have it from a prompt

	covered func(rel string) error // refuses what commands are kept from; nil where there are none
}

// openFiles opens the jail. The root stays the same folder, whatever its path comes to name.
func openFiles(p Policy, asked string) (*Files, error) {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, err
	}
	first, err := root.Stat(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	top, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	f := &Files{root: root, top: top, first: first, policy: p}
	if filepath.IsAbs(asked) {
		f.asked = filepath.Clean(asked)
	}
	return f, nil
}

// close gives back what the jail holds.
func (f *Files) close() error { return errors.Join(f.top.Close(), f.root.Close()) }

// Rel turns a path as a model writes it (relative to dir, beginning with "./", or absolute inside the workspace) into
// a slash separated one relative to the root; "." is the root, and so is an empty path in it. The error wraps ErrOutside
// if the path leads out. It looks at the text only: links are caught when the path is used.
func (f *Files) Rel(dir, name string) (string, error) {
	rel := path.Join(dir, name)
	if path.IsAbs(name) {
		abs := path.Clean(name)
		switch {
		case within(abs, f.policy.Root):
			rel = strings.TrimPrefix(abs, f.policy.Root)
		case f.asked != "" && within(abs, f.asked):
			rel = strings.TrimPrefix(abs, f.asked)
		default:
			return "", &outsideError{name, f.policy.Root}
		}
		rel = strings.TrimPrefix(rel, "/")
	}
	if rel = path.Clean(rel); strings.ContainsRune(rel, 0) || !filepath.IsLocal(rel) {
		return "", &outsideError{name, f.policy.Root}
	}
	return rel, nil
}

// outsideError is ErrOutside with the path that was given.
type outsideError struct{ path, root string }

// Error names the path and the workspace.
func (e *outsideError) Error() string { return e.path + " is outside the workspace " + e.root }

// Unwrap returns ErrOutside.
func (e *outsideError) Unwrap() error { return ErrOutside }

// ReadFile returns a regular file of at most max bytes (0: no bound). Errors: *TooLargeError, *NotRegularError,
// *ProtectedError, fs.ErrNotExist, ErrOutside.
func (f *Files) ReadFile(rel string, max int64) ([]byte, error) {
	file, fi, err := f.open(rel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if !fi.Mode().IsRegular() {
		return nil, &NotRegularError{rel, kind(fi.Mode())}
	}
	if max > 0 && fi.Size() > max {
		return nil, &TooLargeError{rel, fi.Size(), max}
	}
	if max <= 0 {
		return io.ReadAll(file)
	}
	data, err := io.ReadAll(io.LimitReader(file, max+1)) // it may grow meanwhile
	if int64(len(data)) > max {
		return nil, &TooLargeError{rel, int64(len(data)), max}
	}
	return data, err
}

// open opens a regular file or a folder for reading. It looks before it opens, since opening alone wakes some devices,
// does not wait for the other end of a FIFO, and looks again at what it got.
func (f *Files) open(rel string) (*os.File, fs.FileInfo, error) {
	fi, err := f.Stat(rel)
	if err != nil {
		return nil, nil, err
	}
	if !fi.Mode().IsRegular() && !fi.IsDir() {
		return nil, nil, &NotRegularError{rel, kind(fi.Mode())}
	}
	file, err := f.root.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, f.plain(rel, err)
	}
	if fi, err = file.Stat(); err == nil && !fi.Mode().IsRegular() && !fi.IsDir() {
		err = &NotRegularError{rel, kind(fi.Mode())}
	}
	if err == nil {
		err = f.readable(rel, realPath(file))
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, fi, nil
}

// readable refuses tether's state, by whatever link it was reached. An unknown real path is refused too.
func (f *Files) readable(rel, real string) error {
	inside, ok := strings.CutPrefix(real, f.policy.Root)
	if !ok {
		return &outsideError{rel, f.policy.Root}
	}
	if f.hidden(strings.TrimPrefix(inside, "/")) {
		return &ProtectedError{rel, "it holds the state of tether"}
	}
	return nil
}

// hidden reports whether a real path, relative to the root, is tether's state.
func (f *Files) hidden(rel string) bool {
	abs := filepath.Join(f.policy.Root, rel)
	return within(abs, filepath.Join(f.policy.Root, hiddenDir)) || f.policy.State != "" && within(abs, f.policy.State)
}

// Stat describes a path; links inside the workspace are followed. Errors: *ProtectedError, fs.ErrNotExist, ErrOutside.
func (f *Files) Stat(rel string) (fs.FileInfo, error) {
	if f.hidden(rel) {
		return nil, &ProtectedError{rel, "it holds the state of tether"}
	}
	fi, err := f.root.Stat(rel)
	if err != nil {
		return nil, f.plain(rel, err)
	}
	return fi, nil
}

// plain words an error of os.Root: leaving the root is ErrOutside, the rest keeps its cause.
func (f *Files) plain(rel string, err error) error {
	if strings.Contains(err.Error(), "path escapes from parent") { // os has no exported error for it
		return &outsideError{rel, f.policy.Root}
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return &fs.PathError{Op: pe.Op, Path: rel, Err: pe.Err}
	case errors.As(err, &le): // it names the temporary file
		return &fs.PathError{Op: "write", Path: rel, Err: le.Err}
	}
	return err
}

// ReadDir lists a folder by name, tether's state left out. Errors as those of ReadFile.
func (f *Files) ReadDir(rel string) ([]fs.DirEntry, error) {
	file, fi, err := f.open(rel)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if !fi.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: rel, Err: unix.ENOTDIR}
	}
	entries, err := file.ReadDir(-1)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return f.hidden(path.Join(rel, e.Name())) })
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// isDir reports whether a path is a folder inside the workspace; "" is the root.
func (f *Files) isDir(rel string) bool {
	if rel == "" {
		rel = "."
	}
	fi, err := f.root.Stat(rel)
	return err == nil && fi.IsDir()
}

// kind names what is no regular file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// FS is the workspace as a read-only file system with the same rules.
func (f *Files) FS() fs.FS { return filesFS{f} }

// filesFS is Files in the form of io/fs.
type filesFS struct{ f *Files }

func (s filesFS) check(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// Open implements fs.FS for regular files and folders.
func (s filesFS) Open(name string) (fs.File, error) {
	if err := s.check("open", name); err != nil {
		return nil, err
	}
	file, fi, err := s.f.open(name)
	if err != nil {
		return nil, err
	}
	if fi.IsDir() {
		return &openDir{File: file, f: s.f, rel: name}, nil
	}
	return file, nil
}

// ReadDir implements fs.ReadDirFS.
func (s filesFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := s.check("open", name); err != nil {
		return nil, err
	}
	return s.f.ReadDir(name)
}

// maxWhole bounds, in bytes, what FS reads of a file at once: a thousand times what a .gitignore has, and nothing that a
// planted one could exhaust the memory with.
const maxWhole = 16 << 20

// ReadFile implements fs.ReadFileFS for files of at most 16 MiB.
func (s filesFS) ReadFile(name string) ([]byte, error) {
	if err := s.check("open", name); err != nil {
		return nil, err
	}
	return s.f.ReadFile(name, maxWhole)
}

// Stat implements fs.StatFS.
func (s filesFS) Stat(name string) (fs.FileInfo, error) {
	if err := s.check("stat", name); err != nil {
		return nil, err
	}
	return s.f.Stat(name)
}

// openDir is an open folder that does not list tether's state.
type openDir struct {
	*os.File
	f   *Files
	rel string
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	for {
		entries, err := d.File.ReadDir(n)
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return d.f.hidden(path.Join(d.rel, e.Name())) })
		if n <= 0 || err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// Snapshot notes size, time, inode and mode of the files in the workspace.
func (f *Files) Snapshot(ctx context.Context) Snapshot { return snapshot(ctx, f.root) }
