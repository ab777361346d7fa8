package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// cloneFile makes out share the blocks of in, and says whether the file system can.
func cloneFile(out, in *os.File) bool {
	return unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
}
