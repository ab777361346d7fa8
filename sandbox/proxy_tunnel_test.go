package sandbox

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// tlsWorld is a world whose server speaks TLS for example.com.
func tlsWorld(t *testing.T) (*world, *x509.CertPool) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "secret answer") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that the proxy cuts off
	server.StartTLS()
	t.Cleanup(server.Close)
	w := newWorld(t, ".example.com")
	w.server = server.Listener.Addr().String()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return w, pool
}

// tunnel asks for one and returns the connection behind the proxy's answer.
func (w *world) tunnelTo(t *testing.T, target string) net.Conn {
	t.Helper()
	c := w.open(t)
	const yes = "HTTP/1.1 200 OK\r\n\r\n"
	answer := make([]byte, len(yes))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != yes {
		t.Fatalf("%q, %v", answer, err)
	}
	return c
}

func TestProxyTunnel(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"at once":          func(c net.Conn) net.Conn { return c },
		"byte after byte":  func(c net.Conn) net.Conn { return slowly{c} },
		"in small records": func(c net.Conn) net.Conn { return &splitter{Conn: c} },
	} {
		w, pool := tlsWorld(t)
		tc := tls.Client(wrap(w.tunnelTo(t, "EXAMPLE.com:443")), &tls.Config{ServerName: "example.com", RootCAs: pool, NextProtos: []string{"http/1.1"}})
		fmt.Fprint(tc, "GET / HTTP/1.0\r\n\r\n")
		answer, err := io.ReadAll(tc)
		if err != nil || !strings.HasSuffix(string(answer), "secret answer") {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		if d := w.last(); d != (Decision{"example.com", 443, true, "listed"}) || len(w.told()) != 1 {
			t.Errorf("%s: decisions %+v", name, w.told())
		}
	}
}

// slowly writes one byte at a time.
type slowly struct{ net.Conn }

func (s slowly) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := s.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// splitter cuts the first TLS record into records of a few bytes each.
type splitter struct {
	net.Conn
	done bool
}

func (s *splitter) Write(p []byte) (int, error) {
	if s.done {
		return s.Conn.Write(p)
	}
	s.done = true
	const header = 5
	n := int(binary.BigEndian.Uint16(p[3:]))
	var out []byte
	for part := range slices.Chunk(p[header:header+n], 7) {
		out = append(out, p[0], p[1], p[2], 0, byte(len(part)))
		out = append(out, part...)
	}
	_, err := s.Conn.Write(append(out, p[header+n:]...))
	return len(p), err
}

// A tunnel that does not begin with TLS for its host carries nothing at all.
func TestProxyTunnelName(t *testing.T) {
	for _, tt := range []struct {
		name, why string
		client    *tls.Config
	}{
		{"another name", "another one", &tls.Config{ServerName: "evil.example.com"}},
		{"no name", "without a name", &tls.Config{InsecureSkipVerify: true}},
		{"encrypted name", "encrypted", &tls.Config{ServerName: "hidden.example", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(t, "example.com")}},
	} {
		w, pool := tlsWorld(t)
		tt.client.RootCAs = pool
		tc := tls.Client(w.tunnelTo(t, "example.com:443"), tt.client)
		if err := tc.Handshake(); err == nil {
			t.Errorf("%s: the handshake succeeded", tt.name)
		}
		if d := w.last(); d.Allowed || !strings.Contains(d.Why, tt.why) || len(w.told()) != 1 {
			t.Errorf("%s: decisions %+v", tt.name, w.told())
		}
	}
	w, _ := tlsWorld(t)
	c := w.tunnelTo(t, "example.com:443")
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if answer, _ := io.ReadAll(c); len(answer) > 0 || w.last().Allowed {
		t.Errorf("plain text in a tunnel: %q, %+v", answer, w.last())
	}
}

// echConfig is a list of one configuration for an encrypted ClientHello (RFC 9849), with a public name.
func echConfig(t *testing.T, public string) []byte {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub := key.PublicKey().Bytes()
	body := []byte{1, 0, 0x20} // id, X25519
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(pub))), pub...)
	body = append(body, 0, 4, 0, 1, 0, 1, 32, byte(len(public))) // HKDF-SHA256 with AES-128-GCM, longest name
	body = append(append(body, public...), 0, 0)
	config := append(binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(body))), body...)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(config))), config...)
}

// A hello that never ends is not collected for ever.
func TestProxyEndlessHello(t *testing.T) {
	w, _ := tlsWorld(t)
	c := w.tunnelTo(t, "example.com:443")
	head := []byte{1, 0xff, 0xff, 0xff} // a ClientHello of 16 MiB
	for range 1 << 14 {
		record := append([]byte{22, 3, 1, 0x10, 0}, append(head, make([]byte, 0x1000-len(head))...)...)
		head = nil
		if _, err := c.Write(record); err != nil {
			break
		}
	}
	if answer, _ := io.ReadAll(c); len(answer) > 0 || w.last().Allowed || w.last().Why == "" {
		t.Errorf("%q, %+v", answer, w.last())
	}
}
