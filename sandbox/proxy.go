package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what one command does through the proxy.
const (
	proxyHead     = 16 << 10         // bytes of a request's head; browsers send 2 KiB
	proxyWait     = 10 * time.Second // for a head, a name, a connection, the first bytes of TLS
	proxyIdle     = 60 * time.Second // without a byte in either direction
	proxyConns    = 64               // open at a time; package managers open at most 50
	proxyRequests = 2000             // in all; also bounds what the log gets: one decision each
	proxyBytes    = 1 << 30          // in both directions, in all: as large as the largest file (see limits)
)

// proxyAddress is where the proxy listens inside.
const proxyAddress = "127.0.0.1:3128"

// proxy is the only way out of a sandbox with the network NetProxy. It runs in this process, outside; the shim made its
// listener inside and handed it over. So a command never holds a socket that leads anywhere else.
type proxy struct {
	rules   []rule
	every   bool // all hosts are allowed, and no address that is not public: see Way
	decide  func(Decision)
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	own     func(netip.Addr) bool // whether an address is one of this machine's

	wait, idle      time.Duration
	requests, bytes int64
}

// newProxy makes the proxy of a policy whose entries were checked.
func newProxy(p Policy) *proxy {
	x := &proxy{decide: p.Decide, resolve: lookUp, dial: (&net.Dialer{Timeout: proxyWait}).DialContext, own: ownAddress,
		wait: proxyWait, idle: proxyIdle, requests: proxyRequests, bytes: proxyBytes}
	if x.decide == nil {
		x.decide = func(Decision) {}
	}
	for _, entry := range p.Allow {
		if r, err := parseRule(entry); err == nil {
			x.rules = append(x.rules, r)
		}
	}
	return x
}

// lookUp resolves a name once, without the search domains of the machine when it has a dot.
func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// visit is the traffic of one command.
type visit struct {
	*proxy
	asked atomic.Int64 // requests so far
	left  atomic.Int64 // bytes that may still pass
}

// serve answers the connections of one command until ctx ends. Then none is left open.
func (x *proxy) serve(ctx context.Context, l net.Listener) {
	v := &visit{proxy: x}
	v.left.Store(x.bytes)
	var open sync.WaitGroup
	defer open.Wait()
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	slots := make(chan struct{}, proxyConns)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			c.Close()
			return
		}
		open.Go(func() {
			defer func() { <-slots }()
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			v.handle(ctx, c)
		})
	}
}

// target is where a request wants to go.
type target struct {
	host   string     // as parseHost has it
	addr   netip.Addr // valid if the host is an address
	port   int
	tunnel bool // CONNECT
}

// refusal is an answer of the proxy other than what was asked for.
type refusal struct {
	status  int
	why     string
	allowed bool // the rules allowed it; it failed all the same
}

// Error is the reason.
func (r *refusal) Error() string { return r.why }

func deny(format string, args ...any) *refusal {
	return &refusal{status: http.StatusForbidden, why: fmt.Sprintf(format, args...)}
}

// handle serves the one request of a connection. There is no second one: what follows a request could be taken for
// another by one side alone.
func (v *visit) handle(ctx context.Context, c net.Conn) {
	if n := v.asked.Add(1); n > v.requests {
		if n == v.requests+1 {
			v.decide(Decision{Why: "the command made too many requests"})
		}
		return
	}
	_ = c.SetDeadline(time.Now().Add(v.wait))
	head := &io.LimitedReader{R: c, N: proxyHead}
	in := bufio.NewReader(head)
	req, err := http.ReadRequest(in)
	var t target
	if err == nil {
		t, err = targetOf(req)
	} else {
		err = &refusal{status: http.StatusBadRequest, why: "malformed request"}
	}
	if err == nil {
		head.N = math.MaxInt64 // what follows is counted on the other side
		if t.tunnel {
			err = v.tunnel(ctx, t, c, in)
		} else {
			err = v.forward(ctx, t, c, req)
		}
	}
	var r *refusal
	if errors.As(err, &r) {
		v.decide(Decision{Host: t.host, Port: t.port, Allowed: r.allowed, Why: r.why})
		v.answer(c, r)
	}
}

// targetOf reads where a request wants to go: the authority of CONNECT, or the absolute URL of any other method. The
// Host line is not looked at; the request that leaves gets one that is the target.
func targetOf(req *http.Request) (target, error) {
	if req.Method == http.MethodConnect {
		return splitTarget(req.RequestURI, "", true)
	}
	if req.URL.Scheme != "http" || req.URL.User != nil || req.URL.Opaque != "" {
		return target{}, deny("only http:// URLs without a user name, and CONNECT, are served")
	}
	return splitTarget(req.URL.Host, "80", false)
}

// splitTarget reads host:port.
func splitTarget(s, usual string, tunnel bool) (target, error) {
	t := target{tunnel: tunnel}
	host, port := s, usual
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		host, port = s[:i], s[i+1:]
	}
	var ok bool
	if t.port, ok = parsePort(port); !ok {
		return target{tunnel: tunnel}, deny("the port is missing or wrong")
	}
	var err error
	if t.host, t.addr, err = parseHost(host); err != nil {
		return t, deny("%v", err)
	}
	return t, nil
}

// route decides by the rules, resolves the name and returns the addresses that may be dialled.
func (v *visit) route(ctx context.Context, t target) ([]netip.Addr, *refusal) {
	usual := 80
	if t.tunnel {
		usual = 443
	}
	allowed := v.every
	for _, r := range v.rules {
		allowed = allowed || r.matches(t.host, t.port, usual)
	}
	switch {
	case !allowed:
		return nil, deny("%s port %d is not on the list of allowed hosts", t.host, t.port)
	case t.addr.IsValid() && !v.every:
		return []netip.Addr{t.addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, v.wait)
	defer cancel()
	found, err := []netip.Addr{t.addr}, error(nil)
	if !t.addr.IsValid() {
		found, err = v.resolve(ctx, t.host)
	}
	if err != nil || len(found) == 0 {
		return nil, &refusal{http.StatusBadGateway, t.host + " has no address", true}
	}
	var addrs []netip.Addr
	for _, a := range found {
		if public(a) && !v.own(a) {
			addrs = append(addrs, a)
		}
	}
	if addrs == nil {
		return nil, deny("%s has the address %s, which is a private one or this machine's", t.host, found[0])
	}
	return addrs, nil
}

// connect dials the checked addresses in turn.
func (v *visit) connect(ctx context.Context, t target, addrs []netip.Addr) (net.Conn, *refusal) {
	for _, a := range addrs {
		c, err := v.dial(ctx, "tcp", netip.AddrPortFrom(a, uint16(t.port)).String())
		if err == nil {
			return c, nil
		}
	}
	return nil, &refusal{http.StatusBadGateway, t.host + " cannot be reached", true}
}

// forward passes on one plain request and its answer.
func (v *visit) forward(ctx context.Context, t target, c net.Conn, req *http.Request) error {
	addrs, r := v.route(ctx, t)
	if r != nil {
		return r
	}
	v.decide(Decision{Host: t.host, Port: t.port, Allowed: true, Why: "listed"})
	var refused *refusal
	way := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: v.idle, MaxResponseHeaderBytes: 4 * proxyHead,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var up net.Conn
			if up, refused = v.connect(ctx, t, addrs); refused != nil {
				return nil, refused
			}
			return v.meter(up, c), nil
		}}
	resp, err := way.RoundTrip(onward(ctx, t, req))
	if err != nil {
		if refused == nil {
			refused = &refusal{status: http.StatusBadGateway, why: t.host + " gave no answer"}
		}
		v.answer(c, refused) // the decision was told
		return nil
	}
	defer resp.Body.Close()
	dropHops(resp.Header)
	resp.Close = true
	out := bufio.NewWriter(c)
	if resp.Write(out) == nil {
		_ = out.Flush() // a client that went away needs no answer
	}
	return nil
}

// onward is the request as it leaves: for the target alone, whatever its Host line said.
func onward(ctx context.Context, t target, req *http.Request) *http.Request {
	out := req.Clone(ctx)
	host := t.host
	if t.port != 80 {
		host = fmt.Sprintf("%s:%d", t.host, t.port)
	}
	out.URL = &url.URL{Scheme: "http", Host: host, Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery, ForceQuery: req.URL.ForceQuery}
	out.Host, out.RequestURI, out.Close = host, "", true
	dropHops(out.Header)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // else one is made up
	}
	return out
}

// hops are the headers that concern one connection and not the request (RFC 9110, section 7.6.1, and the older ones).
var hops = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// dropHops removes them, and those that the Connection header names.
func dropHops(h http.Header) {
	for _, line := range h["Connection"] {
		for _, name := range strings.Split(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hops {
		h.Del(name)
	}
}

// answer tells the client why it gets nothing. The reason stands in the status line too: many clients show only that.
func (v *visit) answer(c net.Conn, r *refusal) {
	_ = c.SetDeadline(time.Now().Add(v.wait))
	text := "tether: " + r.why
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n", r.status, text, len(text)+1, text)
}
