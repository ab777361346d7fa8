package sandbox

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// tunnel serves CONNECT. On port 443 the first bytes must be TLS for the very host that was asked for: a tunnel to an
// allowed host that serves many names would else lead to all of them.
func (v *visit) tunnel(ctx context.Context, t target, c net.Conn, in *bufio.Reader) error {
	addrs, r := v.route(ctx, t)
	if r != nil {
		return r
	}
	up, r := v.connect(ctx, t, addrs)
	if r != nil {
		return r
	}
	defer up.Close()
	defer context.AfterFunc(ctx, func() { up.Close() })()
	_ = c.SetDeadline(time.Now().Add(v.wait))
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return nil
	}
	var first []byte
	if t.port == 443 {
		var why string
		if first, why = checkHello(c, in, t); why != "" {
			v.decide(Decision{Host: t.host, Port: t.port, Why: why})
			return nil // the client waits for TLS: closing is all that it understands
		}
	}
	v.decide(Decision{Host: t.host, Port: t.port, Allowed: true, Why: "listed"})
	m := v.meter(up, c)
	if _, err := m.Write(first); err == nil {
		pass(c, in, m)
	}
	return nil
}

// pass copies in both directions until both ended, or one failed.
func pass(c net.Conn, in io.Reader, up *metered) {
	var both sync.WaitGroup
	both.Go(func() {
		_, err := io.Copy(onlyWriter{up}, in)
		endWrite(up.Conn, err)
	})
	_, err := io.Copy(onlyWriter{c}, up)
	endWrite(c, err)
	if err != nil {
		up.Close()
	}
	both.Wait()
}

// onlyWriter hides a connection's own way of copying, which would go around the counting.
type onlyWriter struct{ io.Writer }

// endWrite tells the other side that no more comes; after an error that nothing does.
func endWrite(c net.Conn, err error) {
	if half, ok := c.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	c.Close()
}

// errSpent ends a connection when a command has moved all the bytes it may.
var errSpent = errors.New("the command may move no more bytes")

// metered is a connection to the world. Its bytes are counted for the whole command; each of them puts off the end of
// both this connection and the one inside.
type metered struct {
	net.Conn
	inside net.Conn
	visit  *visit
}

func (v *visit) meter(up, inside net.Conn) *metered {
	m := &metered{up, inside, v}
	_ = m.count(0, nil)
	return m
}

func (m *metered) count(n int, err error) error {
	until := time.Now().Add(m.visit.idle)
	_, _ = m.Conn.SetDeadline(until), m.inside.SetDeadline(until) // closed is fine
	if m.visit.left.Add(int64(-n)) < 0 {
		return errSpent
	}
	return err
}

// Read counts what came.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if n == 0 {
		return 0, err
	}
	return n, m.count(n, err)
}

// Write counts what left.
func (m *metered) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	return n, m.count(n, err)
}

// extECH is the TLS extension of an encrypted ClientHello (RFC 9849): the name in the clear is then not the one meant.
const extECH = 0xfe0d

// checkHello reads the beginning of TLS and says what is wrong with it, "" if it asks for the target. It returns what it
// read, which is to be passed on.
func checkHello(c net.Conn, in io.Reader, t target) (read []byte, wrong string) {
	rec := &recorder{Conn: c, in: in}
	var hello *tls.ClientHelloInfo
	_ = tls.Server(rec, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errSeen
	}}).Handshake() // it always fails: with errSeen, or because this is no TLS
	switch {
	case hello == nil:
		return rec.seen, "no TLS where it was expected"
	case slices.Contains(hello.Extensions, extECH):
		return rec.seen, "the TLS name is encrypted"
	case t.addr.IsValid() && hello.ServerName == "": // an address has no name
		return rec.seen, ""
	case hello.ServerName == "":
		return rec.seen, "TLS without a name"
	}
	if name, _, err := parseHost(hello.ServerName); err != nil || name != t.host {
		return rec.seen, "the TLS name is another one than the host"
	}
	return rec.seen, ""
}

// errSeen stops a handshake after its first message.
var errSeen = errors.New("seen")

// recorder lets the TLS of the standard library read a ClientHello that is meant for somebody else: it keeps what was
// read and sends nothing.
type recorder struct {
	net.Conn
	in   io.Reader
	seen []byte
}

// Read keeps what it reads, at most four of the largest records.
func (r *recorder) Read(p []byte) (int, error) {
	const most = 64 << 10 // bytes: a hello has 2 KiB with post-quantum keys
	if len(r.seen) >= most {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.in.Read(p[:min(len(p), most-len(r.seen))])
	r.seen = append(r.seen, p[:n]...)
	return n, err
}

// Write sends nothing: the alert at the end is not for the client.
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// Close leaves the connection open.
func (r *recorder) Close() error { return nil }
