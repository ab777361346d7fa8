package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// An outputFile is the value of --output. Its folder is opened while the flags
// are read: a name that cannot be written ends the command before the run, and a
// link that the run puts in its place is not followed.
type outputFile struct {
	path string
	dir  *os.Root
}

// Type is the word for the value in help.
func (o *outputFile) Type() string { return "FILE" }

// String is the path as it was given.
func (o *outputFile) String() string { return o.path }

// Set opens the folder of path and looks at what is there.
func (o *outputFile) Set(path string) error {
	path = filepath.Clean(path)
	if base := filepath.Base(path); base == "." || base == ".." || base == "/" {
		return errors.New("it is there and is no regular file")
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("the folder %s cannot be opened (%w)", filepath.Dir(path), reason(err))
	}
	info, err := dir.Lstat(filepath.Base(path))
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errors.New("it is there and is no regular file")
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return reason(err)
	}
	o.path, o.dir = path, dir
	part := o.part()
	f, err := dir.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("nothing can be written there (%w)", reason(err))
	}
	return errors.Join(f.Close(), dir.Remove(part))
}

// part is the name under which the file is written, beside the one that it gets.
func (o *outputFile) part() string {
	return "." + filepath.Base(o.path) + "." + strconv.Itoa(os.Getpid()) + ".part"
}

// write puts text into the file: all of it or, when something fails or the
// process is killed, what was there before.
func (o *outputFile) write(text string) error {
	if o.dir == nil {
		return nil
	}
	part := o.part()
	f, err := o.dir.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("the report cannot be written to %s (%w)", o.path, reason(err))
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = o.dir.Rename(part, filepath.Base(o.path))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the report cannot be written to %s (%w)", o.path, reason(err)), o.dir.Remove(part))
	}
	return nil
}
