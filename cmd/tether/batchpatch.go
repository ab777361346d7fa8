package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/sys/unix"
)

// What a patch holds at most, in bytes: of one file, so that a build's output is no
// patch, and of all.
const maxPatchFile, maxPatch = 1 << 20, 16 << 20

// patchOf is what was changed in the files called names between the folder source
// (empty: there is none) and its copy, as git apply and patch -p1 take it. missed are
// the names of which it does not tell: binary files, links and large ones.
func patchOf(source, copied string, names []string) (patch []byte, missed []string) {
	var old *os.Root
	if source != "" {
		var err error
		if old, err = os.OpenRoot(source); err != nil {
			return nil, names
		}
		defer old.Close()
	}
	now, err := os.OpenRoot(copied)
	if err != nil {
		return nil, names
	}
	defer now.Close()
	var b bytes.Buffer
	for _, name := range names {
		if strings.HasSuffix(name, "/") { // a folder: its files say it
			continue
		}
		part, ok := filePatch(name, readVersion(old, name), readVersion(now, name))
		if !ok || b.Len()+len(part) > maxPatch {
			missed = append(missed, name)
			continue
		}
		b.Write(part)
	}
	return b.Bytes(), missed
}

// A fileVersion is a file before or after. A nil text is no file.
type fileVersion struct {
	text []byte
	mode string // as git writes it
	odd  bool   // a link, something large, no text: it cannot be told as lines
}

// readVersion reads a file that a command may have made: whatever it is, it neither
// leads out of root nor blocks.
func readVersion(root *os.Root, name string) fileVersion {
	if root == nil {
		return fileVersion{}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fileVersion{}
	}
	if err != nil {
		return fileVersion{odd: true}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fileVersion{odd: true}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPatchFile+1))
	v := fileVersion{text: append([]byte{}, text...), mode: "100644"}
	v.odd = err != nil || len(text) > maxPatchFile || bytes.IndexByte(text, 0) >= 0
	if info.Mode()&0o100 != 0 {
		v.mode = "100755"
	}
	return v
}

// filePatch is the part of a patch about one file, and whether there is one.
func filePatch(name string, old, now fileVersion) ([]byte, bool) {
	if old.odd || now.odd || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~' }) {
		return nil, false
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "diff --git a/%s b/%s\n", name, name)
	from, to := "a/"+name, "b/"+name
	switch {
	case old.text == nil && now.text == nil:
		return nil, true // it came and went
	case old.text == nil:
		from = "/dev/null"
		fmt.Fprintf(&b, "new file mode %s\n", now.mode)
	case now.text == nil:
		to = "/dev/null"
		fmt.Fprintf(&b, "deleted file mode %s\n", old.mode)
	case old.mode != now.mode:
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", old.mode, now.mode)
	case bytes.Equal(old.text, now.text):
		return nil, true // touched only
	}
	for _, side := range []*string{&from, &to} {
		if strings.Contains(*side, " ") {
			*side += "\t" // so that the name ends where it ends
		}
	}
	if text := diff.Diff("a", old.text, "b", now.text); text != nil {
		hunks := bytes.SplitN(text, []byte("\n"), 4)[3] // after the heading of three lines
		fmt.Fprintf(&b, "--- %s\n+++ %s\n%s", from, to, hunks)
	}
	return b.Bytes(), true
}
