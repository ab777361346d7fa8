package sandbox

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// A Way is how tether's own process reaches the network for a model. It has the rules of the commands in the sandbox:
// those of the proxy, with its list of hosts where the network is NetProxy. The address is looked up once, judged and
// dialled as it was judged, so that a name which leads elsewhere the next time gains nothing. It is safe for concurrent
// use once it is set up.
type Way struct {
	// Resolve looks up a name, and Connect dials an address that was judged: "93.184.216.34:443". They are the machine's
	// own; a test has others.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Connect func(ctx context.Context, network, address string) (net.Conn, error)

	proxy *proxy
}

// Way returns the way out under the Box's policy, nil where its commands reach nothing.
func (b *Box) Way() *Way {
	if b.policy.Network != NetProxy && b.policy.Network != NetHost {
		return nil
	}
	x := newProxy(b.policy)
	x.every = b.policy.Network == NetHost
	return &Way{Resolve: x.resolve, Connect: x.dial, proxy: x}
}

// A WayError says why a Way led nowhere: the host is not on the list, has no address, has a private one or this
// machine's, or cannot be reached.
type WayError struct {
	Host    string // as asked for, at most 255 bytes; "" when it was no host name
	Why     string // a few words, which may name the host
	Allowed bool   // the rules allowed it; it failed all the same
}

// Error is the reason.
func (e *WayError) Error() string { return e.Why }

// Dial connects to a "host:port". Its error is a *WayError. Policy.Decide is told of each answer.
func (w *Way) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	x := *w.proxy
	x.resolve, x.dial = w.Resolve, w.Connect
	v := &visit{proxy: &x}
	t, err := splitTarget(address, "", false)
	t.tunnel = t.port == 443 // an entry of the list without a port means 443 for TLS and 80 for the rest
	var c net.Conn
	if err == nil {
		c, err = v.way(ctx, t)
	}
	var r *refusal
	if errors.As(err, &r) {
		v.decide(Decision{Host: t.host, Port: t.port, Allowed: r.allowed, Why: r.why})
		return nil, &WayError{t.host, r.why, r.allowed}
	}
	v.decide(Decision{Host: t.host, Port: t.port, Allowed: true, Why: "asked for by web"})
	return c, nil
}

// way is a connection to a target, or a *refusal.
func (v *visit) way(ctx context.Context, t target) (net.Conn, error) {
	addrs, r := v.route(ctx, t)
	if r != nil {
		return nil, r
	}
	c, r := v.connect(ctx, t, addrs)
	if r != nil {
		return nil, r
	}
	return c, nil
}
