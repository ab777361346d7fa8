package sandbox

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// way is what tether's own process has under a policy, with the names and the server of w.
func (w *world) way(every bool) *Way {
	x := *w.proxy
	x.every = every
	return &Way{Resolve: x.resolve, Connect: x.dial, proxy: &x}
}

// Where commands have the machine's network, web has the world and nothing of this machine or its network.
func TestWayOfHost(t *testing.T) {
	refused := []string{
		"private.example:80", "local.example:443", "mapped.example:80", "meta.example:80", "here.example:8080", "cgnat.example:80",
		"127.0.0.1:80", "10.0.0.1:80", "169.254.169.254:80", "168.63.129.16:80", "100.64.0.1:443", "0.0.0.0:80", "224.0.0.1:80",
		"255.255.255.255:80", "[::1]:80", "[::]:80", "[fe80::1]:80", "[fd00::1]:80", "[ff02::1]:80", "[64:ff9b::7f00:1]:80", "8.8.8.8:80",
		// spellings of 127.0.0.1, and of no host
		"2130706433:80", "0x7f000001:80", "017700000001:80", "127.1:80", "0x7f.1:80", "[::ffff:127.0.0.1]:80", "[::ffff:7f00:1]:80",
		"127.0.0.1.:80", "a b:80", "docs.example:0", "docs.example:99999", "docs.example", "",
	}
	w := newWorld(t)
	w.names["cgnat.example"] = "100.100.100.200"
	for _, address := range refused {
		c, err := w.way(true).Dial(context.Background(), "tcp", address)
		var way *WayError
		if c != nil || !errors.As(err, &way) || way.Allowed || way.Why == "" {
			t.Errorf("%s: %v", address, err)
		}
	}
	if len(w.dialled) != 0 || len(w.decisions) != len(refused) {
		t.Errorf("%q were dialled, %d decisions of %d", w.dialled, len(w.decisions), len(refused))
	}
}

// What was judged is what is dialled: of a name with two addresses only the public one, and no name is looked up twice.
func TestWayDialsWhatWasJudged(t *testing.T) {
	w := newWorld(t)
	_, err := w.way(true).Dial(context.Background(), "tcp", "mixed.example:8443")
	var way *WayError
	if !errors.As(err, &way) || !way.Allowed { // nothing listens there in this test
		t.Errorf("%v", err)
	}
	if !slices.Equal(w.dialled, []string{"1.1.1.1:8443"}) || len(w.resolved) != 1 {
		t.Errorf("dialled %q, looked up %q", w.dialled, w.resolved)
	}
}

// The next answer of a name server is judged, too.
func TestWayRebound(t *testing.T) {
	w, answers := newWorld(t), []string{"93.184.216.34", "127.0.0.1"}
	way := w.way(true)
	way.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		a := answers[0]
		answers = answers[1:]
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	_, first := way.Dial(context.Background(), "tcp", "docs.example:80")
	_, second := way.Dial(context.Background(), "tcp", "docs.example:80")
	if first == nil || !strings.Contains(first.Error(), "cannot be reached") || second == nil || !strings.Contains(second.Error(), "private") {
		t.Errorf("%v, %v", first, second)
	}
	if !slices.Equal(w.dialled, []string{"93.184.216.34:80"}) {
		t.Errorf("dialled %q", w.dialled)
	}
}

// With the proxy, web has its list and its ports.
func TestWayOfProxy(t *testing.T) {
	w := newWorld(t, "docs.example", ".deep.example:8443", "private.example", "192.168.7.9")
	for address, allowed := range map[string]bool{
		"docs.example:80": true, "docs.example:443": true, "DOCS.example:443": true, "docs.example:8080": false, "other.example:80": false,
		"a.deep.example:8443": true, "a.deep.example:443": false, "private.example:80": false, "192.168.7.9:80": true, "1.1.1.1:80": false,
	} {
		_, err := w.way(false).Dial(context.Background(), "tcp", address)
		var way *WayError
		if !errors.As(err, &way) || way.Allowed != allowed {
			t.Errorf("%s: %v, want allowed %v", address, err, allowed)
		}
	}
}

// TestWayOfBox: no network, no way.
func TestWayOfBox(t *testing.T) {
	for network, want := range map[Network]bool{NetOff: false, NetProxy: true, NetHost: true} {
		b := &Box{policy: Policy{Network: network}}
		if way := b.Way(); (way != nil) != want || want && way.proxy.every != (network == NetHost) {
			t.Errorf("%s: %v", network, way)
		}
	}
}
