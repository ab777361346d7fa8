package sandbox

import (
	"os"
	"path/filepath"
)

// shimName is what a process is called that Init turns into the shim.
const shimName = "tether-shim"

// Init turns this process into the shim when it was started as one (the base name of its first argument is
// tether-shim), and then never returns; else it returns at once. The shim is this very program: it prepares, inside the
// sandbox, what only code inside can, and becomes the command. Call it first in main and in the TestMain of every
// package that makes a Box with the network NetProxy or the profile Landlock.
func Init() {
	if len(os.Args) == 0 || filepath.Base(os.Args[0]) != shimName {
		return
	}
	os.Exit(shimFailed)
}

// shimFailed is the status of a shim that could not become the command. Callers do not go by it.
const shimFailed = 125
