package act

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"tether/memory"
	"tether/sandbox"
	"tether/skills"
)

// An Env is what a running command may use.
type Env struct {
	Dir     string          // working directory, slash separated, relative to the workspace; "" or "." is its root
	Stdin   string          // the free text of the call
	Out     io.Writer       // the content of the result: what a pipe passes on
	Box     *sandbox.Box    // runs programs, and holds the files of the workspace
	Memory  *memory.Store   // nil: there is none
	Session string          // the session whose observations mem recalls
	Skills  *skills.Library // nil: there are none
	Web     *Web            // nil: the network is not granted

	shell *Shell
	cmd   *Command
	flags map[string]string
	typed string // free text that stood on the line and became Stdin
	extra bool   // free text stood on the line, and there was a stdin too
	piped bool   // the output goes to another command, not to the model
	fed   bool   // Stdin is the output of another command
	seen  seen
	outcome
}

// seen holds the hash of each file as the model last saw it, by path relative to
// the workspace.
type seen map[string][sha256.Size]byte

// An outcome is what a command leaves behind beside its output.
type outcome struct {
	gates    []string // checks of the skill that was taken up
	found    []string // what a program left for others to run or believe
	said     []string
	broken   bool
	idle     bool // a write of what is there already
	nameless bool // the text of a program, and no command
	done     bool
	asked    bool
	report   string
	changed  bool
	recall   bool // it showed again what was said before
	pin      bool // it is to stay in the window
}

// Say adds a closing sentence for the model. It comes after the content, on a
// line of its own, and a pipe does not pass it on.
func (e *Env) Say(format string, args ...any) {
	e.said = append(e.said, fmt.Sprintf(format, args...))
}

// Flag returns the value of a flag of the running command: its argument, "on"
// for a switch, and "" when it was not given.
func (e *Env) Flag(name string) string { return e.flags[name] }

// Done ends the task with a report. The harness decides whether it counts.
func (e *Env) Done(report string) { e.done, e.report = true, report }

// Changed notes that the running command changed a file of the workspace.
func (e *Env) Changed() { e.changed = true }

// Sizes of files, in bytes.
const (
	maxShown = 4 << 20   // more is not text that anybody reads here
	maxSaid  = 12 * 1024 // what one read prints: about 3,000 tokens, a good part of a small window
)

// rel turns a path as the model wrote it into one relative to the workspace.
func (e *Env) rel(name string) (string, error) {
	rel, err := e.Box.Files().Rel(e.Dir, name)
	if errors.Is(err, sandbox.ErrOutside) {
		return "", failed(e.elsewhere(name), "%s is outside the workspace; give a path inside it", name)
	}
	if err != nil {
		return "", failed(e.can("find"), "%s: %v", name, err)
	}
	return rel, nil
}

// can returns line if its command was granted, for use as a hint, and "" if not.
func (e *Env) can(line string) string {
	name, _, _ := strings.Cut(line, " ")
	switch {
	case e.shell == nil || e.shell.command(name) != nil:
		return line
	case e.shell.command("sh") != nil && !isReserved(name):
		return line
	}
	return ""
}

// file returns the content of a file named by the model.
func (e *Env) file(name string, limit int64) ([]byte, error) {
	rel, err := e.rel(name)
	if err != nil {
		return nil, err
	}
	data, err := e.Box.Files().ReadFile(rel, limit)
	if err != nil {
		return nil, e.fileError(name, err)
	}
	return data, nil
}

// fileError turns an error of the jail into what the model can do about it. What
// is not the model's to mend stays as it is.
func (e *Env) fileError(name string, err error) error {
	var large *sandbox.TooLargeError
	var odd *sandbox.NotRegularError
	var guarded *sandbox.ProtectedError
	switch {
	case errors.As(err, &large):
		return failed(e.can("head -c 2000 "+Quote(name)), "%s is huge (%s), too large to show", name, size(large.Size))
	case errors.As(err, &odd) && odd.Kind == "folder":
		return failed(e.can("read "+Quote(name)), "%s is a folder, not a file", name)
	case errors.As(err, &odd) && odd.Kind == "link":
		return failed(e.can("ls -l "+Quote(name)), "%s is a link; give the file that it leads to", name)
	case errors.As(err, &odd):
		return failed(e.can("find"), "%s is a %s, not a file", name, odd.Kind)
	case errors.As(err, &guarded):
		return &Error{Status: Denied, Msg: fmt.Sprintf("%s is protected: %s", name, guarded.Reason)}
	case errors.Is(err, fs.ErrNotExist) && e.isLink(name):
		return failed(e.can("find"), "%s is a link to a file that is not there", name)
	case errors.Is(err, fs.ErrNotExist):
		return failed(e.elsewhere(name), "%s: there is no such file", name)
	case errors.Is(err, fs.ErrPermission):
		return failed("", "%s: no permission", name)
	case errors.Is(err, sandbox.ErrOutside):
		return failed(e.can("find"), "%s leads outside the workspace", name)
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // it names the file once more
	}
	return failed("", "%s: %v", name, err)
}

// elsewhere returns a line that reads the file of that name in another folder, or
// else one that lists the files.
func (e *Env) elsewhere(name string) string {
	found, _ := e.findFiles(".", func(p string, d fs.DirEntry) bool { return !d.IsDir() && path.Base(p) == path.Base(name) })
	rel, _ := e.Box.Files().Rel(e.Dir, name)
	switch {
	case len(found) == 1 && found[0] == rel: // it is there, and cannot be read
		return e.can("find")
	case len(found) == 1 && e.shell.command("read") != nil:
		return "read " + Quote(e.shown(found[0]))
	}
	return e.can("find")
}

// shown writes a path relative to the workspace as one relative to the working
// directory.
func (e *Env) shown(rel string) string {
	if e.Dir == "" || e.Dir == "." {
		return rel
	}
	up := ""
	for dir := e.Dir; dir != "."; dir = path.Dir(dir) {
		if rel == dir {
			return up + "."
		}
		if strings.HasPrefix(rel, dir+"/") {
			return up + strings.TrimPrefix(rel, dir+"/")
		}
		up += "../"
	}
	return up + rel
}

// saw records that the model has been shown all of a file.
func (e *Env) saw(rel string, data []byte) { e.seen[rel] = sha256.Sum256(data) }

// knows reports whether the model has been shown a file as it is now.
func (e *Env) knows(rel string, data []byte) bool {
	sum, ok := e.seen[rel]
	return ok && sum == sha256.Sum256(data)
}

// size writes a number of bytes for a reader.
func size(n int64) string {
	switch {
	case n < 2000:
		return fmt.Sprintf("%d bytes", n)
	case n < 2_000_000:
		return fmt.Sprintf("%d KB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}
