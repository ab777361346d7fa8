package sandbox

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// environ returns the whole environment of a command, as "NAME=value". Nothing is inherited: a token, an agent's socket
// or LD_PRELOAD in tether's own environment never gets in.
func environ(p Policy, h host, shell bool) []string {
	env := []string{
		"PATH=" + strings.Join(searchPath(p, h), ":"),
		"HOME=" + h.Home, "USER=" + h.User, "LOGNAME=" + h.User, "SHELL=/bin/sh",
	}
	env = append(env, h.Env...)
	env = append(env, "TERM=dumb", "COLUMNS=100", "CI=1", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_NOSYSTEM=1", "DEBIAN_FRONTEND=noninteractive", "PYTHONDONTWRITEBYTECODE=1", "GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local")
	if confined(p) {
		env = append(env, h.Told...)
		env = append(env, nestedMark+"=1", "TMPDIR="+tempInside(p, h), "XDG_CACHE_HOME="+filepath.Join(h.Home, ".cache"))
		env = append(env, packages(h, p.Network != NetOff)...)
		env = append(env, proxyEnv(p)...)
	} else {
		env = append(env, h.Moved...)
		env = append(env, "TMPDIR="+h.Temp)
	}
	if shell && h.Bash != "" {
		env = append(env, "BASH_ENV="+ownFiles+strconv.Itoa(fdShell))
	}
	return env
}

// confined reports whether commands see a private home and an allow-list of the machine.
func confined(p Policy) bool {
	return p.Profile == WorkspaceWrite || p.Profile == ReadOnly || p.Profile == Landlock
}

// packages makes builds work from what was downloaded before, and fail at once where that is not enough: without a
// network every further try would wait for a name server. What works was found by trying, with Go 1.26, cargo 1.95,
// npm 11 and pip 23:
//
//   - go reads a read-only module cache and takes it as a proxy too ("go get", "go mod tidy"). What it lacks is refused
//     by "off". The checksum database cannot be asked, so a new line of go.sum is only as good as that cache.
//   - cargo writes locks into CARGO_HOME, which is in the private home; the registry below it may be read-only.
//   - npm has its private cache alone: one that it may not write to is of no use to it.
//   - pip has nothing that works without an index; it says so in half a second.
func packages(h host, online bool) []string {
	cache := filepath.Join(h.Home, ".cache") // what is downloaded there stays, for the next command
	env := []string{"PIP_DISABLE_PIP_VERSION_CHECK=1", "npm_config_update_notifier=false", "npm_config_cache=" + filepath.Join(cache, "npm")}
	if online {
		return append(env, "GOPROXY="+goProxy(h, "https://proxy.golang.org,direct"),
			"GOMODCACHE="+filepath.Join(cache, "go-mod"), "CARGO_HOME="+filepath.Join(cache, "cargo"))
	}
	return append(env, "GOPROXY="+goProxy(h, "off"), "GOSUMDB=off", "CARGO_NET_OFFLINE=true", "PIP_NO_INDEX=1", "npm_config_offline=true")
}

// goProxy puts the module cache of the host before the rest.
func goProxy(h host, rest string) string {
	mod := filepath.Join(h.Home, modCache)
	if !shown(h, mod) || strings.ContainsAny(mod, ",|") {
		return rest
	}
	return (&url.URL{Scheme: "file", Path: filepath.Join(mod, "cache/download")}).String() + "," + rest
}

// searchPath returns the user's own PATH as far as it can be seen inside, then the usual places. A folder of the
// workspace is never on it: a planted "git" would be run by the gates.
func searchPath(p Policy, h host) []string {
	want := slices.Clone(h.Path)
	for _, d := range []string{".local/bin", "go/bin", ".cargo/bin", ".pyenv/shims", ".pyenv/bin", ".bun/bin", ".volta/bin", ".asdf/shims"} {
		if path := filepath.Join(h.Home, d); shown(h, path) {
			want = append(want, path)
		}
	}
	want = append(want, "/usr/local/go/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	var path []string
	for _, d := range want {
		if visible(p, h, d) && !strings.Contains(d, ":") && !slices.Contains(path, d) {
			path = append(path, d)
		}
	}
	return path
}

// visible reports whether a folder of the host is shown inside, outside the workspace.
func visible(p Policy, h host, path string) bool {
	if within(path, p.Root) {
		return false
	}
	if !confined(p) {
		return true
	}
	return system(path) || shown(h, path)
}

// system reports whether a folder belongs to those of the machine that are shown.
func system(path string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc", "/opt", "/nix/store"},
		func(d string) bool { return within(path, d) })
}

// shown reports whether a place holds one of the user's tools, or lies below one.
func shown(h host, path string) bool {
	return slices.ContainsFunc(h.Tools, func(t tool) bool { return within(path, t.At) })
}
