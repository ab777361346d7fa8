package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// host holds every fact about the machine that the argument vector depends on, so that the vector is a pure function
// which golden files can test without bubblewrap.
type host struct {
	Bwrap    string            // absolute path of the launcher
	Pins     bool              // the launcher takes descriptors in place of paths
	Freeze   []string          // where the host's file systems are writable, if the launcher must be kept from writing there
	EUID     int               // 0 adds what real root needs
	Home     string            // resolved home directory, never "/" or ""
	Account  string            // home directory as the system's user list has it: $HOME may name another one
	Env      []string          // checked locale and time zone, "NAME=value"
	User     string            // login name
	Path     []string          // the absolute entries of the user's PATH
	Links    map[string]string // top-level library folders that are links: "bin" -> "usr/bin"
	Dirs     []string          // top-level library folders that are real
	Files    []string          // secret files below /etc, each covered by /dev/null
	Folders  []string          // secret folders below /etc, each covered by an empty one
	Tools    []tool            // folders of programs and packages that exist
	Told     []string          // where programs find a folder that is not at its usual place, "NAME=value"
	Moved    []string          // the same for all folders that the user moved, for profiles that see the real home
	Bash     string            // "" if there is none: sh is used
	Prlimit  string            // "" if there is none: the shell's ulimit is used
	Hard     map[string]uint64 // limits of this process that it cannot raise, by prlimit's name for them
	Temp     string            // the host's temporary folder, for profiles that see it
	Nested   bool              // this process already runs in a sandbox of ours
	Private  string            // one command's own folder, "" where a private file system takes its place
	Tasks    uint64            // processes and threads that the user has already, where they count
	Landlock int               // version of the kernel's interface, 0 without it
	Self     string            // the file of this program, "" if none leads to it any more
	Resolv   string            // where /etc/resolv.conf leads, "" if that is shown anyway
}

// topLevel are the folders that a merged /usr makes links of.
var topLevel = []string{"bin", "sbin", "lib", "lib64", "lib32"}

// secretFiles and secretFolders hold keys and hashes which /etc brings along, as patterns. An ordinary user cannot
// read most of them; the user of a container often is root.
var (
	secretFiles = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab",
		"/etc/security/opasswd", "/etc/ssh/ssh_host_*_key",
		"/usr/local/cargo/credentials", "/usr/local/cargo/credentials.toml"} // where images have CARGO_HOME
	secretFolders = []string{"/etc/sudoers.d", "/etc/ssl/private", "/etc/docker", "/etc/kubernetes", "/etc/wireguard",
		"/etc/NetworkManager/system-connections"}
)

// nestedMark is set where commands are confined, so that a tether started there can say what is wrong.
const nestedMark = "TETHER_SANDBOX"

// survey gathers the facts about this machine. It does not look for the launcher.
func survey() host {
	h := host{EUID: os.Geteuid(), Home: home(), Links: map[string]string{}, Temp: tempFolder(os.TempDir()), Hard: hardLimits()}
	h.User, h.Account = account()
	h.Nested = os.Getenv(nestedMark) != ""
	h.Env = locale(os.Getenv)
	h.Path = pathFolders(os.Getenv("PATH"))
	for _, d := range topLevel {
		if target, err := os.Readlink("/" + d); err == nil {
			h.Links[d] = target
		} else if isDir("/" + d) {
			h.Dirs = append(h.Dirs, d)
		}
	}
	h.Files = existing(secretFiles, func(fi os.FileInfo) bool { return fi.Mode().IsRegular() })
	h.Folders = existing(secretFolders, os.FileInfo.IsDir)
	h.Tools, h.Told = findTools(h, os.Getenv)
	h.Moved = movedFolders(os.Getenv)
	h.Resolv, h.Self, h.Landlock = resolver(), self(), kernelABI()
	h.Bash = firstFile("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
	h.Prlimit = firstFile("/usr/bin/prlimit", "/bin/prlimit")
	return h
}

// pathFolders returns the absolute folders of a PATH that exist. One that is a link comes by both of its names, since
// either may be to be seen inside.
func pathFolders(list string) []string {
	var path []string
	for _, d := range filepath.SplitList(list) {
		real, err := filepath.EvalSymlinks(d)
		if err != nil || !filepath.IsAbs(d) || !isDir(real) {
			continue
		}
		for _, name := range []string{filepath.Clean(d), real} {
			if !slices.Contains(path, name) {
				path = append(path, name)
			}
		}
	}
	return path
}

// home returns the resolved home directory. Some containers have none, or "/": then a name that exists only inside the
// sandbox stands in, because the private home is mounted there.
func home() string {
	const none = "/home/tether"
	h, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(h) {
		u, uerr := user.Current()
		if uerr != nil {
			return none
		}
		h = u.HomeDir
	}
	if real, err := filepath.EvalSymlinks(h); err == nil {
		h = real
	}
	if h = filepath.Clean(h); h == "/" || !filepath.IsAbs(h) {
		return none
	}
	return h
}

// tempFolder returns the folder for temporary files, or the usual one where a variable names nothing that can be used.
func tempFolder(dir string) string {
	if filepath.IsAbs(dir) && isDir(dir) {
		return dir
	}
	return "/tmp"
}

// account returns the user's name and home directory as the system knows them, or stand-ins.
func account() (name, dir string) {
	u, err := user.Current()
	if err != nil {
		return "user", ""
	}
	if name = u.Username; !plainValue.MatchString(name) {
		name = "user"
	}
	if filepath.IsAbs(u.HomeDir) {
		dir = filepath.Clean(u.HomeDir)
	}
	return name, dir
}

// hardLimits returns what this process may not exceed. A limit of ours above one of them would be refused.
func hardLimits() map[string]uint64 {
	hard := map[string]uint64{}
	for name, n := range map[string]int{"nproc": unix.RLIMIT_NPROC, "core": unix.RLIMIT_CORE, "nofile": unix.RLIMIT_NOFILE,
		"fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK} {
		var r unix.Rlimit
		if unix.Getrlimit(n, &r) == nil {
			hard[name] = r.Max
		}
	}
	return hard
}

// allowed lowers a limit to what this process may set.
func (h host) allowed(name string, value uint64) uint64 {
	if hard, ok := h.Hard[name]; ok {
		return min(value, hard)
	}
	return value
}

// plainValue is what a locale, a time zone or a login name may look like. Anything else is dropped, not quoted.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_.@/+:-]{1,64}$`)

// locale copies the few variables of the user that change how text and time are shown.
func locale(getenv func(string) string) []string {
	env := []string{"LANG=C.UTF-8"}
	if v := getenv("LANG"); plainValue.MatchString(v) {
		env[0] = "LANG=" + v
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC", "LC_TIME", "TZ"} {
		if v := getenv(name); plainValue.MatchString(v) {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// existing returns the paths that match a pattern and are of the wanted kind, links left out.
func existing(patterns []string, kind func(os.FileInfo) bool) []string {
	var found []string
	for _, p := range patterns {
		matches, _ := filepath.Glob(p) // the only error is a malformed pattern, and ours are constants
		for _, m := range matches {
			if fi, err := os.Lstat(m); err == nil && kind(fi) {
				found = append(found, m)
			}
		}
	}
	return found
}

// isDir reports whether a path leads to a folder.
func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// firstFile returns the first path that leads to a regular file, or "".
func firstFile(paths ...string) string {
	for _, p := range paths {
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// within reports whether path is dir or lies below it. Both are clean and absolute.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
