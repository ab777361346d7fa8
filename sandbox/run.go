package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
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
	sums   sums
	groups groups

	// These are nil during the probe, which changes nothing.
	scan   *scanner
	seen   *scanner      // the same, but there also where nothing can be written
	looked chan struct{} // closed after the first look at the workspace
	stop   func()        // ends that look
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
	b := &Box{policy: p, host: survey().outside(p.Root)}
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
	if err = checkProtect(p); err == nil && p.Profile != Off {
		err = b.prepare(ctx)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	b.firstLook()
	b.files.covered = b.covered
	return b, nil
}

// covered refuses a path that no command can change, or could if it existed. Tether's own writing goes by the same list
// as the mounts.
func (b *Box) covered(rel string) error {
	if b.looked != nil {
		<-b.looked
	}
	t, err := b.look()
	if err == nil && slices.ContainsFunc(slices.Concat(t.Protect, t.Absent), func(q string) bool { return within("/"+rel, "/"+q) }) {
		err = &ProtectedError{rel, "git runs code from there, by its settings"}
	}
	return err
}

// firstLook remembers what is in the workspace before any command, and takes away what an interrupted write left there.
// It goes on beside the caller, who has a model to ask first: the first command waits for it.
func (b *Box) firstLook() {
	ctx, cancel := context.WithCancel(context.Background())
	b.seen, b.looked, b.stop = newScanner(b.policy, b.files.root), make(chan struct{}), cancel
	if b.writes() {
		b.scan = b.seen
	}
	go func() {
		defer close(b.looked)
		if stale := b.seen.first(ctx); b.writes() {
			b.files.sweep(stale)
		}
	}()
}

// awaitLook waits for the first look. The probe has none.
func (b *Box) awaitLook(ctx context.Context) error {
	if b.looked == nil {
		return nil
	}
	select {
	case <-b.looked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writes reports whether commands can change the workspace at all.
func (b *Box) writes() bool { return b.policy.Profile != ReadOnly }

// Policy returns the policy with its defaults filled in and its paths resolved.
func (b *Box) Policy() Policy { return b.policy }

// Files returns the jail through which tether itself reads and writes the workspace.
func (b *Box) Files() *Files { return b.files }

// Close gives back what the Box holds on the host. The Box cannot be used afterwards.
func (b *Box) Close() error {
	if b.stop != nil {
		b.stop()
		<-b.looked
	}
	return b.files.close()
}

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
	Killed   string        // why it was killed, "" if it ended by itself: "time limit", "output limit", "memory limit", "disk limit"
	Dir      string        // where the shell ended, relative to the root; Cmd.Dir if unknown, outside, or no shell line
	Elapsed  time.Duration // wall time
	Planted  []Finding     // what is new in the workspace that other programs execute or believe; each is told once in the life of a Box
}

// Statuses that Run gives itself, as the shell and timeout(1) have them.
const (
	statusTimedOut   = 124
	statusCannotRun  = 126
	statusKilled     = 128 + int(syscall.SIGKILL)
	killedTime       = "time limit"
	killedOutput     = "output limit"
	killedMemory     = "memory limit"
	killedDisk       = "disk limit"
	textNoCommand    = "there is no command\n"
	textCannotStart  = "the command cannot be started: "
	textNoDirectory  = "the working directory is gone: "
	stageStart       = "start the command"
	stageSetUp       = "set up the command"
	stageSetUpForeig = "set up the command: the workspace was replaced by another folder"
)

// Run runs a command and waits for its end; then no process of it is left, also none in the background. An error is a
// fault of the launcher (*LaunchError), a protected path that changed (*TamperedError) or the cancelled context: never the
// command's own failure, which is a status.
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
	if err := b.awaitLook(ctx); err != nil {
		return o, err
	}
	t, err := b.look()
	if err != nil {
		return o, err
	}
	held, err := makeHolders(b.files.top, t.Hold)
	if err != nil {
		return o, &LaunchError{Stage: stageSetUp, Err: err}
	}
	defer held.release()
	var before imprints
	if b.scan != nil {
		if before, err = b.sums.note(b.files.top, t); err != nil {
			return o, &LaunchError{Stage: stageSetUp, Err: err}
		}
	}
	p, err := b.start(c, c.Dir, t)
	if errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.EINVAL) { // too long, or a NUL byte in it
		o.Status, o.Output = statusCannotRun, textCannotStart+plainError(err)+"\n"
		return o, nil
	}
	if err != nil {
		return o, launchFailed(err)
	}
	o, err = b.follow(ctx, p, o)
	if b.scan == nil {
		return o, err
	}
	return b.review(ctx, t, before, o, err)
}

// launchFailed is the error of a command that did not come to life.
func launchFailed(err error) error {
	var le *LaunchError
	if errors.As(err, &le) {
		return le
	}
	return &LaunchError{Stage: stageStart, Err: err}
}

// review looks at what a command left behind. It is done also after one that was killed.
func (b *Box) review(ctx context.Context, t tree, before imprints, o Outcome, err error) (Outcome, error) {
	if tampered := before.compare(t); tampered != nil {
		return o, errors.Join(tampered, err)
	}
	if rerr := b.sameRoot(); rerr != nil {
		return o, errors.Join(rerr, err)
	}
	if ctx.Err() == nil { // what is not told now is still new next time
		o.Planted = append(b.appeared(t), b.scan.fresh(ctx)...)
	}
	return o, err
}

// look checks that the workspace is still the folder that New saw, and gathers the facts about it.
func (b *Box) look() (tree, error) {
	if err := b.sameRoot(); err != nil {
		return tree{}, err
	}
	p := b.policy
	if b.scan != nil && p.Profile != Off && p.Profile != Full {
		p.Protect = append(slices.Clone(p.Protect), b.present(b.scan.nested)...)
	}
	t, err := inspect(p, b.host)
	var tampered *TamperedError
	if errors.As(err, &tampered) {
		return t, tampered
	}
	if err != nil {
		return t, &LaunchError{Stage: stageSetUp, Err: err}
	}
	t.Deaf = b.deaf()
	return t, nil
}

// sameRoot checks that the path of the workspace still leads to the folder that was opened.
func (b *Box) sameRoot() error {
	now, err := os.Lstat(b.policy.Root)
	if err != nil {
		return &LaunchError{Stage: stageSetUp, Err: err}
	}
	if !os.SameFile(now, b.files.first) {
		return &LaunchError{Stage: stageSetUpForeig}
	}
	return nil
}

// present returns the paths that can be protected: a person may have removed a submodule, and some tools make .git a
// link, which is no reason to refuse the workspace.
func (b *Box) present(rels []string) []string {
	return slices.DeleteFunc(slices.Clone(rels), func(rel string) bool {
		fi, err := plain(b.policy.Root, rel)
		return fi == nil || err != nil
	})
}

// follow sees a process to its end: its own, or a limit's, or the caller's.
func (b *Box) follow(ctx context.Context, p *process, o Outcome) (Outcome, error) {
	out := newOutput(b.policy.Output)
	collected, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(collected); out.collect(p.out) }()
	go func() { defer close(ended); p.awaitLeader() }()
	timer := time.NewTimer(b.policy.Timeout)
	defer timer.Stop()
	passed, unwatch := b.guardResources(p)
	var cancelled error
	select {
	case <-ended:
	case <-timer.C:
		o.Killed, o.TimedOut = killedTime, true
	case <-out.full:
		o.Killed = killedOutput
	case o.Killed = <-passed:
	case <-ctx.Done():
		cancelled = ctx.Err()
	}
	unwatch()
	p.kill()
	p.await(ended)
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
	if p.starved && o.Killed == "" {
		o.Killed = killedMemory
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
// file descriptor, so that they cannot be seen from inside), with the paths of what Run hands over open. It looks at the
// workspace and changes nothing; where Run would refuse, the vector lacks the protection that cannot be had.
func (b *Box) Argv(c Cmd) []string {
	h := b.host
	h.Pins = false
	program := append(shim(b.policy, h), program(b.policy, h, c)...)
	if !launched(b.policy) {
		return program
	}
	t, _ := inspect(b.policy, h)
	argv := append([]string{h.Bwrap}, options(b.policy, h, t, c.Dir, c.Shell != "")...)
	return append(append(argv, "--"), program...)
}
