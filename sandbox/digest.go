package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of what is hashed for a gate.
const (
	maxDigestFiles = 2_000     // files: a large test suite has fewer
	maxDigestBytes = 256 << 20 // bytes together: they are hashed in a quarter of a second
)

// ErrManyFiles is returned by Digest for patterns that match more than can be hashed before each gate.
var ErrManyFiles = fmt.Errorf("more than %d files or %d MiB", maxDigestFiles, maxDigestBytes>>20)

// Digest hashes the files that match any of the patterns, by their slash separated paths relative to the root. A pattern
// is a file, a folder (then everything below it) or has *, **, ? and {a,b}; one that matches nothing is no error. A link
// counts as where it leads and what is there, and nothing is read outside the workspace. Errors: ErrManyFiles.
func (f *Files) Digest(patterns []string) (map[string][sha256.Size]byte, error) {
	d := digester{f: f, sums: map[string][sha256.Size]byte{}, left: maxDigestBytes}
	for _, p := range patterns {
		if err := d.pattern(path.Clean(p)); err != nil {
			return nil, err
		}
	}
	return d.sums, nil
}

// digester is one Digest.
type digester struct {
	f    *Files
	sums map[string][sha256.Size]byte
	left int64 // bytes that may still be read
	seen int   // entries of folders
}

// pattern adds what one pattern matches.
func (d *digester) pattern(p string) error {
	fi, err := d.f.root.Lstat(p)
	switch {
	case err == nil && d.folder(p, fi): // its files are meant, whatever way leads to them
		target, err := d.f.root.Readlink(p)
		if err := errors.Join(err, d.add(p)); err != nil || path.IsAbs(target) {
			return err
		}
		return d.pattern(path.Join(path.Dir(p), target))
	case err == nil && !fi.IsDir(): // also a name with a star in it
		return d.add(p)
	case err == nil:
		return d.walk(p, func(string) bool { return true })
	}
	base, rest := doublestar.SplitPattern(p)
	if rest == "" || rest == p && !strings.ContainsAny(p, "*?[{") {
		return nil
	}
	return d.walk(base, func(rel string) bool { return doublestar.MatchUnvalidated(p, rel) })
}

// folder reports whether a path is a link to a folder of the workspace.
func (d *digester) folder(p string, fi fs.FileInfo) bool {
	if fi.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	to, err := d.f.root.Stat(p) // fails where the links go round, so pattern comes to an end
	return err == nil && to.IsDir()
}

// walk adds the files below dir that are wanted. Git's own and tether's folders are left out.
func (d *digester) walk(dir string, wanted func(rel string) bool) error {
	return fs.WalkDir(d.f.FS(), dir, func(rel string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read by tether cannot be read as part of a gate
		}
		if d.seen++; d.seen > maxEntries {
			return ErrManyFiles
		}
		if e.IsDir() {
			if rel != dir && slices.Contains(skipped, e.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !wanted(rel) {
			return nil
		}
		return d.add(rel)
	})
}

// add hashes one file.
func (d *digester) add(rel string) error {
	if _, ok := d.sums[rel]; ok {
		return nil
	}
	if len(d.sums) >= maxDigestFiles {
		return ErrManyFiles
	}
	h := sha256.New()
	if target, err := d.f.root.Readlink(rel); err == nil {
		fmt.Fprintf(h, "link to %s\n", target)
	}
	if err := d.content(h, rel); err != nil {
		return err
	}
	d.sums[rel] = [sha256.Size]byte(h.Sum(nil))
	return nil
}

// content feeds the bytes of a file to h, or why there are none.
func (d *digester) content(h hash.Hash, rel string) error {
	file, fi, err := d.f.open(rel)
	if err != nil {
		var odd *NotRegularError
		if errors.As(err, &odd) {
			fmt.Fprint(h, "no file but a ", odd.Kind)
		}
		return nil
	}
	defer file.Close()
	if !fi.Mode().IsRegular() {
		fmt.Fprint(h, "no file but a folder")
		return nil
	}
	n, err := io.Copy(h, io.LimitReader(file, d.left+1))
	if d.left -= n; d.left < 0 {
		return ErrManyFiles
	}
	if err != nil {
		fmt.Fprint(h, "cannot be read")
	}
	return nil
}

// Protectable returns the paths for Policy.Protect that the patterns name in the workspace root: folders as they are,
// the other matches one by one. Left out are links and files with a second name, which no mount protects; Digest tells
// when they change. Errors: ErrManyFiles, or a root that cannot be opened.
func Protectable(root string, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, err
	}
	f, err := openFiles(Policy{Root: root}, root)
	if err != nil {
		return nil, err
	}
	defer f.close()
	var all []string
	add := func(rel string) {
		fi, err := f.root.Lstat(rel)
		if err != nil || rel == "." || slices.Contains(all, rel) || !fi.IsDir() && !fi.Mode().IsRegular() {
			return
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && fi.Mode().IsRegular() && st.Nlink > 1 {
			return
		}
		all = append(all, rel)
	}
	for _, p := range patterns {
		p = strings.TrimSuffix(path.Clean(p), "/**")
		if fi, err := f.root.Lstat(p); err == nil && fi.IsDir() {
			add(p)
			continue
		}
		sums, err := f.Digest([]string{p})
		if err != nil {
			return nil, err
		}
		for rel := range sums {
			add(rel)
		}
	}
	const most = 250 // each is a mount in every sandbox: 32 take 8 ms, 100 take 40 and 250 take 200, for each looks at all before it
	if len(all) > most {
		return nil, ErrManyFiles
	}
	slices.Sort(all)
	return all, nil
}
