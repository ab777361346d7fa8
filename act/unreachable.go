package act

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tether/sandbox"
)

// resolver matches what programs print when a name or an address is not reached:
// of glibc, musl, curl, Go, Node, Python, git and the package managers.
var resolver = regexp.MustCompile(`(?i)could ?n.t resolve host|could not resolve|temporary failure in name resolution|` +
	`name or service not known|name does not resolve|no address associated with hostname|no such host|getaddrinfo|` +
	`enotfound|eai_again|network is unreachable|enetunreach|nodename nor servname|failed to lookup address|` +
	`dns error|bad address|module lookup disabled by goproxy=off`)

// unfetched matches what package managers print when they are told that there is
// no network and what was fetched before is not enough.
var unfetched = regexp.MustCompile(`(?i)cache/download/\S+\.lock: read-only file system|enotcached|you're using offline mode|\(from versions: none\)`)

// proxied matches what programs print when the proxy refuses a tunnel.
var proxied = regexp.MustCompile(`(?i)is not on the list of allowed hosts|connect tunnel failed, response 403|tunnel connection failed: 403|proxyconnect|403 forbidden|received http code 403 from proxy`)

// locked matches what git prints, of any of its commands that write, where .git is
// read-only.
var locked = regexp.MustCompile(`\.git/[^\n]*Read-only file system`)

// unreachable says in a line why a failed program reached nothing, or could not write
// the repository, if that is what its output is about: a model that is not told tries
// one mirror after the other, and to remove the lock.
func unreachable(p sandbox.Policy, o sandbox.Outcome) string {
	switch {
	case o.Status == OK:
		return ""
	case locked.MatchString(o.Output):
		return "The repository is read-only here: leave commits to the user."
	case p.Network == sandbox.NetHost:
		return ""
	}
	lost := resolver.MatchString(o.Output)
	switch {
	case p.Network == sandbox.NetProxy && (lost || proxied.MatchString(o.Output)):
		return onlyHosts(p.Allow)
	case p.Network != sandbox.NetProxy && (lost || unfetched.MatchString(o.Output)):
		return "There is no network here: use what is installed."
	}
	return ""
}

// onlyHosts names the hosts that may be reached.
func onlyHosts(allow []string) string {
	const most = 4 // hosts: the line is paid for on every turn
	if len(allow) == 0 {
		return "No host may be reached from here."
	}
	hosts := slices.Clone(allow[:min(len(allow), most)])
	if len(allow) > most {
		hosts = append(hosts, "…")
	}
	return fmt.Sprintf("Only these hosts may be reached: %s", strings.Join(hosts, ", "))
}
