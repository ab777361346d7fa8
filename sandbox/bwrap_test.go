//go:build linux

package sandbox

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// machine is a host as most distributions have it: a merged /usr, an ordinary user, some tools.
func machine() host {
	return host{
		Bwrap: "/usr/bin/bwrap", EUID: 1000, Home: "/home/ada", User: "ada", Env: []string{"LANG=C.UTF-8", "TZ=Europe/Berlin"},
		Path:  []string{"/home/ada/bin", "/home/ada/.cargo/bin", "/srv/p/bin", "/usr/bin", "/bin"},
		Links: map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"},
		Files: []string{"/etc/shadow", "/etc/ssh/ssh_host_rsa_key"}, Folders: []string{"/etc/ssl/private"},
		Tools: []tool{{"/home/ada/.cargo/bin", "/home/ada/.cargo/bin"}, {"/data/go/mod", "/home/ada/go/pkg/mod"}, {"/usr/local/go", "/usr/local/go"}},
		Told:  []string{"RUSTUP_HOME=/usr/local/rustup"}, Moved: []string{"GOPATH=/data/go"}, Bash: "/bin/bash", Prlimit: "/usr/bin/prlimit", Temp: "/tmp",
	}
}

// box makes a Box of facts alone: nothing on this machine is looked at.
func vectorOf(p Policy, h host, t tree, c Cmd) []string {
	if err := settleNetwork(&p); err != nil {
		panic(err)
	}
	if !launched(p) {
		return slices.Concat(shim(p, h), program(p, h, c))
	}
	argv := append([]string{h.Bwrap}, options(p, h, t, c.Dir, c.Shell != "")...)
	return slices.Concat(argv, []string{"--"}, shim(p, h), program(p, h, c))
}

func TestVectors(t *testing.T) {
	repo := tree{Protect: []string{".git", "tether.toml", ".vscode"}, Hide: []string{"/srv/p/.tether"}}
	for name, tt := range map[string]struct {
		p    Policy
		h    func(*host)
		tree tree
		c    Cmd
	}{
		"workspace-write": {Policy{Profile: WorkspaceWrite, Root: "/srv/p", Cache: "/home/ada/.cache/tether/1"}, nil, repo, Cmd{Shell: "go test ./...", Dir: "a b"}},
		"read-only":       {Policy{Profile: ReadOnly, Root: "/srv/p", Cache: "/home/ada/.cache/tether/1"}, nil, repo, Cmd{Argv: []string{"ls"}}},
		"full":            {Policy{Profile: Full, Root: "/srv/p"}, nil, tree{Hide: repo.Hide}, Cmd{Shell: "ls"}},
		"root":            {Policy{Profile: WorkspaceWrite, Root: "/srv/p"}, func(h *host) { h.EUID, h.Home, h.User = 0, "/root", "root" }, repo, Cmd{Shell: "ls"}},
		"root-full":       {Policy{Profile: Full, Root: "/srv/p"}, func(h *host) { h.EUID, h.Home, h.User = 0, "/root", "root" }, tree{}, Cmd{Shell: "ls"}},
		"bare": {Policy{Profile: WorkspaceWrite, Root: "/tmp/p"}, func(h *host) {
			h.Links, h.Dirs, h.Tools, h.Bash, h.Prlimit = nil, []string{"bin", "lib"}, nil, "", ""
		}, tree{Hide: []string{"/tmp/p/.tether", "/tmp/p/.git"}}, Cmd{Shell: "ls"}},
		"worktree": {Policy{Profile: WorkspaceWrite, Root: "/srv/p"}, nil, tree{Protect: []string{".git"}, GitDirs: []string{"/srv/main/.git"}}, Cmd{Shell: "ls"}},
		"proxy": {Policy{Profile: ReadOnly, Root: "/srv/p", Network: NetProxy, Allow: []string{"pkg.go.dev"}}, func(h *host) { h.Self = "/usr/bin/tether" },
			repo, Cmd{Argv: []string{"ls"}}},
		"proxy-replaced": {Policy{Profile: WorkspaceWrite, Root: "/srv/p", Network: NetProxy}, nil, repo, Cmd{Shell: "ls"}},
		"host-network": {Policy{Profile: WorkspaceWrite, Root: "/srv/p", Network: NetHost}, func(h *host) {
			h.Resolv, h.Landlock, h.Self = "/run/systemd/resolve/stub-resolv.conf", 7, "/usr/bin/tether"
		},
			repo, Cmd{Shell: "ls"}},
		"host-network-old-kernel": {Policy{Profile: WorkspaceWrite, Root: "/srv/p", Network: NetHost}, nil, repo, Cmd{Argv: []string{"ls"}}},
		"landlock": {Policy{Profile: Landlock, Root: "/srv/p"}, func(h *host) { h.Private, h.Home, h.Temp = "/tmp/tether-1", "/tmp/tether-1/home", "/tmp/tether-1/tmp" },
			repo, Cmd{Shell: "ls"}},
	} {
		h := machine()
		if tt.h != nil {
			tt.h(&h)
		}
		golden(t, name, vectorOf(tt.p, h, tt.tree, tt.c))
	}
}

// golden compares an argument vector with its file: one line an option.
func golden(t *testing.T, name string, argv []string) {
	t.Helper()
	var b strings.Builder
	for i, a := range argv {
		if strings.HasPrefix(a, "--") && i > 0 {
			b.WriteByte('\n')
		} else if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a)
	}
	got, path := b.String()+"\n", filepath.Join("testdata", name+".argv")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, path); got != want {
		t.Errorf("%s differs from %s (go test -update writes it anew):\n%s", name, path, got)
	}
}

func TestArgv(t *testing.T) {
	b := newBox(t, Policy{})
	argv := b.Argv(Cmd{Argv: []string{"echo", "--", "a b"}})
	if argv[0] != b.host.Bwrap || !slices.Equal(argv[len(argv)-3:], []string{"echo", "--", "a b"}) {
		t.Errorf("%q", argv)
	}
	if exists(filepath.Join(b.Policy().Root, ".git")) {
		t.Error("Argv changed the workspace")
	}
	off := newBox(t, Policy{Profile: Off})
	if argv := off.Argv(Cmd{Argv: []string{"echo"}}); argv[0] != "/bin/sh" || argv[len(argv)-1] != "echo" {
		t.Errorf("%q", argv)
	}
}

// What stands after "--" is the command, untouched: nothing in it can become an option of the launcher.
func FuzzArgv(f *testing.F) {
	f.Add("--bind", "/", "a/b")
	f.Add("--", "--share-net", "--")
	f.Add("x\x00--bind", "", "..")
	f.Fuzz(func(t *testing.T, a, b, dir string) {
		p, h := Policy{Profile: WorkspaceWrite, Root: "/srv/p"}, machine()
		if len(a)%2 == 1 {
			p.Network = NetProxy
		}
		plain := vectorOf(p, h, tree{}, Cmd{Argv: []string{"true"}})
		for _, c := range []Cmd{{Argv: []string{a, b}, Dir: dir}, {Shell: a + b + "x", Dir: dir}} {
			argv := vectorOf(p, h, tree{}, c)
			end := slices.Index(argv, "--")
			if dir == "--" { // only as a part of the folder of --chdir
				continue
			}
			want := slices.Concat(shim(p, h), program(p, h, c))
			if !slices.Equal(argv[end+1:], want) {
				t.Fatalf("the command became %q, want %q", argv[end+1:], want)
			}
			if c.Shell == "" && !slices.Equal(argv[:end-1], plain[:end-1]) {
				t.Fatalf("the command changed the options: %q", argv[:end])
			}
		}
	})
}

func TestSearchPath(t *testing.T) {
	h := machine()
	for profile, want := range map[Profile]string{
		// ~/bin is not visible inside, the folder of the workspace must not be on it, .cargo/bin keeps its place.
		WorkspaceWrite: "/home/ada/.cargo/bin:/usr/bin:/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin",
		Off:            "/home/ada/bin:/home/ada/.cargo/bin:/usr/bin:/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin",
	} {
		if got := strings.Join(searchPath(Policy{Profile: profile, Root: "/srv/p"}, h), ":"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", profile, got, want)
		}
	}
}

func TestLocale(t *testing.T) {
	env := map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "$(id)", "LC_TIME": "C", "TZ": strings.Repeat("x", 65), "LC_MESSAGES": "C"}
	got := locale(func(name string) string { return env[name] })
	if want := []string{"LANG=de_DE.UTF-8", "LC_TIME=C"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
