package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tool is a folder of the host that holds programs or packages and no secrets. It is shown read-only.
type tool struct {
	From string // where the host has it
	At   string // where a command finds it
}

// programFolders are the places, relative to the home directory, where people install programs. Each is shown where it
// is: scripts name their interpreter by its path. Never the whole of .cargo, .config, .local or .npm: those hold tokens.
var programFolders = []string{
	".local/bin", ".local/lib",
	".local/share/uv/python", ".local/share/uv/tools", ".local/share/pipx/venvs", ".local/pipx/venvs", // what links in .local/bin lead to
	".local/share/fnm", ".volta", ".asdf", ".rbenv", ".sdkman/candidates", ".deno/bin", ".ghcup",
	"/home/linuxbrew/.linuxbrew",
}

// prefixMarks are what tells a folder with programs in its bin, which PATH leads to, as an environment of Python or conda.
// prefixParts are what is shown of it: beside them may lie a .condarc, with a token in it.
var (
	prefixMarks = []string{"pyvenv.cfg", "conda-meta"}
	prefixParts = []string{"bin", "lib", "include", "share", "libexec", "ssl"}
)

// toolHomes are folders of programs that the user may have moved by a variable. Where mark is set, the folder must hold
// it: the whole of it is shown, and the variable may name anything.
var toolHomes = []struct {
	env, usual string // the variable, and where it is without, below the home directory
	part, mark string // what is shown of it
	told       bool   // its programs must be told where it is, when it was moved
}{
	{"CARGO_HOME", ".cargo", "bin", "", false}, // beside it lie the credentials
	{"RUSTUP_HOME", ".rustup", "", "toolchains", true},
	{"NVM_DIR", ".nvm", "", "versions", false},
	{"PYENV_ROOT", ".pyenv", "", "versions", true},
	{"BUN_INSTALL", ".bun", "bin", "", false},
	{"GOPATH", "go", "bin", "", false},
}

// packageCaches are folders of downloaded packages that are of use read-only. Wherever the user has them, they are shown
// at the place where the tool looks for them first, so that no variable is needed. npm's is not among them: npm writes
// into it while it reads and, where it cannot, says that nothing is cached.
var packageCaches = []struct {
	env   []string // variables and what comes below their folder; the first that is set counts
	below []string
	usual string // below the home directory
}{
	{[]string{"GOMODCACHE", "GOPATH"}, []string{"", "pkg/mod"}, modCache},
	// Not the registry as a whole: where only the archives are kept, they must be unpacked beside them.
	{[]string{"CARGO_HOME"}, []string{"registry/index"}, ".cargo/registry/index"},
	{[]string{"CARGO_HOME"}, []string{"registry/cache"}, ".cargo/registry/cache"},
	{[]string{"CARGO_HOME"}, []string{"registry/src"}, ".cargo/registry/src"},
}

// modCache is where commands find the modules of Go, below the home directory.
const modCache = "go/pkg/mod"

// findTools looks for the programs and packages of the user. It also returns the variables that a program needs to find
// a folder which is not at its usual place, as "NAME=value".
func findTools(h host, getenv func(string) string) (tools []tool, told []string) {
	b := toolbox{host: h}
	for _, d := range programFolders {
		if !filepath.IsAbs(d) {
			d = filepath.Join(h.Home, d)
		}
		b.add(d, d)
	}
	for _, t := range toolHomes {
		usual := filepath.Join(h.Home, t.usual)
		dir := moved(first(getenv(t.env)), usual)
		path := filepath.Join(dir, t.part)
		if t.mark != "" && !isDir(filepath.Join(dir, t.mark)) || !b.add(path, path) {
			continue
		}
		if t.told && dir != usual && plainValue.MatchString(dir) {
			told = append(told, t.env+"="+dir)
		}
	}
	if dir := goRoot(h.Path); dir != "" {
		b.add(dir, dir)
	}
	for _, dir := range environments(h.Path) {
		b.add(dir, dir)
	}
	for _, c := range packageCaches {
		usual := filepath.Join(h.Home, c.usual)
		b.add(cacheFolder(c.env, c.below, usual, getenv), usual)
	}
	return b.tools, told
}

// movedFolders returns the variables by which the user moved folders of tools, as "NAME=value": where a command sees the
// user's own home, its tools look there too.
func movedFolders(getenv func(string) string) []string {
	var env []string
	for _, name := range []string{"CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "GOPATH", "GOMODCACHE", "GOCACHE", "npm_config_cache", "PIP_CACHE_DIR", "XDG_CACHE_HOME"} {
		if v := getenv(name); filepath.IsAbs(v) && plainValue.MatchString(v) {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// outside takes away the tools and the folders of PATH that lie in the workspace, where a command may change them, or that
// a link leads there.
func (h host) outside(root string) host {
	h.Tools = slices.DeleteFunc(h.Tools, func(t tool) bool { return within(t.From, root) })
	h.Path = slices.DeleteFunc(h.Path, func(d string) bool {
		real, err := filepath.EvalSymlinks(d)
		return err != nil || within(real, root)
	})
	return h
}

// toolbox gathers tools.
type toolbox struct {
	host  host
	tools []tool
}

// add takes a folder if it exists and may be shown, and reports that. What another one shows already is not taken twice.
func (b *toolbox) add(from, at string) bool {
	real, ok := harmless(b.host, from)
	if ok && !slices.ContainsFunc(b.tools, func(t tool) bool { return within(at, t.At) }) {
		b.tools = append(b.tools, tool{real, at})
	}
	return ok
}

// cacheFolder returns where the user has a package cache.
func cacheFolder(env, below []string, usual string, getenv func(string) string) string {
	for i, name := range env {
		if dir := first(getenv(name)); filepath.IsAbs(dir) {
			return filepath.Join(dir, below[i])
		}
	}
	return usual
}

// first returns the first folder of a list: GOPATH may be one, whose first is where Go downloads and installs.
func first(list string) string {
	dir, _, _ := strings.Cut(list, string(filepath.ListSeparator))
	return dir
}

// moved returns the folder that a variable names, or the usual one.
func moved(value, usual string) string {
	if !filepath.IsAbs(value) {
		return usual
	}
	return filepath.Clean(value)
}

// harmless returns the resolved path of a folder that can be shown: not one that holds a home directory, nor one with
// keys, nor a part of the running system. The variable that names it may have been set by anyone.
func harmless(h host, path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !isDir(real) || within(h.Home, real) || h.Account != "" && within(h.Account, real) {
		return "", false
	}
	closed := []string{"/etc", "/proc", "/run", "/sys", "/dev"}
	for _, d := range homeClosed {
		closed = append(closed, filepath.Join(h.Home, d), filepath.Join(h.Account, d))
	}
	return real, !slices.ContainsFunc(closed, func(d string) bool { return within(real, d) })
}

// environments returns the parts of the environments that PATH leads to.
func environments(path []string) []string {
	var parts []string
	for _, d := range path {
		root := filepath.Dir(d)
		marked := slices.ContainsFunc(prefixMarks, func(m string) bool { _, err := os.Lstat(filepath.Join(root, m)); return err == nil })
		if filepath.Base(d) != "bin" || !marked {
			continue
		}
		for _, p := range prefixParts {
			parts = append(parts, filepath.Join(root, p))
		}
	}
	return parts
}

// goRoot returns where the Go that PATH leads to lives, or "".
func goRoot(path []string) string {
	for _, d := range path {
		real, err := filepath.EvalSymlinks(filepath.Join(d, "go"))
		if err != nil || filepath.Base(filepath.Dir(real)) != "bin" {
			continue
		}
		root := filepath.Dir(filepath.Dir(real))
		if isDir(filepath.Join(root, "src/runtime")) && isDir(filepath.Join(root, "pkg/tool")) {
			return root
		}
		return ""
	}
	return ""
}
