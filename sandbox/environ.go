package sandbox

import (
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
		env = append(env, nestedMark+"=1", "TMPDIR=/tmp", "XDG_CACHE_HOME="+filepath.Join(h.Home, ".cache"))
		env = append(env, offline(h)...)
	} else {
		env = append(env, "TMPDIR="+h.Temp)
	}
	if shell && h.Bash != "" {
		env = append(env, "BASH_ENV=/proc/self/fd/"+strconv.Itoa(fdShell))
	}
	return env
}

// confined reports whether commands see a private home and no network.
func confined(p Policy) bool { return p.Profile == WorkspaceWrite || p.Profile == ReadOnly }

// offline tells package managers not to wait for a network that is not there.
func offline(h host) []string {
	env := []string{"GOPROXY=off", "GOSUMDB=off", "CARGO_NET_OFFLINE=true", "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"npm_config_offline=true", "npm_config_update_notifier=false"}
	if slices.Contains(h.Tools, "go/pkg/mod") {
		env = append(env, "GOMODCACHE="+filepath.Join(h.Home, "go/pkg/mod"))
	}
	return env
}

// searchPath returns the user's own PATH as far as it can be seen inside, then the usual places. A folder of the
// workspace is never on it: a planted "git" would be run by the gates.
func searchPath(p Policy, h host) []string {
	want := slices.Clone(h.Path)
	for _, d := range []string{".local/bin", "go/bin", ".cargo/bin", ".pyenv/shims", ".pyenv/bin", ".bun/bin"} {
		if slices.ContainsFunc(h.Tools, func(t string) bool { return within("/"+d, "/"+t) }) {
			want = append(want, filepath.Join(h.Home, d))
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
	for _, d := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc", "/opt", "/nix/store"} {
		if within(path, d) {
			return true
		}
	}
	return slices.ContainsFunc(h.Tools, func(t string) bool { return within(path, filepath.Join(h.Home, t)) })
}
