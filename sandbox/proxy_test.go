package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is a proxy with a listener of its own, and what it would reach: every name leads to an address of the outside
// world, and every address to one server of the test.
type world struct {
	*proxy
	address string // of the proxy
	names   map[string]string
	server  string // where dialled connections end; "" refuses them

	mu        sync.Mutex
	decisions []Decision
	resolved  []string
	dialled   []string
}

// newWorld makes a proxy that allows the hosts. It begins with the first request; until then its fields may be changed.
func newWorld(t testing.TB, allow ...string) *world {
	t.Helper()
	w := &world{names: map[string]string{"private.example": "10.0.0.1", "local.example": "127.0.0.1", "mapped.example": "::ffff:1.1.1.1",
		"meta.example": "169.254.169.254", "mixed.example": "127.0.0.1 1.1.1.1", "gone.example": "", "here.example": "8.8.8.8"}}
	p := Policy{Profile: WorkspaceWrite, Network: NetProxy, Allow: allow, Decide: func(d Decision) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.decisions = append(w.decisions, d)
	}}
	if err := settleNetwork(&p); err != nil {
		t.Fatal(err)
	}
	w.proxy = newProxy(p)
	w.proxy.resolve, w.proxy.dial = w.lookUp, w.connect
	w.proxy.own = func(a netip.Addr) bool { return a.String() == "8.8.8.8" }
	return w
}

// begin starts the proxy, once.
func (w *world) begin(t testing.TB) {
	if w.address != "" {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-done })
}

func (w *world) lookUp(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resolved = append(w.resolved, host)
	text, ok := w.names[host]
	if !ok {
		text = "93.184.216.34"
	}
	var addrs []netip.Addr
	for _, a := range strings.Fields(text) {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

func (w *world) connect(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	server := w.server
	w.mu.Unlock()
	if server == "" {
		return nil, net.ErrClosed
	}
	return (&net.Dialer{}).DialContext(ctx, network, server)
}

// told returns the decisions so far.
func (w *world) told() []Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.decisions)
}

// last returns the newest decision.
func (w *world) last() Decision {
	all := w.told()
	if len(all) == 0 {
		return Decision{}
	}
	return all[len(all)-1]
}

// reached returns what was resolved and what was dialled.
func (w *world) reached() (resolved, dialled []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.resolved), slices.Clone(w.dialled)
}

// ask sends bytes and returns everything that comes back until the proxy closes.
func (w *world) ask(t testing.TB, request string) string {
	t.Helper()
	c := w.open(t)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c) // a reset is an end too
	return string(answer)
}

// open connects to the proxy.
func (w *world) open(t testing.TB) net.Conn {
	t.Helper()
	w.begin(t)
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// Nothing of what is refused is resolved, except what only its addresses give away; and nothing is dialled.
func TestProxyRefuses(t *testing.T) {
	for _, tt := range []struct{ name, allow, request, status, resolved string }{
		{"empty list", "", "GET http://127.0.0.1:18996/ HTTP/1.1\r\nHost: 127.0.0.1:18996\r\n\r\n", "403", ""},
		{"empty list, tunnel", "", "CONNECT good.example:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"NUL in the host", "allowed.invalid", "CONNECT 127.0.0.1\x00.allowed.invalid:18996 HTTP/1.1\r\n\r\n", "400", ""},
		{"NUL at the end", "allowed.invalid:80", "CONNECT allowed.invalid\x00:80 HTTP/1.1\r\n\r\n", "400", ""},
		{"escaped NUL", "allowed.invalid", "GET http://127.0.0.1%00.allowed.invalid/ HTTP/1.1\r\nHost: x\r\n\r\n", "400", ""},
		{"user name", "good.example", "GET http://good.example@evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "403", ""},
		{"user name, tunnel", "good.example", "CONNECT good.example@evil.example:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"user name of an allowed host", "good.example", "GET http://a:b@good.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "403", ""},
		{"trailing dot", "good.example", "CONNECT good.example.:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"suffix without a dot", ".good.example", "CONNECT evilgood.example:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"prefix", "good.example", "CONNECT good.example.evil.example:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"subdomain of an exact rule", "good.example", "CONNECT x.good.example:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"other port", "good.example", "CONNECT good.example:22 HTTP/1.1\r\n\r\n", "403", ""},
		{"tunnel to 80", "good.example", "CONNECT good.example:80 HTTP/1.1\r\n\r\n", "403", ""},
		{"plain to 443", "good.example", "GET http://good.example:443/ HTTP/1.1\r\nHost: x\r\n\r\n", "403", ""},
		{"no port", "good.example", "CONNECT good.example HTTP/1.1\r\n\r\n", "403", ""},
		{"octal port", "good.example", "CONNECT good.example:0443 HTTP/1.1\r\n\r\n", "403", ""},
		{"address", "good.example", "CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"decimal address", "good.example", "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"hex address", "good.example", "GET http://0x7f.0.0.1/ HTTP/1.1\r\nHost: good.example\r\n\r\n", "403", ""},
		{"octal address", "good.example", "GET http://0177.0.0.1/ HTTP/1.1\r\nHost: good.example\r\n\r\n", "403", ""},
		{"IPv6", "good.example", "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"IPv6 zone", "good.example", "CONNECT [fe80::1%25lo]:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"another address than the listed", "10.1.2.3", "CONNECT 10.1.2.4:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"underscore", ".good.example", "CONNECT a_b.good.example:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"Kelvin sign", "k.example", "CONNECT \u212a.example:443 HTTP/1.1\r\n\r\n", "403", ""},
		{"https in the URL", "good.example", "GET https://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", "403", ""},
		{"ftp", "good.example", "GET ftp://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", "403", ""},
		{"a path alone", "good.example", "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n", "403", ""},
		{"no HTTP", "good.example", "\x16\x03\x01\x00\x05hello\r\n\r\n", "400", ""},
		{"two heads' worth", "good.example", "GET http://good.example/ HTTP/1.1\r\nX: " + strings.Repeat("x", proxyHead) + "\r\n\r\n", "400", ""},
		{"private", "private.example", "CONNECT private.example:443 HTTP/1.1\r\n\r\n", "403", "private.example"},
		{"loopback", "local.example", "GET http://local.example/ HTTP/1.1\r\nHost: local.example\r\n\r\n", "403", "local.example"},
		{"mapped", "mapped.example", "CONNECT mapped.example:443 HTTP/1.1\r\n\r\n", "403", "mapped.example"},
		{"metadata", ".meta.example", "GET http://meta.example/latest HTTP/1.1\r\nHost: x\r\n\r\n", "403", "meta.example"},
		{"this machine", "here.example", "CONNECT here.example:443 HTTP/1.1\r\n\r\n", "403", "here.example"},
		{"no address", "gone.example", "CONNECT gone.example:443 HTTP/1.1\r\n\r\n", "502", "gone.example"},
	} {
		w := newWorld(t, strings.Fields(tt.allow)...)
		answer := w.ask(t, tt.request)
		if !strings.HasPrefix(answer, "HTTP/1.1 "+tt.status+" tether: ") {
			t.Errorf("%s: %q, want status %s", tt.name, answer, tt.status)
		}
		resolved, dialled := w.reached()
		if got := strings.Join(resolved, " "); got != tt.resolved || len(dialled) > 0 {
			t.Errorf("%s: resolved %q, want %q; dialled %q", tt.name, got, tt.resolved, dialled)
		}
		if d := w.last(); len(w.told()) != 1 || d.Allowed != (tt.status == "502") || d.Why == "" {
			t.Errorf("%s: decisions %+v", tt.name, w.told())
		}
	}
}

// The checked address is dialled, not the name again; of several only the public ones.
func TestProxyDialsWhatItChecked(t *testing.T) {
	w := newWorld(t, "mixed.example", "10.1.2.3:8080")
	w.ask(t, "CONNECT mixed.example:443 HTTP/1.1\r\n\r\n")
	w.ask(t, "GET http://10.1.2.3:8080/ HTTP/1.1\r\nHost: x\r\n\r\n") // listed as it is: the user's own choice
	resolved, dialled := w.reached()
	if want := []string{"1.1.1.1:443", "10.1.2.3:8080"}; !slices.Equal(dialled, want) || len(resolved) != 1 {
		t.Errorf("dialled %q, want %q; resolved %q", dialled, want, resolved)
	}
}

func TestProxyForwards(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var names []string
		for name := range r.Header {
			if name != "Connection" { // the proxy's own: each request has a connection to itself
				names = append(names, name)
			}
		}
		slices.Sort(names)
		got = fmt.Sprintf("%s %s host=%s %s %q", r.Method, r.URL, r.Host, strings.Join(names, ","), body)
		rw.Header().Set("Proxy-Authenticate", "Basic")
		rw.Header().Set("X-Kept", "1")
		fmt.Fprint(rw, "the answer")
	}))
	defer server.Close()
	for _, tt := range []struct{ name, request, want string }{
		{"the Host line is the target's", "GET http://GOOD.example/a%20b?c=d HTTP/1.1\r\nHost: evil.example\r\nAccept: x\r\n\r\n", `GET /a%20b?c=d host=good.example Accept ""`},
		{"no Host line", "GET http://good.example:80/ HTTP/1.0\r\n\r\n", `GET / host=good.example  ""`},
		{"hops are dropped", "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nConnection: X-Secret, keep-alive\r\nX-Secret: 1\r\nProxy-Authorization: Basic x\r\nProxy-Connection: x\r\nUpgrade: websocket\r\nTe: x\r\nX-Kept: 1\r\n\r\n", `GET / host=good.example X-Kept ""`},
		{"body", "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbodyGET http://good.example/2 HTTP/1.1\r\n\r\n", `POST / host=good.example Content-Length "body"`},
		{"chunks", "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", `POST / host=good.example  "body"`},
		{"other port", "GET http://other.example:8080/ HTTP/1.1\r\nHost: x\r\n\r\n", `GET / host=other.example:8080  ""`},
	} {
		w := newWorld(t, "good.example", "other.example:8080")
		w.server = server.Listener.Addr().String()
		answer := w.ask(t, tt.request)
		if got != tt.want {
			t.Errorf("%s: the server got\n%s, want\n%s", tt.name, got, tt.want)
		}
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
		if err != nil {
			t.Fatalf("%s: %q: %v", tt.name, answer, err)
		}
		body, err := io.ReadAll(resp.Body)
		if string(body) != "the answer" || err != nil || resp.Header.Get("Proxy-Authenticate") != "" || resp.Header.Get("X-Kept") != "1" {
			t.Errorf("%s: the client got %q (%v)", tt.name, answer, err)
		}
		if d := w.last(); len(w.told()) != 1 || !d.Allowed || d.Host == "" || d.Port == 0 {
			t.Errorf("%s: decisions %+v", tt.name, w.told())
		}
	}
}

func TestProxyBounds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for range 64 {
			_, _ = rw.Write(make([]byte, 1<<10)) // the proxy goes away in the middle
		}
	}))
	defer server.Close()
	const get = "GET http://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n"

	w := newWorld(t, "good.example")
	w.server, w.bytes = server.Listener.Addr().String(), 10<<10
	if n := len(w.ask(t, get)); n > 48<<10 {
		t.Errorf("%d bytes came through, %d were allowed", n, w.bytes)
	}
	if answer := w.ask(t, get); strings.Contains(answer, "200") { // for the command, not for each connection
		t.Errorf("after that: %q", answer)
	}

	w = newWorld(t, "good.example")
	w.server, w.requests = server.Listener.Addr().String(), 2
	for range 2 {
		if n := len(w.ask(t, get)); n < 64<<10 {
			t.Errorf("%d bytes came through", n)
		}
	}
	if answer := w.ask(t, get) + w.ask(t, get); answer != "" || len(w.told()) != 3 || w.last().Allowed {
		t.Errorf("the third and fourth request: %q, %+v", answer, w.told())
	}

	w = newWorld(t, "good.example")
	w.wait = 50 * time.Millisecond
	if answer := w.ask(t, "GET http://good"); !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
		t.Errorf("half a request: %q", answer)
	}
}

// A tunnel without traffic ends, and so does one with traffic when its command does.
func TestProxyEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	w := newWorld(t, "good.example:22")
	w.server, w.idle = silent.Addr().String(), 50*time.Millisecond
	if _, err := io.ReadAll(w.tunnelTo(t, "good.example:22")); err != nil {
		t.Errorf("an idle tunnel: %v", err)
	}

	x := newWorld(t, "good.example:22").proxy
	x.dial = func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", silent.Addr().String())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); x.serve(ctx, l) }()
	c := (&world{address: l.Addr().String()}).tunnelTo(t, "good.example:22")
	cancel()
	<-ended
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes after the end", n)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the proxy still listens")
	}
}

// Whatever a command sends: only listed hosts are resolved and dialled, nothing panics, and a decision is told for
// every request.
func FuzzProxyHead(f *testing.F) {
	for _, s := range []string{"CONNECT good.example:443 HTTP/1.1\r\n\r\n", "GET http://good.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
		"GET http://good.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "CONNECT a\x00.good.example:443 HTTP/1.1\r\n\r\n",
		"GET //good.example/ HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "OPTIONS * HTTP/1.1\r\n\r\n", "GET http:good.example HTTP/1.1\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		var resolved, dialled []string
		decided := 0
		p := Policy{Allow: []string{"good.example", "good.example:8080"}, Decide: func(Decision) { decided++ }}
		v := &visit{proxy: newProxy(p)}
		v.left.Store(1 << 20)
		v.resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
			resolved = append(resolved, host)
			return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
		}
		v.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return nil, net.ErrClosed
		}
		v.handle(t.Context(), &wire{Reader: bytes.NewReader(request)})
		for _, host := range resolved {
			if host != "good.example" {
				t.Fatalf("%q made it resolve %q", request, host)
			}
		}
		for _, a := range dialled {
			if !slices.Contains([]string{"1.1.1.1:443", "1.1.1.1:80", "1.1.1.1:8080"}, a) {
				t.Fatalf("%q made it dial %q", request, a)
			}
		}
		if decided != 1 {
			t.Fatalf("%q: %d decisions", request, decided)
		}
	})
}

// wire is a connection on which everything was sent already, and nobody reads.
type wire struct {
	io.Reader
	net.Conn
}

func (w *wire) Read(p []byte) (int, error)       { return w.Reader.Read(p) }
func (w *wire) Write(p []byte) (int, error)      { return len(p), nil }
func (w *wire) Close() error                     { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
