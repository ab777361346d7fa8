package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// Bounds of what is remembered of a workspace to say how a run changed it. The
// sources of a usual project are below; of what is above only the name is told.
const (
	maxCopy   = 256 << 10 // bytes of a file
	maxCopies = 16 << 20  // bytes of all
	maxCopied = 5000      // files
)

// notCopied are folders whose changes nobody reads: the run does not list them.
var notCopied = []string{".git", ".tether", "node_modules"}

// copies are the texts of a workspace before a run, by path. A file that is too
// large, or no text, is there without its text.
type copies struct {
	texts map[string][]byte
	whole bool // every file is there
}

// copyTexts reads the texts of a workspace.
func copyTexts(fsys fs.FS) copies {
	c := copies{texts: map[string][]byte{}, whole: true}
	left := int64(maxCopies)
	_ = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // a folder that cannot be read: its files are not told apart
			c.whole = false
		case d.IsDir() && slices.Contains(notCopied, d.Name()):
			return fs.SkipDir
		case d.IsDir():
		case len(c.texts) == maxCopied || left <= 0:
			c.whole = false
			return fs.SkipAll
		default:
			c.texts[name] = readText(fsys, name)
			left -= int64(len(c.texts[name]))
		}
		return nil
	})
	return c
}

// readText is the text of a file; nil if it is large, no text or no regular file.
func readText(fsys fs.FS, name string) []byte {
	info, err := fs.Stat(fsys, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCopy {
		return nil
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	return append([]byte{}, text...)
}

// counted says of each file that changed by how many lines.
func (c copies) counted(fsys fs.FS, changed []string) []string {
	if c.texts == nil {
		return changed
	}
	var all []string
	for _, name := range changed {
		all = append(all, name+c.count(fsys, name))
	}
	return all
}

// count is what is to be said of one file behind its name.
func (c copies) count(fsys fs.FS, name string) string {
	old, had := c.texts[name]
	_, err := fs.Stat(fsys, name)
	is := err == nil
	switch text := readText(fsys, name); {
	case strings.HasSuffix(name, "/"), !had && !c.whole:
		return ""
	case !had && text != nil:
		return fmt.Sprintf(" (new, +%d)", bytes.Count(text, []byte("\n")))
	case !had && is:
		return " (new)"
	case !is && old != nil:
		return fmt.Sprintf(" (deleted, -%d)", bytes.Count(old, []byte("\n")))
	case !is:
		return " (deleted)"
	case old != nil && text != nil:
		more, less := linesBetween(old, text)
		if more == 0 && less == 0 { // its mode, or back again
			return ""
		}
		return fmt.Sprintf(" (+%d -%d)", more, less)
	}
	return ""
}

// linesBetween is how many lines new has that old has not, and the other way.
func linesBetween(old, new []byte) (more, less int) {
	_, body, _ := bytes.Cut(diff.Diff("a", old, "b", new), []byte("\n+++ b\n"))
	for line := range bytes.Lines(body) {
		switch line[0] {
		case '+':
			more++
		case '-':
			less++
		}
	}
	return more, less
}
