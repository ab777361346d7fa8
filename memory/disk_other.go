//go:build !linux

package memory

import (
	"os"

	"golang.org/x/sys/unix"
)

// away is the number that fileSystem gives all that is not on a disk of this
// machine: the numbers of macOS say nothing about it, but a flag does.
const away = 1

var remote = map[uint32]string{away: "its disk is another machine's"}

// fileSystem is away or 0 for the file system of dir.
func fileSystem(dir string) (uint32, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	if err == nil && st.Flags&unix.MNT_LOCAL == 0 {
		return away, nil
	}
	return 0, err
}

// reserve gives a file its blocks on the disk, by writing them.
func reserve(f *os.File, size int64) error {
	_, err := f.Write(make([]byte, size))
	return err
}
