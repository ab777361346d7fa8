package sandbox

import (
	"errors"
	"fmt"
)

// ErrOutside is returned for a path that leads out of the workspace, by its text or through a link.
var ErrOutside = errors.New("outside the workspace")

// RefusedError says that a directory cannot be the workspace, because protecting the rest of the machine from a
// command that may write there would be pointless.
type RefusedError struct {
	Path   string // as it was resolved
	Reason string // "it is your home directory", …
	Repair string // what to do instead
}

// Error names the directory, the reason and the way out.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("refusing %s as the workspace: %s; %s", e.Path, e.Reason, e.Repair)
}

// UnavailableError says that no sandbox can be had on this machine. Callers stop (exit status 78): nothing is ever run
// unconfined in its place.
type UnavailableError struct {
	Cause  string // what was seen and what it means
	Repair string // the command or setting that repairs it
	Stderr string // the launcher's own words, "" if there were none
	system string // the system that has none at all, "" on Linux
}

// Error gives cause and repair.
func (e *UnavailableError) Error() string {
	if e.system != "" {
		return fmt.Sprintf("no sandbox on %s, so nothing is run\n%s\n%s", e.system, e.Cause, e.Repair)
	}
	return fmt.Sprintf("no sandbox: %s; %s", e.Cause, e.Repair)
}

// LaunchError is a fault of the sandbox itself during Run: the command did not count as run.
type LaunchError struct {
	Stage  string // "start", "set up", …
	Stderr string // the launcher's own words
	Err    error  // the cause, may be nil
}

// Error names the stage and what the launcher said.
func (e *LaunchError) Error() string {
	s := "sandbox: cannot " + e.Stage
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *LaunchError) Unwrap() error { return e.Err }

// TooLargeError says that a file is over the size a caller accepts.
type TooLargeError struct {
	Path string // relative to the workspace
	Size int64  // bytes
	Max  int64  // bytes
}

// Error gives both sizes in bytes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is too large (%d bytes, at most %d)", e.Path, e.Size, e.Max)
}

// NotRegularError says that a path is no regular file, so reading it could block or never end.
type NotRegularError struct {
	Path string // relative to the workspace
	Kind string // "folder", "FIFO", "device", "socket" or "link"
}

// Error names the kind.
func (e *NotRegularError) Error() string {
	return fmt.Sprintf("%s is a %s, not a file", e.Path, e.Kind)
}

// ProtectedError says that a path may not be written (or, for the state of tether, not be read) by an agent.
type ProtectedError struct {
	Path   string // relative to the workspace
	Reason string // "it can run code on the host", …
}

// Error gives path and reason.
func (e *ProtectedError) Error() string { return fmt.Sprintf("%s is protected: %s", e.Path, e.Reason) }

// TamperedError says that a protected path is not what it was before a command: the command went around its protection,
// or another program changed the path at the same moment. Nothing that follows can be relied on, so the session stops.
type TamperedError struct {
	Path string // relative to the workspace
	What string // "it was replaced", "its contents changed", …
}

// Error names the path, what happened to it and what a person should do.
func (e *TamperedError) Error() string {
	return fmt.Sprintf("%s is protected, but %s while a command ran; look at it before anything uses it, then start again", e.Path, e.What)
}
