package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Trial is one harmless attempt to get out of the sandbox of this machine, and what became of it.
type Trial struct {
	Name    string `json:"name"`    // what was tried, in a few words
	Promise string `json:"promise"` // what has to hold
	Held    bool   `json:"held"`
	Seen    string `json:"seen"` // what the command printed or what was found, one line; "" if there was nothing
}

// SelfTest tries on the user's own machine what a command must not be able to do under a policy: a dozen attempts that
// do no harm where they succeed, in a workspace that is made for them below the user's cache and removed. Of the policy
// the profile, the network and the limits count, not its folders. What a profile does not promise is not tried; Off
// promises nothing. Errors: as those of New and Run, and what keeps the workspace from being made.
func SelfTest(ctx context.Context, box Policy) ([]Trial, error) {
	return selfTest(ctx, box, func(a attack, p Policy) bool {
		return slices.Contains(a.in, p.Profile) && (!a.offline || p.Network != NetHost)
	})
}

// selfTest makes the attempts that are chosen. The policy that decides has its defaults filled in.
func selfTest(ctx context.Context, box Policy, chosen func(attack, Policy) bool) (trials []Trial, err error) {
	if err := supported(runtime.GOOS); err != nil {
		return nil, err
	}
	g, err := newGround(box)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.remove()) }()
	b, err := New(ctx, g.policy)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	for _, a := range attacks {
		if !chosen(a, b.Policy()) {
			continue
		}
		o, err := b.Run(ctx, Cmd{Shell: g.line(a.line)})
		var tampered *TamperedError
		if err != nil && !errors.As(err, &tampered) {
			return trials, err
		}
		seen, held := g.judge(a, o)
		trials = append(trials, Trial{a.name, a.promise, held && tampered == nil, seen})
	}
	return trials, nil
}

// attack is one attempt. Its line has $NAMES of the ground in it, and is followed by a look at what must not have
// happened: the ground's secret in the output, a word that only a success prints, or a trace on the host.
type attack struct {
	name, promise, line string
	success             string             // what the output has when it succeeded
	trace               func(*ground) bool // whether the host shows that it succeeded
	offline             bool               // promised only where the network is not the machine's
	in                  []Profile          // profiles that promise it
}

// The profiles that promise the same.
var (
	byFence = []Profile{ReadOnly, WorkspaceWrite}           // a root of its own
	byAny   = []Profile{ReadOnly, WorkspaceWrite, Landlock} // files beyond the workspace
	byHide  = []Profile{ReadOnly, WorkspaceWrite, Full}     // processes of its own
)

// attacks are what SelfTest tries, the files first.
var attacks = []attack{
	{name: "write outside", promise: "no file outside the workspace is changed", line: "echo changed > $OUT/victim",
		trace: func(g *ground) bool { return smallFile(g.path("outside/victim")) != "original" }, in: byAny},
	{name: "read a key", promise: "keys of the home directory are not readable", line: "cat $OUT/.ssh/id", in: byAny},
	{name: "read tether's state", promise: "the log of tether is hidden", line: "cat .tether/secret; ls -a .tether", in: byHide},
	{name: "plant a hook", promise: "git runs nothing that a command wrote", line: "echo x > .git/hooks/post-checkout",
		trace: func(g *ground) bool { return firstFile(g.path("ws/.git/hooks/post-checkout")) != "" }, in: byFence},
	{name: "rename .git", promise: "the repository stays in its place", line: "mv .git other && mkdir .git && echo moved", success: "moved", in: byFence},
	{name: "write tether.toml", promise: "tether's settings stay as they are", line: "echo x > tether.toml; rm -f tether.toml",
		trace: func(g *ground) bool { return smallFile(g.path("ws/tether.toml")) != "# nothing" }, in: byFence},
	{name: "set-id file", promise: "no file gets the rights of its owner", line: "$TRY setid made", trace: (*ground).setID, in: []Profile{WorkspaceWrite}},
	{name: "connect to this machine", promise: "no listener of this machine is reached", line: "$TRY connect $PORT", success: tried, offline: true, in: byAny},
	{name: "open a vsock", promise: "no socket that a network namespace does not hold", line: "$TRY vsock", success: tried, in: byFence},
	{name: "type into the terminal", promise: "nothing is typed into the terminal of tether", line: "$TRY tiocsti", success: tried, in: byHide},
	{name: "see host processes", promise: "processes of this machine are invisible", line: "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", in: byHide},
	{name: "read the environment", promise: "no variable of tether gets in", line: "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'", in: byHide},
	{name: "write to /proc/sys", promise: "the kernel's settings cannot be opened for writing",
		line: "for f in kernel/core_pattern vm/drop_caches kernel/hostname; do (: >> /proc/sys/$f) 2>/dev/null && echo opened; done", success: "opened", in: byFence},
	{name: "leave a process", promise: "nothing runs on after a command", line: "setsid $TRY stay >/dev/null 2>&1 & sleep 0.1",
		trace: (*ground).stays, in: []Profile{ReadOnly, WorkspaceWrite, Full, Landlock}},
	{name: "leave a message in /tmp", promise: "temporary files go with their command", line: "cat /tmp/$ID; echo found > /tmp/$ID; cat /dev/shm/$ID; echo found > /dev/shm/$ID",
		in: byFence},
	{name: "find the message", promise: "one command finds nothing of another outside the workspace", line: "cat /tmp/$ID /dev/shm/$ID; rm -f /tmp/$ID /dev/shm/$ID",
		success: "found", in: byFence},
}

// ground is where the attempts are made: a workspace, and what they must not get at, all below one folder.
type ground struct {
	base, secret, id string
	policy           Policy
	port             int
	listener         net.Listener
	sleeper          *exec.Cmd
	hold             io.Closer
}

// canaryName is the variable that must not be seen inside.
const canaryName = "TETHER_TRIAL_CANARY"

// trialName is the name under which this program makes the attempts that no ordinary program offers.
const trialName = "tether-trial"

// newGround makes everything. The secret stands in a key, in the state, in the environment and in the command line of a
// process of the host.
func newGround(box Policy) (*ground, error) {
	g := &ground{secret: rand.Text(), id: rand.Text()}
	parent, err := os.UserCacheDir()
	if err == nil {
		parent = filepath.Join(parent, "tether")
		err = os.MkdirAll(parent, 0o700)
	}
	if err != nil {
		parent = "" // no home: the system's temporary folder
	}
	if g.base, err = os.MkdirTemp(parent, "trial"); err != nil {
		return nil, err
	}
	if g.base, err = filepath.EvalSymlinks(g.base); err == nil {
		err = g.furnish()
	}
	if err != nil {
		return nil, errors.Join(err, g.remove())
	}
	g.policy = box
	g.policy.Root, g.policy.State, g.policy.Cache, g.policy.Protect = g.path("ws"), g.path("ws/.tether"), "", nil
	if box.Profile == Landlock { // which cannot hide a folder of the workspace
		g.policy.State = g.path("state")
	}
	return g, nil
}

func (g *ground) path(rel string) string { return filepath.Join(g.base, rel) }

// furnish fills the ground and starts what is to be seen or reached.
func (g *ground) furnish() error {
	for name, text := range map[string]string{
		"outside/victim": "original\n", "outside/.ssh/id": g.secret + "\n", "ws/.tether/secret": g.secret + "\n", "ws/tether.toml": "# nothing\n",
		"ws/.git/HEAD": "ref: refs/heads/main\n", "ws/.git/hooks/none": "", "ws/made": "",
	} {
		if err := os.MkdirAll(filepath.Dir(g.path(name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(g.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := copySelf(g.path("ws/" + trialName)); err != nil {
		return err
	}
	var err error
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	g.port = g.listener.Addr().(*net.TCPAddr).Port
	g.sleeper = exec.Command("/bin/sh", "-c", "read line", g.secret)
	if g.hold, err = g.sleeper.StdinPipe(); err != nil {
		return err
	}
	if err := os.Setenv(canaryName, g.secret); err != nil {
		return err
	}
	return g.sleeper.Start()
}

// copySelf puts a copy of this very program where a command can start it.
func copySelf(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// remove takes everything away again.
func (g *ground) remove() error {
	if g.listener != nil {
		g.listener.Close()
	}
	if g.sleeper != nil && g.sleeper.Process != nil {
		g.hold.Close() // it reads the end of its input, and ends
		_ = g.sleeper.Wait()
	}
	return errors.Join(os.Unsetenv(canaryName), os.RemoveAll(g.base))
}

// line fills in the places.
func (g *ground) line(s string) string {
	return strings.NewReplacer("$OUT", g.path("outside"), "$PORT", strconv.Itoa(g.port), "$TRY", "./"+trialName+" "+g.id, "$ID", g.id).Replace(s)
}

// judge looks whether an attempt succeeded, and says in a line what was seen.
func (g *ground) judge(a attack, o Outcome) (seen string, held bool) {
	switch {
	case strings.Contains(o.Output, g.secret):
		return "the secret was printed", false
	case a.success != "" && strings.Contains(o.Output, a.success):
		return "it succeeded", false
	case a.trace != nil && a.trace(g):
		return "the host shows that it succeeded", false
	}
	const most = 120 // bytes: a line of a table
	seen, _, _ = strings.Cut(strings.TrimSpace(o.Output), "\n")
	if len(seen) > most {
		seen = strings.ToValidUTF8(seen[:most], "") + "…"
	}
	return seen, true
}

// setID reports whether the file has got a set-id bit.
func (g *ground) setID() bool {
	fi, err := os.Lstat(g.path("ws/made"))
	return err == nil && fi.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0
}

// stays reports whether a process with this ground's mark is alive.
func (g *ground) stays() bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is a good one
	return slices.ContainsFunc(lines, func(path string) bool {
		data, _ := os.ReadFile(path) // a process that ended meanwhile
		return strings.Contains(string(data), g.id)
	})
}

// tried is what an attempt prints when the kernel let it.
const tried = "it was allowed"

// try makes one attempt inside, where this program was started for it. The first argument is only a mark.
func try(args []string) int {
	err := fmt.Errorf("there is no attempt %q", args)
	switch {
	case len(args) == 3 && args[1] == "setid":
		err = unix.Chmod(args[2], 0o4755)
	case len(args) == 3 && args[1] == "connect":
		var c net.Conn
		if c, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", args[2])); err == nil {
			c.Close()
		}
	case len(args) == 2 && args[1] == "vsock":
		_, err = unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	case len(args) == 2 && args[1] == "tiocsti": // there is no terminal and no byte: a kernel that is asked says that
		if err = unix.IoctlSetInt(0, unix.TIOCSTI, 0); errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EFAULT) {
			err = nil
		}
	case len(args) == 2 && args[1] == "stay":
		_, err = unix.Poll(nil, 60_000) // milliseconds: long after the look
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(tried)
	return 0
}
