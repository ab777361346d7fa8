//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// arity is how many values follow each option that tether gives the launcher (bwrap(1)).
var arity = map[string]int{
	"--unshare-user": 0, "--unshare-ipc": 0, "--unshare-pid": 0, "--unshare-uts": 0, "--unshare-cgroup-try": 0, "--unshare-net": 0,
	"--disable-userns": 0, "--die-with-parent": 0, "--new-session": 0, "--clearenv": 0,
	"--cap-drop": 1, "--hostname": 1, "--uid": 1, "--gid": 1, "--json-status-fd": 1, "--seccomp": 1, "--sync-fd": 1, "--size": 1, "--perms": 1,
	"--tmpfs": 1, "--proc": 1, "--dev": 1, "--remount-ro": 1, "--chdir": 1,
	"--bind": 2, "--ro-bind": 2, "--ro-bind-try": 2, "--dev-bind": 2, "--symlink": 2, "--setenv": 2, "--bind-fd": 2, "--ro-bind-fd": 2,
}

// No path and no value becomes an option of the launcher: read as the launcher reads them, from one string with NUL bytes
// in between, the options are the same ones for every workspace, folder, home, tool and environment.
func FuzzOptions(f *testing.F) {
	for _, s := range []string{"p", "--bind", "--", "a b", "-", "=", "\n", "--setenv\x01X", "$(id)", "../..", "--share-net=1", "\xff"} {
		f.Add(s, "d", "home", "tool", "value")
		f.Add("p", s, s, s, s)
	}
	names := func(p Policy, h host, t tree, dir string) ([]string, error) {
		args := strings.Split(strings.Join(options(p, h, t, dir, true), "\x00"), "\x00")
		var names []string
		for i := 0; i < len(args); i++ {
			n, ok := arity[args[i]]
			if !ok || i+n >= len(args) {
				return nil, fmt.Errorf("%q is an option", args[i])
			}
			names = append(names, args[i])
			if args[i] == "--setenv" || args[i] == "--chdir" {
				names = append(names, args[i+1])
			}
			i += n
		}
		return names, nil
	}
	f.Fuzz(func(t *testing.T, root, dir, home, tools, value string) {
		if strings.ContainsRune(root+dir+home+tools+value, 0) {
			return // no path and no variable can have it; New and Run refuse it
		}
		p, h := Policy{Profile: WorkspaceWrite, Network: NetOff, Root: "/srv/" + root}, machine()
		h.Home, h.Env = "/home/"+home, []string{"LANG=" + value}
		h.Tools = []tool{{"/data/" + tools, "/data/" + tools}}
		tr := tree{Protect: []string{".git", tools}, Hide: []string{p.Root + "/" + value}, GitDirs: []string{"/data/" + value}}
		got, err := names(p, h, tr, dir)
		if err != nil {
			t.Fatal(err)
		}
		if within(filepath.Clean(h.Tools[0].At), filepath.Clean(p.Root)) || within(h.Tools[0].At, p.Root) || system(h.Tools[0].At) {
			return // a tool that is to be seen anyway needs no option
		}
		p.Root, h.Home, h.Env, h.Tools = "/srv/p", "/home/ada", []string{"LANG=C"}, []tool{{"/data/t", "/data/t"}}
		want, err := names(p, h, tr, "")
		if err != nil {
			t.Fatal(err)
		}
		if got[len(got)-1] != filepath.Join("/srv/"+root, dir) { // the folder of --chdir
			t.Fatalf("the command starts in %q", got[len(got)-1])
		}
		if g, w := strings.Join(got[:len(got)-1], " "), strings.Join(want[:len(want)-1], " "); g != w {
			t.Fatalf("the options are\n%s\nwant\n%s", g, w)
		}
	})
}

func FuzzRel(f *testing.F) {
	files := &Files{policy: Policy{Root: "/srv/p"}, asked: "/link"}
	for _, s := range []string{"a", "../..", "/srv/p/../x", "/srv/p/a", "/link/..", "a/./../..//b", "\x00", "/srv/pp"} {
		f.Add("sub", s)
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, dir, name string) {
		rel, err := files.Rel(dir, name)
		if err != nil {
			if !errors.Is(err, ErrOutside) {
				t.Fatalf("Rel(%q, %q): %v", dir, name, err)
			}
			return
		}
		if !filepath.IsLocal(rel) || path.Clean(rel) != rel || !within(path.Join("/srv/p", rel), "/srv/p") || strings.ContainsRune(rel, 0) {
			t.Fatalf("Rel(%q, %q) = %q", dir, name, rel)
		}
		if again, err := files.Rel("", rel); again != rel || err != nil {
			t.Fatalf("Rel of %q is %q, %v", rel, again, err)
		}
	})
}

// Whatever path a model gives, nothing outside the workspace is read or changed, nor what is protected in it.
func FuzzFiles(f *testing.F) {
	files, root := jail(f, Policy{})
	outside := f.TempDir()
	fixed := map[string]string{filepath.Join(outside, "victim"): "SECRET", filepath.Join(root, ".git/config"): "SECRET", filepath.Join(root, ".tether/db"): "SECRET",
		filepath.Join(root, "tether.toml"): "x = 1"}
	for path, text := range fixed {
		write(f, path, text)
	}
	write(f, filepath.Join(root, "dir/file"), "text")
	for name, target := range map[string]string{"out": outside, "victim": outside + "/victim", "up": "..", "inner": "dir", "state": ".tether", "dir/back": "../..", "root": "/"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			f.Fatal(err)
		}
	}
	for _, s := range []string{"a", "dir/new", "out/victim", "out/new", "victim", "up/x", "inner/x", "dir/../../x", "../" + filepath.Base(outside) + "/victim", "state/db",
		".git/config", ".GIT/config", ".git\u200c/config", "dir/back/x", "root" + outside + "/victim", outside + "/victim", root + "/../x", "a\x00b", "a/./../b/", "tether.toml/",
		"dir//file", ".", "", "x/y/z/" + strings.Repeat("n/", 40), strings.Repeat("n", 300), "\xff", "out/../a"} {
		f.Add(s, "new text")
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if strings.Contains(text, "SECRET") {
			return // that is what is looked for
		}
		tryFiles(t, files, root, name, text)
		for path, want := range fixed {
			if got := read(t, path); got != want {
				t.Fatalf("%s is now %q after %q", path, got, name)
			}
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Fatalf("outside there is now %v, %v, after %q", entries, err, name)
		}
	})
}

// tryFiles writes, reads and describes one path.
func tryFiles(t *testing.T, files *Files, root, name, text string) {
	t.Helper()
	werr := files.WriteFile(name, []byte(text))
	data, rerr := files.ReadFile(name, 1<<20)
	if strings.Contains(string(data), "SECRET") && !strings.Contains(name, ".git") { // which may be read
		t.Fatalf("read %q from %q", data, name)
	}
	if werr == nil {
		rel, err := files.Rel("", name)
		if got, err2 := os.ReadFile(filepath.Join(root, rel)); err != nil || err2 != nil || string(got) != text {
			t.Fatalf("%q (%q): wrote %q, found %q, %v %v", name, rel, text, got, err, err2)
		}
	}
	if rerr == nil && werr == nil && string(data) != text {
		t.Fatalf("%q: wrote %q, read %q", name, text, data)
	}
	if fi, err := files.Stat(name); err == nil && rerr == nil && fi.Size() != int64(len(data)) {
		t.Fatalf("%q: %d bytes, read %d", name, fi.Size(), len(data))
	}
	if strings.Contains(name, "\x00") && (werr == nil || rerr == nil) {
		t.Fatalf("%q: %v, %v", name, werr, rerr)
	}
}

// However output comes in pieces, what is kept is text within its bounds, and nothing is lost without being counted.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("\x1b[31mred\x1b[0m\r\n"), 3, 1)
	f.Add([]byte("日本\xff\x00"), 1, 50_000)
	f.Add([]byte("\xf0\x9f"), 2, 70_000)
	f.Add([]byte(""), 0, 5)
	f.Fuzz(func(t *testing.T, piece []byte, size, times int) {
		const most = 3 * keep
		times = min(max(times, 0), most/max(1, len(piece)))
		all := strings.Repeat(string(piece), times)
		o := newOutput(1 << 40)
		for rest := all; rest != ""; {
			n := min(len(rest), max(1, size))
			o.add([]byte(rest[:n]))
			rest = rest[n:]
		}
		got, left := o.text()
		const note = 64 // bytes of the line that marks the gap
		switch {
		case !utf8.ValidString(got) || dirty(got):
			t.Fatalf("it is not clean: %.100q", got)
		case len(got) > 2*2*keep+note: // a byte that is no text becomes three, and two of those never touch
			t.Fatalf("%d bytes are kept", len(got))
		case left != int64(max(0, len(all)-2*keep)):
			t.Fatalf("%d bytes left out of %d", left, len(all))
		case left == 0 && got != clean(all):
			t.Fatalf("kept %.100q of %.100q", got, all)
		}
	})
}
