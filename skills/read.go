package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

const (
	maxFile    = 64 << 10 // bytes of a SKILL.md that are read at all
	maxFolders = 256      // folders looked into per directory of skills
)

// read adds what is in the folder dir of fsys to the library.
func (l *Library) read(fsys fs.FS, layer, dir string) {
	entries, err := folders(fsys, dir)
	if err != nil {
		l.problem(dir, err)
		return
	}
	if len(entries) > maxFolders {
		l.problem(dir, fmt.Errorf("%d folders, only the first %d are read; remove some", len(entries), maxFolders))
		entries = entries[:maxFolders]
	}
	for _, folder := range entries {
		file := path.Join(dir, folder, "SKILL.md")
		data, err := readFile(fsys, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a folder of something else
		}
		if err != nil {
			l.problem(file, err)
			continue
		}
		s, err := Parse(folder, data)
		if err != nil {
			l.problem(file, err)
			continue
		}
		s.Layer = layer
		l.skills[s.Name] = s
	}
}

func (l *Library) problem(path string, err error) {
	l.problems = append(l.problems, &Problem{Path: path, Err: err})
}

// folders returns the names of the folders in dir, sorted. A dir that is not
// there, is a link or lies behind one has none.
func folders(fsys fs.FS, dir string) ([]string, error) {
	if dir != "." && !isFolder(fsys, dir) {
		return nil, nil
	}
	entries, err := fs.ReadDir(fsys, dir)
	var names []string
	for _, e := range entries {
		if e.IsDir() { // not so for a link to one
			names = append(names, e.Name())
		}
	}
	return names, err
}

// isFolder reports whether dir and the folders it lies in are no links.
func isFolder(fsys fs.FS, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := fs.Lstat(fsys, dir); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// readFile reads a regular file of at most maxFile bytes. What it is is asked
// before it is opened, because opening a FIFO waits for its other end, and
// once more after, because it may have been replaced.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		return nil, fmt.Errorf("more than %d bytes; shorten it", maxFile)
	}
	return data, err
}

var errNotRegular = errors.New("not a regular file (a link, folder, pipe or device); put the text itself there")
