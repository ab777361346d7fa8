//go:build linux

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// folder is a fake fs.FileInfo: of a folder whose owner is unknown.
type folder struct{ fs.FileInfo }

func (folder) IsDir() bool        { return true }
func (folder) Mode() fs.FileMode  { return fs.ModeDir }
func (folder) ModTime() time.Time { return time.Time{} }
func (folder) Sys() any           { return nil }

func TestRefusedWorkspaces(t *testing.T) {
	for root, want := range map[string]string{
		"/":                      "the whole machine",
		"/home/ada":              "your home directory",
		"/home":                  "your home directory lies in it",
		"/tmp":                   "shared",
		"/var":                   "shared",
		"/var/tmp":               "shared",
		"/usr":                   "shared",
		"/opt":                   "shared",
		"/etc":                   "the system",
		"/etc/nginx":             "the system",
		"/usr/bin":               "the system",
		"/run":                   "the system",
		"/run/user/1000/x":       "the system",
		"/dev/shm":               "the system",
		"/proc/self/cwd":         "the system",
		"/home/ada/.ssh":         "keys",
		"/home/ada/.gnupg/x":     "keys",
		"/home/ada/.config":      "shared",
		"/home/ada/state":        "tether keeps its own state",
		"/home/ada/state/x":      "tether keeps its own state",
		"/srv/a\nb":              "line break",
		"/srv/a\xffb":            "invalid UTF-8",
		"/scratch":               "shared", // the host's temporary folder
		"/scratch/x":             "",
		"/tmp/x":                 "",
		"/var/tmp/x":             "",
		"/home/ada/p":            "",
		"/home/ada/.config/nvim": "",
		"/export/ada":            "your home directory",
		"/export":                "your home directory lies in it",
		"/home/adam":             "",
		"/home/bob/p":            "",
		"/opt/p":                 "",
		"/work":                  "",
		"/usr/src/p":             "",
		"/srv/größe x":           "",
	} {
		h := machine()
		h.Temp, h.Account = "/scratch", "/export/ada"
		err := refuse(Policy{Root: root, State: "/home/ada/state", Profile: WorkspaceWrite}, h, folder{})
		var re *RefusedError
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", root, err)
		case want != "" && (!errors.As(err, &re) || !strings.Contains(err.Error(), want) || re.Repair == ""):
			t.Errorf("%q: error %v, want one with %q", root, err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	home := t.TempDir()
	t.Setenv("HOME", home)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Policy{
		{Root: "/"}, {Root: home}, {Root: link}, {Root: filepath.Dir(home)}, {Root: os.TempDir()}, {Root: file}, {Root: file + "-missing"}, {Root: ""},
		{Root: t.TempDir(), Profile: "careless"}, {Root: "/", Profile: Off}, {Root: home, Profile: ReadOnly},
	} {
		if p.Root == "" {
			t.Chdir("/")
		}
		var re *RefusedError
		if _, err := New(t.Context(), p); !errors.As(err, &re) {
			t.Errorf("%+v: error %v, want a *RefusedError", p, err)
		}
	}
}

func TestForeignWorkspace(t *testing.T) {
	h := survey()
	h.EUID++
	fi, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := refuse(Policy{Root: "/srv/p", Profile: WorkspaceWrite}, h, fi); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("error %v", err)
	}
	if err := refuse(Policy{Root: "/srv/p", Profile: ReadOnly}, h, fi); err != nil {
		t.Errorf("reading: error %v", err)
	}
}

func TestLinkedWorkspace(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "file"), "text")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	b := newBox(t, Policy{Root: link})
	if b.Policy().Root != root {
		t.Errorf("root %s, want %s", b.Policy().Root, root)
	}
	if o := shell(t, b, "pwd; cat file"); o.Output != root+"\ntext" {
		t.Errorf("%+v", o)
	}
	if rel, err := b.Files().Rel("", link+"/file"); rel != "file" || err != nil {
		t.Errorf("Rel: %q, %v", rel, err)
	}
}

// A link at a protected place would be followed by the launcher, with rights that a command does not have.
func TestLinksAreRefused(t *testing.T) {
	for _, name := range []string{".git", ".tether", "tether.toml", ".vscode"} {
		root, outside := t.TempDir(), t.TempDir()
		if err := os.Symlink("/oldroot"+outside, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
		_, err := New(t.Context(), Policy{Root: root})
		var re *RefusedError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), name+" is a symbolic link") {
			t.Errorf("%s: error %v", name, err)
		}
		if entries, _ := os.ReadDir(outside); len(entries) != 0 {
			t.Errorf("%s: made outside: %v", name, entries)
		}
	}
}

func TestLinkMadeLaterIsRefused(t *testing.T) {
	b := newBox(t, Policy{})
	if o := shell(t, b, "ln -s /oldroot/tmp .vscode"); o.Status != 0 {
		t.Fatal(o)
	}
	_, err := b.Run(t.Context(), Cmd{Shell: "true"})
	var le *LaunchError
	var re *RefusedError
	if !errors.As(err, &le) || !errors.As(err, &re) {
		t.Errorf("error %v", err)
	}
}

func TestHardLinksAreRefused(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "other"), "x=1")
	if err := os.Link(filepath.Join(root, "other"), filepath.Join(root, "tether.toml")); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Policy{Root: root}); err == nil || !strings.Contains(err.Error(), "second name") {
		t.Errorf("error %v", err)
	}
}

// A workspace in which no stand-in can be made is at fault, not the launcher.
func TestNoHolder(t *testing.T) {
	root := t.TempDir()
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	top, err := os.Open(root + "/.")
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	asOrdinaryUser(t, func() {
		var refused *RefusedError
		if _, err := makeHolders(top, []string{filepath.Join(root, ".git")}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "refusing "+root+" as") || !strings.Contains(err.Error(), ".git cannot be made (permission denied)") {
			t.Errorf("%v", err)
		}
	})
}

// A stand-in that cannot be held does not stay.
func TestHolderNotOpened(t *testing.T) {
	root := t.TempDir()
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	top, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	defer unix.Umask(unix.Umask(0o777))
	asOrdinaryUser(t, func() {
		if _, err := makeHolders(top, []string{filepath.Join(root, ".git")}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v", err)
		}
	})
	if exists(filepath.Join(root, ".git")) {
		t.Error("it is left")
	}
}

func TestHolders(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, ".git")
	top, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	a, err := makeHolders(top, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	b, err := makeHolders(top, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	a.release()
	if !exists(path) {
		t.Fatal("the folder went while somebody held it")
	}
	b.release()
	if exists(path) {
		t.Fatal("the folder is left")
	}
	c, err := makeHolders(top, []string{path})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "HEAD"), "ref") // a person ran "git init"
	c.release()
	if !exists(filepath.Join(path, "HEAD")) {
		t.Fatal("a filled folder was taken away")
	}
}

func TestInspect(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".git/HEAD"), "ref")
	write(t, filepath.Join(root, "tether.toml"), "")
	write(t, filepath.Join(root, ".mcp.json"), "{}")
	write(t, filepath.Join(root, ".tether/db"), "")
	state := filepath.Join(root, "state")
	write(t, filepath.Join(state, "db"), "")
	got, err := inspect(Policy{Root: root, Profile: WorkspaceWrite, State: state}, machine())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".git", "tether.toml", ".mcp.json"}; !slices.Equal(got.Protect, want) {
		t.Errorf("protect %q, want %q", got.Protect, want)
	}
	if want := []string{filepath.Join(root, ".tether"), state}; !slices.Equal(got.Hide, want) || got.Hold != nil {
		t.Errorf("hide %q, want %q; hold %q", got.Hide, want, got.Hold)
	}
}

func TestExplain(t *testing.T) {
	for said, want := range map[string]string{
		"bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.": "does not let you make user namespaces",
		"bwrap: Creating new namespace failed: nesting depth or max_*_namespaces exceeded (ENOSPC)":                               "no more user namespaces",
		"bwrap: setting up uid map: Permission denied":                                                                            "AppArmor",
		"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted":                                                            "AppArmor",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted":                                                       "hides parts of /proc",
		"bwrap: Creating new namespace failed: Resource temporarily unavailable":                                                  "limit on your processes",
		"bwrap: Unknown option --disable-userns":                                                                                  "older than 0.8",
		"something else":                                                                                                          "bubblewrap failed: something else",
	} {
		e := explain(&LaunchError{Stderr: said}, false, standardName)
		if !strings.Contains(e.Cause, want) || e.Repair == "" || e.Stderr != said {
			t.Errorf("%s: %+v", said, e)
		}
		if nested := explain(&LaunchError{Stderr: said}, true, standardName); !strings.Contains(nested.Cause, "inside of a tether sandbox") {
			t.Errorf("nested: %+v", nested)
		}
	}
}

func TestFindBwrap(t *testing.T) {
	dir := t.TempDir()
	mine, missing := filepath.Join(dir, "bwrap"), filepath.Join(dir, "missing")
	write(t, mine, "")
	if err := os.Chmod(mine, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		standard, onPath string
		err              error
		want, cause      string
	}{
		{standardBwrap, mine, nil, standardBwrap, ""},
		{missing, standardBwrap, nil, standardBwrap, ""},
		{missing, "", errors.New("not found"), "", "not installed"},
		{missing, "bin/bwrap", nil, "", "not installed"},
		{missing, missing, nil, "", "not installed"},
		{missing, mine, nil, "", "not root's own"},
	} {
		got, err := findBwrap(tt.standard, func(string) (string, error) { return tt.onPath, tt.err })
		var ue *UnavailableError
		if got != tt.want || tt.cause != "" && (!errors.As(err, &ue) || !strings.Contains(ue.Cause, tt.cause) || ue.Repair == "") {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}
