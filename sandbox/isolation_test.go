//go:build linux

package sandbox

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// confinedBoxes returns a box of each profile that promises isolation.
func confinedBoxes(t *testing.T) []*Box {
	t.Helper()
	return []*Box{newBox(t, Policy{Profile: WorkspaceWrite}), newBox(t, Policy{Profile: ReadOnly})}
}

func TestNoNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	line := fmt.Sprintf("exec 9<>/dev/tcp/127.0.0.1/%d && echo connected", l.Addr().(*net.TCPAddr).Port)
	for _, b := range confinedBoxes(t) {
		if o := shell(t, b, line); o.Status == 0 || strings.Contains(o.Output, "connected") {
			t.Errorf("%s: %+v", b.Policy().Profile, o)
		}
	}
	// The check bites: with no sandbox the same line connects.
	if o := shell(t, newBox(t, Policy{Profile: Off}), line); o.Output != "connected\n" {
		t.Errorf("without a sandbox: %+v", o)
	}
}

func TestLoopbackInside(t *testing.T) {
	o := shell(t, newBox(t, Policy{}), "cat /proc/net/dev | grep -c ':'; grep -c . /proc/net/route")
	if o.Output != "1\n1\n" { // lo alone, and no route but the heading
		t.Errorf("interfaces and routes: %q", o.Output)
	}
}

func TestCleanEnvironment(t *testing.T) {
	canary := rand.Text()
	t.Setenv("SOME_API_KEY", canary)
	t.Setenv("LD_LIBRARY_PATH", "/nonexistent/"+canary)
	t.Setenv("LC_ALL", "C; "+canary)
	// The canary comes by stdin, since an argument would be found in the process list.
	const search = `read -r canary; cat /proc/[0-9]*/environ /proc/1/cmdline | tr '\0' '\n' > found; grep -c -F -f - found <<< "$canary"; grep -c . found`
	for _, b := range []*Box{newBox(t, Policy{}), newBox(t, Policy{Profile: Full})} {
		o := do(t, b, Cmd{Shell: search, Stdin: strings.NewReader(canary + "\n")})
		if lines := strings.Fields(o.Output); len(lines) != 2 || lines[0] != "0" || lines[1] == "0" {
			t.Errorf("%s: %q", b.Policy().Profile, o.Output)
		}
	}
	o := shell(t, newBox(t, Policy{Profile: Off}), "env")
	if strings.Contains(o.Output, canary) {
		t.Errorf("off: the environment has %q", o.Output)
	}
}

func TestGitIsReadOnly(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".git/hooks/sample"), "x")
	write(t, filepath.Join(root, ".git/config"), "[core]\n")
	b := newBox(t, Policy{Root: root})
	for _, line := range []string{
		"echo x > .git/hooks/post-checkout", "echo x >> .git/config", "mv .git x", "rm -rf .git", "rmdir .git; mkdir .git",
		"ln .git/config config", "mount -o remount,rw .git", "mv .git/config .git/config2",
	} {
		if o := shell(t, b, line); o.Status == 0 {
			t.Errorf("%s: %+v", line, o)
		}
	}
	if got := read(t, filepath.Join(root, ".git/config")); got != "[core]\n" {
		t.Errorf("config is now %q", got)
	}
	if exists(filepath.Join(root, ".git/hooks/post-checkout")) || exists(filepath.Join(root, "x")) {
		t.Error("a hook was planted or .git was renamed")
	}
}

func TestMissingGitCannotBeMade(t *testing.T) {
	b := newBox(t, Policy{})
	if o := shell(t, b, "git init -q .; mkdir .git/hooks; mv .git x; rmdir .git; echo x > .git/config"); o.Status == 0 {
		t.Errorf("%+v", o)
	}
	if exists(filepath.Join(b.Policy().Root, ".git")) {
		t.Error(".git was left behind")
	}
}

func TestParentRepositoryIsNotFoundThroughACover(t *testing.T) {
	// The cover of a missing .git must not look like a broken repository: git says there is none.
	o := shell(t, newBox(t, Policy{}), "git status")
	if o.Status != 128 || !strings.Contains(o.Output, "not a git repository") {
		t.Errorf("%+v", o)
	}
}

func TestStateIsHidden(t *testing.T) {
	secret := rand.Text()
	for _, profile := range []Profile{WorkspaceWrite, ReadOnly, Full} {
		root := t.TempDir()
		write(t, filepath.Join(root, ".tether/tether.db"), secret)
		write(t, filepath.Join(root, "state/tether.db"), secret)
		b := newBox(t, Policy{Root: root, Profile: profile, State: filepath.Join(root, "state")})
		o := shell(t, b, "cat .tether/* .tether/.??* state/*; ls .tether state; echo x > .tether/tether.db-wal; mv .tether y; mv state z; grep -r . .")
		if strings.Contains(o.Output, secret) || strings.Contains(o.Output, "tether.db\n") {
			t.Errorf("%s: the state shows: %s", profile, o.Output)
		}
		if entries, err := os.ReadDir(filepath.Join(root, ".tether")); err != nil || len(entries) != 1 {
			t.Errorf("%s: .tether now holds %v, %v", profile, entries, err)
		}
	}
}

// The probe of New and every command take the stand-in of a missing folder away again, but never the state itself.
func TestEmptyStateStays(t *testing.T) {
	root := t.TempDir()
	b := newBox(t, Policy{Root: root, State: filepath.Join(root, ".tether")})
	if o := shell(t, b, "echo x > .tether/y"); o.Status == 0 {
		t.Errorf("%+v", o)
	}
	if !isDir(filepath.Join(root, ".tether")) {
		t.Error(".tether was taken away")
	}
}

func TestHomeIsPrivate(t *testing.T) {
	home, secret := t.TempDir(), rand.Text()
	t.Setenv("HOME", home)
	write(t, filepath.Join(home, ".ssh/id_rsa"), secret)
	write(t, filepath.Join(home, ".cargo/credentials.toml"), secret)
	write(t, filepath.Join(home, ".cargo/bin/tool"), "#!/bin/sh\necho the tool\n")
	write(t, filepath.Join(home, ".bashrc"), "original")
	if err := os.Chmod(filepath.Join(home, ".cargo/bin/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := newBox(t, Policy{Cache: filepath.Join(t.TempDir(), "cache")})
	o := shell(t, b, "cat ~/.ssh/id_rsa ~/.cargo/credentials.toml; grep -rs . ~; echo evil > ~/.bashrc; echo evil > ~/.cargo/bin/tool; echo kept > ~/.cache/kept; tool")
	if strings.Contains(o.Output, secret) || !strings.HasSuffix(o.Output, "the tool\n") {
		t.Errorf("home shows, or its tools do not: %+v", o)
	}
	if got := read(t, filepath.Join(home, ".bashrc")); got != "original" {
		t.Errorf(".bashrc is now %q", got)
	}
	if got := read(t, filepath.Join(b.Policy().Cache, "kept")); got != "kept\n" {
		t.Errorf("the cache holds %q", got)
	}
}

func TestOutsideIsUntouched(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	write(t, victim, "original")
	for _, b := range confinedBoxes(t) {
		root := b.Policy().Root
		if err := os.Symlink(victim, filepath.Join(root, "link")); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"echo evil > " + victim, "echo evil > link", "rm -f " + victim, "mv -f link " + victim, "ln " + victim + " hard",
			"touch " + outside + "/new", "echo evil > /proc/1/root" + victim, "cat " + victim, "cat link",
		} {
			if o := shell(t, b, line); strings.Contains(o.Output, "original") {
				t.Errorf("%s: %s: %+v", b.Policy().Profile, line, o)
			}
		}
		if got := read(t, victim); got != "original" {
			t.Errorf("%s: the victim is now %q", b.Policy().Profile, got)
		}
		if entries, _ := os.ReadDir(outside); len(entries) != 1 {
			t.Errorf("%s: outside there is now %v", b.Policy().Profile, entries)
		}
	}
}

func TestReadOnly(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "file"), "text")
	b := newBox(t, Policy{Root: root, Profile: ReadOnly})
	if o := shell(t, b, "cat file; echo x > /tmp/x; echo x > ~/x"); o.Output != "text" || o.Status != 0 {
		t.Errorf("%+v", o)
	}
	for _, line := range []string{"echo x > file", "touch new", "rm file", "mkdir d"} {
		if o := shell(t, b, line); o.Status == 0 {
			t.Errorf("%s: %+v", line, o)
		}
	}
	if entries, _ := os.ReadDir(root); len(entries) != 1 {
		t.Errorf("the workspace now holds %v", entries)
	}
}

func TestConfigIsReadOnly(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "tether.toml"), "x=1")
	write(t, filepath.Join(root, ".vscode/tasks.json"), "{}")
	b := newBox(t, Policy{Root: root})
	for _, line := range []string{"echo x > tether.toml", "rm tether.toml", "echo x > n; mv n tether.toml", "echo x > .vscode/tasks.json", "mv .vscode v"} {
		if o := shell(t, b, line); o.Status == 0 {
			t.Errorf("%s: %+v", line, o)
		}
	}
}

func TestNoRights(t *testing.T) {
	for _, b := range confinedBoxes(t) {
		o := shell(t, b, "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t '; ls /run /proc/1/root/root 2>&1 | head -3")
		for _, want := range []string{"CapInh:0000000000000000", "CapPrm:0000000000000000", "CapEff:0000000000000000", "CapBnd:0000000000000000", "NoNewPrivs:1", "Seccomp:2"} {
			if !strings.Contains(o.Output, want+"\n") {
				t.Errorf("%s: want %s in %s", b.Policy().Profile, want, o.Output)
			}
		}
		for _, path := range []string{"/proc/sys/kernel/core_pattern", "/usr/x", "/etc/x", "/x", "/dev/x", "/var/x", "/sys/x"} {
			// Opening for append tells whether it could be written, and changes nothing.
			if o := shell(t, b, ": >> "+path); o.Status == 0 {
				t.Errorf("%s: %s can be written", b.Policy().Profile, path)
			}
		}
	}
}

func TestStatusCannotBeForged(t *testing.T) {
	b := newBox(t, Policy{})
	for _, line := range []string{
		`for fd in 3 4 5 7 8 9; do echo '{ "exit-code": 0 }' >&$fd; done 2>/dev/null; exit 3`,
		`for f in /proc/1/fd/* /proc/[0-9]*/fd/*; do echo '{ "exit-code": 0 }' >$f; done 2>/dev/null; exit 3`,
		`for f in /proc/1/fd/*; do echo '{ "child-pid": 1 }' >$f; done 2>/dev/null; exit 3`,
	} {
		if o := shell(t, b, line); o.Status != 3 {
			t.Errorf("%s: status %d, want 3", line, o.Status)
		}
	}
}

// A folder that tether happened to inherit would let a command walk out of the sandbox.
func TestInheritedFiles(t *testing.T) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := newBox(t, Policy{})
	for _, c := range []Cmd{{Shell: "ls -l /proc/self/fd"}, {Argv: []string{"ls", "-l", "/proc/self/fd"}}} {
		o := do(t, b, c)
		if n := strings.Count(o.Output, " -> "); n != 4 { // input, output, errors, and the folder that ls reads
			t.Errorf("open inside: %s", o.Output)
		}
	}
}

func TestFilterInPlace(t *testing.T) {
	root := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, self, filepath.Join(root, "self"))
	write(t, filepath.Join(root, "victim"), "")
	b := newBox(t, Policy{Root: root})
	for name, want := range map[string]string{
		"vsock": "address family not supported", "tiocsti": "operation not permitted", "unshare": "operation not permitted",
		"chmod": "operation not permitted", "create": "operation not permitted", "plain": "<nil>",
	} {
		o := do(t, b, Cmd{Argv: []string{"./self", inside, name}})
		if !strings.Contains(o.Output, want) || o.Status != 0 {
			t.Errorf("%s: %q, want %q", name, o.Output, want)
		}
	}
	if exists(filepath.Join(root, "made")) {
		t.Error("a set-id file was made")
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLimitsInside(t *testing.T) {
	for _, prlimit := range []string{"/usr/bin/prlimit", ""} {
		b := newBox(t, Policy{})
		if b.host.Prlimit = prlimit; prlimit != "" && firstFile(prlimit) == "" {
			t.Fatal("prlimit (util-linux) is missing")
		}
		o := shell(t, b, "ulimit -c; ulimit -n; ulimit -u")
		if o.Output != "0\n4096\n512\n" {
			t.Errorf("with %q: %q", prlimit, o.Output)
		}
	}
}

func TestPlainShell(t *testing.T) {
	b := newBox(t, Policy{})
	b.host.Bash = "" // as on a machine that has only sh
	o := shell(t, b, `mkdir "a b"; cd "a b"; echo "it's $#"; exit 3`)
	if o.Status != 3 || o.Output != "it's 1\n" || o.Dir != "a b" {
		t.Errorf("%+v", o)
	}
}

func TestWorktree(t *testing.T) {
	base := t.TempDir()
	main, tree := filepath.Join(base, "main"), filepath.Join(base, "tree")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", main)
	git("-C", main, "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", main, "worktree", "add", "-q", tree)
	b := newBox(t, Policy{Root: tree})
	if o := shell(t, b, "git log --oneline"); o.Status != 0 || !strings.HasSuffix(o.Output, " first\n") {
		t.Errorf("git log: %+v", o)
	}
	if o := shell(t, b, "echo evil >> "+main+"/.git/config"); o.Status == 0 {
		t.Errorf("the repository of a worktree can be written: %+v", o)
	}
}

// A .git file is data of the workspace: it must not decide what of the host is shown inside.
func TestForgedWorktree(t *testing.T) {
	base, secret := t.TempDir(), rand.Text()
	write(t, filepath.Join(base, "keys/worktrees/x/id"), secret)
	write(t, filepath.Join(base, "keys/HEAD"), "ref: x")
	root := filepath.Join(base, "ws")
	write(t, filepath.Join(root, ".git"), "gitdir: "+base+"/keys/worktrees/x\n")
	b := newBox(t, Policy{Root: root})
	if o := shell(t, b, "cat ../keys/worktrees/x/id"); strings.Contains(o.Output, secret) {
		t.Errorf("%+v", o)
	}
}

// When tether itself is killed, nothing of its commands goes on.
func TestHarnessKilled(t *testing.T) {
	marker := rand.Text()
	cmd := exec.Command("/proc/self/exe", harness, t.TempDir(), fmt.Sprintf(stubborn, marker))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the command runs", func() bool { return alive(t, marker) > 4 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	until(t, "all is gone", func() bool { return alive(t, marker) == 0 })
}

// A machine whose own limits are lower keeps them: asking for more would be refused, and nothing would run.
func TestLowerHardLimit(t *testing.T) {
	b := newBox(t, Policy{})
	b.host.Hard = map[string]uint64{"nofile": 100, "memlock": 0}
	for _, prlimit := range []string{b.host.Prlimit, ""} {
		b.host.Prlimit = prlimit
		if o := shell(t, b, "ulimit -n; ulimit -l; ulimit -u"); o.Output != "100\n0\n512\n" {
			t.Errorf("with %q: %q", prlimit, o.Output)
		}
	}
}
