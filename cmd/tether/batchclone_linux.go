package main

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// cloneFile makes out share the blocks of in, and says whether the file system can.
func cloneFile(out, in *os.File) bool {
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
}

// copySparse copies what is in a file and leaves its holes out: an image of a disk
// has 100 GB of them. It returns false if the file system does not tell them.
func copySparse(out, in *os.File) (bool, error) {
	info, err := in.Stat()
	if err != nil {
		return false, err
	}
	for at := int64(0); at < info.Size(); {
		from, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole up to the end
			break
		}
		if err != nil && at == 0 {
			return false, nil
		}
		to, more := unix.Seek(int(in.Fd()), from, unix.SEEK_HOLE)
		_, back := in.Seek(from, io.SeekStart)
		_, there := out.Seek(from, io.SeekStart)
		if err := errors.Join(err, more, back, there); err != nil {
			return false, err
		}
		if _, err := io.CopyN(out, in, to-from); err != nil && !errors.Is(err, io.EOF) { // it has become shorter
			return false, err
		}
		at = to
	}
	return true, out.Truncate(info.Size())
}
