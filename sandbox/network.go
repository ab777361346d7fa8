package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Network names what commands reach of the network.
type Network string

// The networks. The empty one is the profile's own: NetOff where a profile isolates, NetHost for full and off.
const (
	NetOff   Network = "off"   // nothing; the loopback works within one command
	NetProxy Network = "proxy" // the hosts of Policy.Allow, through a proxy of tether's that checks every connection
	NetHost  Network = "host"  // the machine's own, with the model servers and databases on it; abstract sockets too before Linux 6.12
)

// Decision is what the proxy of NetProxy answered to one request.
type Decision struct {
	Host    string // as asked for, at most 255 bytes; "" when it was no host name
	Port    int    // 0 when it was none
	Allowed bool
	Why     string // the rule that allowed it, or what was wrong, in a few words
}

// settleNetwork fills in the network of a profile and refuses what does not fit together.
func settleNetwork(p *Policy) error {
	own, may := NetOff, []Network{NetOff, NetProxy, NetHost}
	switch p.Profile {
	case Full:
		own, may = NetHost, []Network{NetOff, NetHost}
	case Off:
		own, may = NetHost, []Network{NetHost}
	case Landlock:
		may = []Network{NetOff}
	}
	if p.Network == "" {
		p.Network = own
	}
	if !slices.Contains([]Network{NetOff, NetProxy, NetHost}, p.Network) {
		return &RefusedError{p.Root, fmt.Sprintf("there is no network %q", p.Network), "use off, proxy or host"}
	}
	if !slices.Contains(may, p.Network) {
		return &RefusedError{p.Root, fmt.Sprintf("the profile %s cannot have the network %q", p.Profile, p.Network),
			"use workspace-write or read-only with it"}
	}
	for _, entry := range p.Allow {
		if _, err := parseRule(entry); err != nil {
			return &RefusedError{p.Root, fmt.Sprintf("the network may not allow %q: %s", entry, err), "correct it in [network] allow"}
		}
	}
	return nil
}

// rule is one entry of Policy.Allow:
//
//	pkg.go.dev          this host and no other
//	.golang.org         golang.org and every host below it
//	192.168.7.9         this address, although it is private; never loopback or link-local
//	pkg.go.dev:8443     any of them with a port: this port instead of 80 and 443
//
// A star means nothing here: what is meant is written with a dot.
type rule struct {
	text string
	host string // without the dot
	sub  bool   // and what lies below it
	port int    // 0: 80 for plain requests, 443 for tunnels
}

// parseRule reads an entry.
func parseRule(entry string) (rule, error) {
	r := rule{text: entry, host: entry}
	if !strings.HasPrefix(entry, "[") && strings.Count(entry, ":") > 1 { // an IPv6 address needs brackets for a port only
		entry = "[" + entry + "]"
		r.host = entry
	}
	if i := strings.LastIndexByte(entry, ':'); i > strings.LastIndexByte(entry, ']') {
		port, ok := parsePort(entry[i+1:])
		if !ok {
			return r, fmt.Errorf("%q is no port", entry[i+1:])
		}
		r.host, r.port = entry[:i], port
	}
	if strings.Contains(r.host, "*") {
		return r, fmt.Errorf("a star means nothing here; .example.org is example.org and every host below it")
	}
	if r.host, r.sub = strings.CutPrefix(r.host, "."); r.sub && (!strings.Contains(r.host, ".") || strings.HasPrefix(r.host, "[")) {
		return r, fmt.Errorf("it would allow a whole top-level domain or is no domain")
	}
	host, addr, err := parseHost(r.host)
	if err != nil {
		return r, err
	}
	if addr.IsValid() && (r.sub || !addr.IsGlobalUnicast()) {
		return r, fmt.Errorf("loopback, link-local and multicast addresses are never reached")
	}
	r.host = host
	return r, nil
}

// parsePort reads a port as it is written in a URL: digits alone, 1 to 65535.
func parsePort(s string) (int, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" || s[0] == '0' {
		return 0, false
	}
	port, err := strconv.ParseUint(s, 10, 16)
	return int(port), err == nil
}

// parseHost returns a host name in lower case. An IP address is returned as such too; only its one canonical form is
// taken, since others (017700000001, 0x7f.1, ::ffff:7f00:1) exist to slip past comparisons. IPv6 stands in brackets.
func parseHost(s string) (string, netip.Addr, error) {
	var none netip.Addr
	const longest = 253 // bytes of a name (RFC 1035, without the final dot)
	if s == "" || len(s) > longest {
		return "", none, fmt.Errorf("a host name has 1 to %d bytes", longest)
	}
	if s[0] == '[' {
		addr, err := netip.ParseAddr(strings.TrimSuffix(s[1:], "]"))
		if err != nil || !addr.Is6() || addr.Is4In6() || addr.Zone() != "" || "["+addr.String()+"]" != s {
			return "", none, fmt.Errorf("it is no IPv6 address in its short form")
		}
		return s, addr, nil
	}
	s = strings.Map(lowerASCII, s)
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if err := checkLabel(l); err != nil {
			return "", none, err
		}
	}
	if !numeric(labels[len(labels)-1]) {
		return s, none, nil
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.String() != s {
		return "", none, fmt.Errorf("it ends in a number and is no IPv4 address in its usual form")
	}
	return s, addr, nil
}

// lowerASCII leaves everything but A-Z alone: the letter K has a relative outside ASCII that becomes a k.
func lowerASCII(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// checkLabel holds one part of a name to letters, digits and inner hyphens.
func checkLabel(l string) error {
	const longest = 63 // bytes (RFC 1035)
	switch {
	case l == "":
		return fmt.Errorf("a part of the name is empty")
	case len(l) > longest:
		return fmt.Errorf("a part of the name has more than %d bytes", longest)
	case strings.ContainsFunc(l, notLDH):
		return fmt.Errorf("a host name has letters, digits, hyphens and dots only")
	case l[0] == '-' || l[len(l)-1] == '-':
		return fmt.Errorf("a part of the name begins or ends with a hyphen")
	}
	return nil
}

func notLDH(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
}

// numeric reports whether a last label makes programs read the whole name as an IPv4 address.
func numeric(l string) bool {
	if hex, ok := strings.CutPrefix(l, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(l, "0123456789") == ""
}

// matches reports whether the rule allows a host in the form of parseHost at a port; usual is the port that a rule
// without one means.
func (r rule) matches(host string, port, usual int) bool {
	if r.port == 0 && port != usual || r.port != 0 && port != r.port {
		return false
	}
	return host == r.host || r.sub && strings.HasSuffix(host, "."+r.host)
}

// closed are the addresses to which no name may lead: a name of the outside world that has one is a mistake or an
// attack on a service of this machine or its network (IANA special-purpose registries, RFC 6890 and later).
var closed = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"168.63.129.16/32", // public by its number, but the metadata service of a cloud
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

// global is what of IPv6 is given out to the world. Loopback, link-local, unique local, multicast, IPv4-mapped and the
// translated forms of IPv4 (64:ff9b::/96) lie outside.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// public reports whether an address may be dialled for a name. An IPv4-mapped one may not: nobody publishes them.
func public(a netip.Addr) bool {
	if a.Zone() != "" || a.Is6() && !global.Contains(a) {
		return false
	}
	return a.IsValid() && !slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ownAddress reports whether an address is one of this machine's interfaces. A server has a public one, and on it
// everything that listens on all addresses.
func ownAddress(a netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true // then nothing is known about it
	}
	return slices.ContainsFunc(addrs, func(own net.Addr) bool {
		p, err := netip.ParsePrefix(own.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// network adds what the network of a policy needs inside: the shim, or the machine's own way to a name server.
func (v *vector) network(p Policy, h host) {
	v.shim(p, h)
	if p.Network == NetHost && h.Resolv != "" {
		v.add("--ro-bind-try", h.Resolv, h.Resolv)
	}
}

// resolver returns where /etc/resolv.conf leads when that is hidden inside, as systemd-resolved has it.
func resolver() string {
	path, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil || system(path) {
		return ""
	}
	return path
}

// proxyEnv tells programs about the proxy. Some know the names in one case only.
func proxyEnv(p Policy) []string {
	if p.Network != NetProxy {
		return nil
	}
	const way = "http://" + proxyAddress
	const not = "localhost,127.0.0.1,::1" // servers and clients within one command
	return []string{"HTTP_PROXY=" + way, "HTTPS_PROXY=" + way, "http_proxy=" + way, "https_proxy=" + way, "NO_PROXY=" + not, "no_proxy=" + not}
}
