package sandbox

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestNetworkOfAProfile(t *testing.T) {
	for _, tt := range []struct {
		profile Profile
		asked   Network
		want    Network // "" is a refusal
	}{
		{WorkspaceWrite, "", NetOff}, {ReadOnly, "", NetOff}, {Landlock, "", NetOff}, {Full, "", NetHost}, {Off, "", NetHost},
		{WorkspaceWrite, NetProxy, NetProxy}, {ReadOnly, NetProxy, NetProxy}, {WorkspaceWrite, NetHost, NetHost}, {Full, NetOff, NetOff},
		{Full, NetProxy, ""}, {Off, NetProxy, ""}, {Off, NetOff, ""}, {Landlock, NetProxy, ""}, {Landlock, NetHost, ""},
		{WorkspaceWrite, "none", ""}, {Full, "HOST", ""},
	} {
		p := Policy{Profile: tt.profile, Network: tt.asked}
		err := settleNetwork(&p)
		var refused *RefusedError
		if tt.want == "" && !errors.As(err, &refused) || tt.want != "" && (err != nil || p.Network != tt.want) {
			t.Errorf("%s with %q: %q, %v; want %q", tt.profile, tt.asked, p.Network, err, tt.want)
		}
	}
}

func TestAllowRefused(t *testing.T) {
	for _, entry := range []string{"", ".", "*", "*.golang.org", ".org", "..golang.org", "golang.org.", "https://golang.org", "golang.org/x", "a b",
		"user@golang.org", "golang.org:0", "golang.org:65536", "golang.org:+80", "golang.org:", ":80", "gol\x00ang.org", "gölang.org", "a_b.org",
		"-a.org", "a-.org", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"::1", "[::1]:80", "fe80::1", "[fe80::1%25lo]", "::ffff:10.0.0.1", ".10.0.0.1", ".[2606:4700::1]", "[golang.org]", "[2606:4700::1",
		strings.Repeat("a", 64) + ".org", strings.Repeat("a.", 127) + "org"} {
		p := Policy{Profile: WorkspaceWrite, Allow: []string{"pkg.go.dev", entry}}
		var refused *RefusedError
		if err := settleNetwork(&p); !errors.As(err, &refused) || !strings.Contains(err.Error(), "may not allow") {
			t.Errorf("%q: %v, want a refusal that names it", entry, err)
		}
	}
}

func TestRules(t *testing.T) {
	for _, tt := range []struct{ entry, yes, no string }{
		{"pkg.go.dev", "pkg.go.dev:443", "x.pkg.go.dev:443 go.dev:443 apkg.go.dev:443 pkg.go.dev.evil.com:443 pkg.go.dev:8443 pkg.go.dev:80"},
		{"PKG.Go.dev", "pkg.go.dev:443", ""},
		{".golang.org", "golang.org:443 pkg.golang.org:443 a.b.golang.org:443", "evilgolang.org:443 golang.org.evil.com:443 org:443"},
		{"a.example:8443", "a.example:8443", "a.example:443 b.example:8443"},
		{".example.org:22", "example.org:22 x.example.org:22", "x.example.org:443"},
		{"10.1.2.3", "10.1.2.3:443", "10.1.2.30:443 x.10.1.2.3:443"},
		{"10.1.2.3:8080", "10.1.2.3:8080", "10.1.2.3:443"},
		{"2606:4700::1", "[2606:4700::1]:443", "[2606:4700::11]:443"},
		{"[fd00::1]:8080", "[fd00::1]:8080", "[fd00::1]:443"},
	} {
		r, err := parseRule(tt.entry)
		if err != nil {
			t.Errorf("%q: %v", tt.entry, err)
			continue
		}
		for want, list := range map[bool]string{true: tt.yes, false: tt.no} {
			for _, s := range strings.Fields(list) {
				target, err := splitTarget(s, "", true)
				if got := err == nil && r.matches(target.host, target.port, 443); got != want {
					t.Errorf("%q and %s: %v (%v), want %v", tt.entry, s, got, err, want)
				}
			}
		}
	}
}

func TestPublic(t *testing.T) {
	for want, list := range map[bool]string{
		true: "1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 172.32.0.1 192.0.1.1 198.17.255.255 223.255.255.255 2606:4700::1 2a00:1450:4001::1 2400:cb00::",
		false: `0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1
			192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.7 203.0.113.7 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 168.63.129.16
			:: ::1 ::ffff:1.1.1.1 ::ffff:127.0.0.1 ::1.1.1.1 64:ff9b::1.1.1.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::
			3fff::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%lo fec0::1 ff02::1 4000::1`,
	} {
		for _, s := range strings.Fields(list) {
			if got := public(netip.MustParseAddr(s)); got != want {
				t.Errorf("%s: %v, want %v", s, got, want)
			}
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address at all is public")
	}
}

func TestOwnAddress(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": true, "93.184.216.34": false, "127.0.0.2": false} {
		if got := ownAddress(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}

// What is taken as a host is in one form only, so that two spellings cannot be told apart by one side alone; and it
// matches a rule exactly when it is the rule's host or ends in a dot and the rule's host.
func FuzzProxyHost(f *testing.F) {
	for _, s := range []string{"pkg.go.dev", "PKG.go.dev", "127.0.0.1\x00.go.dev", "evil\x00.go.dev", "go.dev.", "user@go.dev", "0x7f.1", "[::1]", "[fe80::1%lo]",
		"2130706433", "xn--a.go.dev", "\u212ao.dev", "a..go.dev", "-.go.dev", "go.dev:443", "[::ffff:1.2.3.4]", "1.2.3.4", "%2e.go.dev"} {
		f.Add(s, ".go.dev")
	}
	f.Fuzz(func(t *testing.T, s, entry string) {
		host, addr, err := parseHost(s)
		if err != nil {
			return
		}
		again, _, err := parseHost(host)
		if err != nil || again != host {
			t.Fatalf("%q became %q and then %q, %v", s, host, again, err)
		}
		if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.[:]") != "" || strings.HasSuffix(host, ".") || len(host) > 253 {
			t.Fatalf("%q was taken as %q", s, host)
		}
		if len(host) != len(s) || !strings.EqualFold(host, s) {
			t.Fatalf("%q was changed to %q", s, host)
		}
		if bare, err := netip.ParseAddr(strings.Trim(host, "[]")); (err == nil) != addr.IsValid() || err == nil && bare != addr {
			t.Fatalf("%q is an address for one reader only", host)
		}
		r, err := parseRule(entry)
		if err != nil {
			return
		}
		name := strings.ToLower(entry)
		if r.port == 0 && addr.IsValid() == false {
			want := host == strings.TrimPrefix(name, ".") || strings.HasPrefix(name, ".") && strings.HasSuffix(host, name)
			if got := r.matches(host, 443, 443); got != want {
				t.Fatalf("rule %q and %q: %v, want %v", entry, host, got, want)
			}
		}
	})
}
