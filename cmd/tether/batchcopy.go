package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A cloner copies folders. Where the file system can, a file shares its blocks
// with the original until one of the two is written.
type cloner struct {
	skip    []string // absolute paths that are left out
	noClone bool     // the file system has said that it cannot
}

// tree makes to a copy of the folder from: files with their modes and times,
// links as they are. What is neither (a socket, a FIFO, a device) is left out,
// and so is the state of tether, which belongs to the original.
func (c *cloner) tree(ctx context.Context, from, to string) error {
	type stamp struct {
		path string
		info fs.FileInfo
	}
	var folders []stamp // their modes and times come last, as files are made in them
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if slices.Contains(c.skip, path) || e.IsDir() && rel == ".tether" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			folders = append(folders, stamp{filepath.Join(to, rel), info})
			return os.MkdirAll(filepath.Join(to, rel), info.Mode().Perm()|0o700)
		}
		return c.entry(path, filepath.Join(to, rel), info)
	})
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(folders) {
		if err := errors.Join(os.Chmod(f.path, f.info.Mode().Perm()|0o700), os.Chtimes(f.path, f.info.ModTime(), f.info.ModTime())); err != nil {
			return err
		}
	}
	return nil
}

// entry copies what is no folder.
func (c *cloner) entry(from, to string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return c.file(from, to, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	return nil
}

// file copies a regular file.
func (c *cloner) file(from, to string, info fs.FileInfo) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = c.contents(out, in); err == nil {
		err = out.Chmod(info.Mode().Perm()) // whatever the umask is
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("%s: %w", to, reason(err))
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime()) // else every build would begin anew
}

// contents clones the blocks, or copies the bytes.
func (c *cloner) contents(out, in *os.File) error {
	if !c.noClone {
		if cloneFile(out, in) {
			return nil
		}
		c.noClone = true
	}
	if done, err := copySparse(out, in); done || err != nil {
		return err
	}
	_, err := io.Copy(out, in) // in the kernel, as far as it goes
	return err
}

// maxRemovals is how often a folder is tried to be removed. Commands of a tether that
// was killed end a moment after it, and may still write where they were.
const maxRemovals = 50

// removeTree removes a folder, also one in which a command has taken its own rights
// away. It first gives it another name, beside aside, so that the place is free at
// once whatever still writes there.
func removeTree(dir, aside string) error {
	gone := filepath.Join(aside, "gone-"+rand.Text())
	if err := os.Rename(dir, gone); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for range maxRemovals {
		if os.RemoveAll(gone) == nil {
			break
		}
		openTree(gone)
		time.Sleep(20 * time.Millisecond)
	}
	return nil // what could not be removed is in nobody's way
}

// openTree gives the folders below dir the rights that their removal needs.
func openTree(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // one that remains shut remains
		}
		return nil
	})
}
