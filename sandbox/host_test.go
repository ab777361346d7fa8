//go:build linux

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFindTools(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, far := filepath.Join(base, "home"), filepath.Join(base, "far")
	for _, f := range []string{"home/.local/bin/x", "home/.cargo/bin/x", "home/.cargo/registry/index/x", "home/.cargo/registry/src/x", "home/.cargo/credentials.toml",
		"home/go/pkg/mod/x", "home/.pyenv/versions/x", "home/.nvm/x", "home/.ssh/id", "home/.npm/_cacache/x", "home/.aws/pkg/mod/x",
		"far/mod/x", "far/go/bin/x", "far/go/pkg/mod/x", "far/cargo/bin/x", "far/cargo/registry/cache/x", "far/cargo/credentials", "far/rustup/toolchains/x", "far/empty/x",
		"far/venv/bin/python", "far/venv/lib/x", "far/venv/pyvenv.cfg", "far/venv/secret/x", "home/conda/bin/python", "home/conda/conda-meta/x", "home/conda/.condarc",
		"far/goroot/bin/go", "far/goroot/src/runtime/x", "far/goroot/pkg/tool/x"} {
		write(t, filepath.Join(base, f), "")
	}
	usual := []string{".local/bin", ".pyenv", "go/pkg/mod", ".cargo/bin", ".cargo/registry/index", ".cargo/registry/src"}
	for name, tt := range map[string]struct {
		env   map[string]string
		path  []string
		gone  []string // of the usual ones
		extra []tool
		told  []string
	}{
		"usual":        {},
		"GOPATH":       {env: map[string]string{"GOPATH": far + "/go:/x"}, gone: []string{"go/pkg/mod"}, extra: []tool{{far + "/go/pkg/mod", home + "/go/pkg/mod"}, {far + "/go/bin", far + "/go/bin"}}},
		"GOMODCACHE":   {env: map[string]string{"GOPATH": far + "/go", "GOMODCACHE": far + "/mod"}, gone: []string{"go/pkg/mod"}, extra: []tool{{far + "/mod", home + "/go/pkg/mod"}, {far + "/go/bin", far + "/go/bin"}}},
		"relative":     {env: map[string]string{"GOMODCACHE": "mod", "RUSTUP_HOME": "rustup"}},
		"whole home":   {env: map[string]string{"GOMODCACHE": home, "PYENV_ROOT": home}, gone: []string{"go/pkg/mod", ".pyenv"}},
		"machine":      {env: map[string]string{"GOMODCACHE": "/", "PYENV_ROOT": base}, gone: []string{"go/pkg/mod", ".pyenv"}},
		"keys":         {env: map[string]string{"GOMODCACHE": home + "/.ssh", "CARGO_HOME": home + "/.ssh"}, gone: []string{"go/pkg/mod", ".cargo/bin", ".cargo/registry/index", ".cargo/registry/src"}},
		"below keys":   {env: map[string]string{"GOPATH": home + "/.aws"}, gone: []string{"go/pkg/mod"}},
		"system":       {env: map[string]string{"GOMODCACHE": "/etc/ssl"}, gone: []string{"go/pkg/mod"}},
		"RUSTUP_HOME":  {env: map[string]string{"RUSTUP_HOME": far + "/rustup"}, extra: []tool{{far + "/rustup", far + "/rustup"}}, told: []string{"RUSTUP_HOME=" + far + "/rustup"}},
		"no toolchain": {env: map[string]string{"RUSTUP_HOME": far + "/empty", "NVM_DIR": far + "/empty"}},
		"CARGO_HOME": {env: map[string]string{"CARGO_HOME": far + "/cargo"}, gone: []string{".cargo/bin", ".cargo/registry/index", ".cargo/registry/src"},
			extra: []tool{{far + "/cargo/bin", far + "/cargo/bin"}, {far + "/cargo/registry/cache", home + "/.cargo/registry/cache"}}},
		"environments": {path: []string{far + "/venv/bin", home + "/conda/bin", far + "/cargo/bin", home + "/.ssh"}, extra: []tool{{far + "/venv/bin", far + "/venv/bin"},
			{far + "/venv/lib", far + "/venv/lib"}, {home + "/conda/bin", home + "/conda/bin"}}},
		"GOROOT": {path: []string{far + "/empty", far + "/goroot/bin"}, extra: []tool{{far + "/goroot", far + "/goroot"}}},
	} {
		var want []tool
		for _, d := range usual {
			if !slices.Contains(tt.gone, d) {
				want = append(want, tool{filepath.Join(home, d), filepath.Join(home, d)})
			}
		}
		want = append(want, tt.extra...)
		got, told := findTools(host{Home: home, Path: tt.path}, func(n string) string { return tt.env[n] })
		order := func(a, b tool) int { return strings.Compare(a.At, b.At) }
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) || !slices.Equal(told, tt.told) {
			t.Errorf("%s:\n got %v %q\nwant %v %q", name, got, told, want, tt.told)
		}
	}
}

func TestMovedFolders(t *testing.T) {
	env := map[string]string{"GOPATH": "/data/go", "GOMODCACHE": "rel", "CARGO_HOME": "/a b", "CARGO_REGISTRY_TOKEN": "/secret", "RUSTUP_HOME": "/r\nX=1"}
	if got, want := movedFolders(func(n string) string { return env[n] }), []string{"GOPATH=/data/go"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTempFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("rel", 0o755); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{dir: dir, "rel": "/tmp", dir + "/missing": "/tmp", "": "/tmp"} {
		if got := tempFolder(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestPathFolders(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "bin/x"), "")
	write(t, filepath.Join(base, "ws/bin/x"), "")
	if err := os.Symlink("ws/bin", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	list := strings.Join([]string{"", ".", "bin", base + "/bin/", base + "/none", base + "/bin/x", base + "/link", base + "/bin"}, ":")
	want := []string{base + "/bin", base + "/link", base + "/ws/bin"}
	if got := pathFolders(list); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// The link leads into the workspace: it is on no PATH there, by neither name.
	h := host{Path: want}.outside(base + "/ws")
	if got := searchPath(Policy{Profile: Full, Root: base + "/ws"}, h); got[0] != base+"/bin" || !strings.HasPrefix(got[1], "/usr/") {
		t.Errorf("PATH has %q", got)
	}
}

// A folder of programs that is a link into the workspace would have the gates run what a command wrote there.
func TestToolsInTheWorkspace(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "bin/git"), "#!/bin/sh\necho planted\n")
	if err := errors.Join(os.Chmod(filepath.Join(root, "bin/git"), 0o755), os.Mkdir(filepath.Join(home, ".local"), 0o755), os.Symlink(filepath.Join(root, "bin"), filepath.Join(home, ".local/bin"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, ".local/bin")+":"+root+"/bin:"+os.Getenv("PATH"))
	for _, p := range []Profile{WorkspaceWrite, Full, Off} {
		if o := shell(t, newBox(t, Policy{Root: root, Profile: p}), "git --version; echo $PATH; ls ~/.local/bin"); strings.Contains(o.Output, "planted") {
			t.Errorf("%s: %+v", p, o)
		}
	}
	// For another workspace it is a tool like any other.
	if o := shell(t, newBox(t, Policy{}), "git"); o.Output != "planted\n" {
		t.Errorf("elsewhere: %+v", o)
	}
}

// Packages of the host can be read and not changed, wherever the user keeps them; the tokens beside them are not there.
func TestPackagesOfTheHost(t *testing.T) {
	home, far := t.TempDir(), t.TempDir()
	for _, f := range []string{"cargo/registry/src/crate", "cargo/credentials.toml", "cargo/bin/tool", "mod/module"} {
		write(t, filepath.Join(far, f), "SECRET of "+f)
	}
	for _, f := range []string{".npmrc", ".pypirc", ".cargo/credentials.toml", ".npm/_cacache/x", ".config/gh/hosts.yml"} {
		write(t, filepath.Join(home, f), "SECRET of "+f)
	}
	t.Setenv("HOME", home)
	t.Setenv("CARGO_HOME", filepath.Join(far, "cargo"))
	t.Setenv("GOMODCACHE", filepath.Join(far, "mod"))
	b := newBox(t, Policy{Cache: t.TempDir()})
	o := shell(t, b, "cat ~/go/pkg/mod/module ~/.cargo/registry/src/crate "+far+"/cargo/bin/tool")
	if want := "SECRET of mod/moduleSECRET of cargo/registry/src/crateSECRET of cargo/bin/tool"; o.Output != want || o.Status != 0 {
		t.Errorf("%+v, want %q", o, want)
	}
	if o := shell(t, b, "find ~ "+far+" -name '.*rc' -o -name 'cred*' -o -name hosts.yml -o -name _cacache"); o.Output != "" {
		t.Errorf("tokens are to be seen: %s", o.Output)
	}
	shell(t, b, "rm -rf ~/go/pkg/mod ~/.cargo/registry "+far+"; echo x >> ~/go/pkg/mod/module")
	if got := read(t, filepath.Join(far, "mod/module")) + read(t, filepath.Join(far, "cargo/registry/src/crate")); got != "SECRET of mod/moduleSECRET of cargo/registry/src/crate" {
		t.Errorf("the packages are now %q", got)
	}
	if o := shell(t, b, "mkdir -p ~/.cache/go-build && echo kept > ~/.cache/go-build/x"); o.Status != 0 || read(t, filepath.Join(b.Policy().Cache, "go-build/x")) != "kept\n" {
		t.Errorf("the private cache: %+v", o)
	}
}
