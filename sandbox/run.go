package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Box runs commands under one policy. It is safe for concurrent use.
type Box struct {
	policy Policy
	host   host
	filter []byte
	proxy  *proxy // nil without the network NetProxy
	files  *Files
}

// New checks the workspace, looks for bubblewrap and probes once with the real argument vector, so that a machine
// without a sandbox is told apart from a command that fails. It makes the policy's State and Cache directories. Errors:
// *RefusedError, *UnavailableError, or a directory that cannot be made.
func New(ctx context.Context, p Policy) (*Box, error) {
	asked := p.Root
	p, err := settle(p)
	if err != nil {
		return nil, err
	}
	b := &Box{policy: p, host: survey()}
	if p.Network == NetProxy {
		b.proxy = newProxy(p)
	}
	fi, err := os.Stat(p.Root)
	if err != nil {
		return nil, err
	}
	if err := refuse(p, b.host, fi); err != nil {
		return nil, err
	}
	if b.files, err = openFiles(p, asked); err != nil {
		return nil, err
	}
	seal()
	if p.Profile == Off {
		return b, nil
	}
	if err := b.prepare(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Policy returns the policy with its defaults filled in and its paths resolved.
func (b *Box) Policy() Policy { return b.policy }

// Files returns the jail through which tether itself reads and writes the workspace.
func (b *Box) Files() *Files { return b.files }

// Close gives back what the Box holds on the host. The Box cannot be used afterwards.
func (b *Box) Close() error { return b.files.root.Close() }

// Cmd is one command to run.
type Cmd struct {
	Argv  []string  // the program and its arguments, when Shell is empty
	Shell string    // a shell line, run by bash (sh if there is none)
	Dir   string    // working directory, slash separated, relative to the root; "" is the root
	Stdin io.Reader // nil is /dev/null; it may be read beyond the end of Run, until its next Read returns
}

// Outcome is what became of a command.
type Outcome struct {
	Status   int           // exit status, 128+n after signal n, 124 when timed out, 126 or 127 when it could not be started
	Output   string        // stdout and stderr as they came: valid UTF-8 without control bytes, at most 64 KiB of head and 64 KiB of tail
	Left     int64         // bytes left out in the middle
	TimedOut bool          // the time limit ended it
	Killed   string        // why it was killed, "" if it ended by itself: "time limit", "output limit"
	Dir      string        // where the shell ended, relative to the root; Cmd.Dir if unknown, outside, or no shell line
	Elapsed  time.Duration // wall time
}

// Statuses that Run gives itself, as the shell and timeout(1) have them.
const (
	statusTimedOut   = 124
	statusCannotRun  = 126
	statusKilled     = 128 + int(syscall.SIGKILL)
	killedTime       = "time limit"
	killedOutput     = "output limit"
	textNoCommand    = "there is no command\n"
	textCannotStart  = "the command cannot be started: "
	textNoDirectory  = "the working directory is gone: "
	stageSetUp       = "set up the command"
	stageSetUpForeig = "set up the command: the workspace was replaced by another folder"
)

// Run runs a command and waits for its end; then no process of it is left, also none in the background. An error is a
// fault of the launcher (*LaunchError) or the cancelled context: never the command's own failure, which is a status.
func (b *Box) Run(ctx context.Context, c Cmd) (Outcome, error) {
	began := time.Now()
	o, err := b.run(ctx, c)
	o.Elapsed = time.Since(began)
	return o, err
}

func (b *Box) run(ctx context.Context, c Cmd) (Outcome, error) {
	o := Outcome{}
	if d := path.Clean(c.Dir); d != "." {
		o.Dir = d
	}
	if err := ctx.Err(); err != nil {
		return o, err
	}
	if c.Shell == "" && len(c.Argv) == 0 {
		o.Status, o.Output = statusCannotRun, textNoCommand
		return o, nil
	}
	if !b.files.isDir(c.Dir) {
		return Outcome{Status: statusCannotRun, Output: textNoDirectory + c.Dir + "\n"}, nil
	}
	t, err := b.look()
	if err != nil {
		return o, err
	}
	held, err := makeHolders(t.Hold)
	if err != nil {
		return o, &LaunchError{Stage: stageSetUp, Err: err}
	}
	defer held.release()
	p, err := b.start(c, c.Dir, t)
	if errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.EINVAL) { // too long, or a NUL byte in it
		o.Status, o.Output = statusCannotRun, textCannotStart+plainError(err)+"\n"
		return o, nil
	}
	if err != nil {
		return o, &LaunchError{Stage: "start the command", Err: err}
	}
	return b.follow(ctx, p, o)
}

// look checks that the workspace is still the folder that New saw, and gathers the facts about it.
func (b *Box) look() (tree, error) {
	now, err := os.Lstat(b.policy.Root)
	if err != nil {
		return tree{}, &LaunchError{Stage: stageSetUp, Err: err}
	}
	if !os.SameFile(now, b.files.first) {
		return tree{}, &LaunchError{Stage: stageSetUpForeig}
	}
	t, err := inspect(b.policy, b.host)
	if err != nil {
		return t, &LaunchError{Stage: stageSetUp, Err: err}
	}
	return t, nil
}

// follow sees a process to its end: its own, or a limit's, or the caller's.
func (b *Box) follow(ctx context.Context, p *process, o Outcome) (Outcome, error) {
	out := newOutput(b.policy.Output)
	collected, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(collected); out.collect(p.out) }()
	go func() { defer close(ended); p.awaitLeader() }()
	timer := time.NewTimer(b.policy.Timeout)
	defer timer.Stop()
	var cancelled error
	select {
	case <-ended:
	case <-timer.C:
		o.Killed, o.TimedOut = killedTime, true
	case <-out.full:
		o.Killed = killedOutput
	case <-ctx.Done():
		cancelled = ctx.Err()
	}
	p.kill()
	<-ended
	code, dir, err := p.finish(collected)
	o.Output, o.Left = out.text()
	if code < 0 && p.shim != nil && p.shim.failed != "" {
		o.Output = p.shim.failed
	}
	if err != nil {
		return o, err
	}
	if cancelled != nil {
		return o, cancelled
	}
	return b.conclude(o, code, dir)
}

// conclude turns what the launcher reported into an outcome. No report and no reason of ours means that the command was
// never run, or that somebody killed the launcher.
func (b *Box) conclude(o Outcome, code int, dir string) (Outcome, error) {
	switch {
	case o.TimedOut:
		o.Status = statusTimedOut
	case o.Killed != "":
		o.Status = statusKilled
	case code < 0:
		said := strings.TrimSpace(o.Output)
		if said == "" {
			said = "the launcher was killed"
		}
		return o, &LaunchError{Stage: stageSetUp, Stderr: said}
	default:
		o.Status = code
	}
	if rel, ok := b.inside(dir); ok {
		o.Dir = rel
	}
	return o, nil
}

// inside turns the folder that a shell reported into one relative to the root, if it is an existing folder there. The
// command can write to the same pipe, so nothing in it is believed.
func (b *Box) inside(dir string) (string, bool) {
	if !filepath.IsAbs(dir) || !within(filepath.Clean(dir), b.policy.Root) {
		return "", false
	}
	rel, err := filepath.Rel(b.policy.Root, dir)
	if err != nil || !b.files.isDir(rel) {
		return "", false
	}
	if rel == "." {
		rel = ""
	}
	return rel, true
}

// Argv returns the whole vector for a command, launcher first, as Run would start it (Run hands the options over in a
// file descriptor, so that they cannot be seen from inside). It looks at the workspace and changes nothing; where Run
// would refuse, the vector lacks the protection that cannot be had.
func (b *Box) Argv(c Cmd) []string {
	program := append(shim(b.policy, b.host), program(b.policy, b.host, c)...)
	if !launched(b.policy) {
		return program
	}
	t, _ := inspect(b.policy, b.host)
	argv := append([]string{b.host.Bwrap}, options(b.policy, b.host, t, c.Dir, c.Shell != "")...)
	return append(append(argv, "--"), program...)
}
