package act

import (
	"io/fs"
	"slices"
)

// regular is a file system without anything that is neither a file nor a folder,
// so that a workspace with a FIFO in it can be copied.
type regular struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (r regular) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && !e.Type().IsRegular() }), err
}
