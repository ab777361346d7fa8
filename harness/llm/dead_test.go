package llm

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A counter counts the attempts to connect, and lets through the first allow
// ones.
type counter struct {
	attempts atomic.Int32
	allow    int32
}

func (c *counter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n := c.attempts.Add(1); n > c.allow {
		addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: syscall.ECONNREFUSED}
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// A server that is not there is found out by one attempt and one retry: with
// the bounds of wire.go that is less than 2 s.
func TestDeadEndpoint(t *testing.T) {
	if total := 2*probeTimeout + retryPause; total > 2*time.Second || dialTimeout > 500*time.Millisecond {
		t.Errorf("the bounds allow %v and %v an attempt, want 2 s and 500 ms", total, dialTimeout)
	}
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			var dead counter
			c := p.config("http://127.0.0.1:1")
			c.dial = dead.dial
			_, err := Open(t.Context(), c)
			var e *UnreachableError
			if !errors.As(err, &e) || e.Repair == "" || !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("got %v, want an UnreachableError with its cause and repair", err)
			}
			if !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "Get ") {
				t.Errorf("the message is %q", err)
			}
			if n := dead.attempts.Load(); n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
		})
	}
}

// A server that goes away in the middle of a session is found out as fast.
func TestServerGone(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			gone := &counter{allow: 100}
			m, f := p.open(t, func(c *Config) { c.dial = gone.dial })
			f.CloseClientConnections()
			f.Close()
			gone.allow = 0
			before := gone.attempts.Load()
			_, err := m.Reply(t.Context(), ask, nil)
			var e *UnreachableError
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an UnreachableError", err)
			}
			if n := gone.attempts.Load() - before; n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
		})
	}
}

// A listener that never answers is no server.
func TestSilentEndpoint(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Open(t.Context(), Config{Model: "ollama/m", OllamaURL: "http://" + l.Addr().String()})
	var e *UnreachableError
	if !errors.As(err, &e) || !errors.Is(err, errSilent) {
		t.Errorf("got %v, want an UnreachableError", err)
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:11434/":    "http://127.0.0.1:11434",
		"http://127.0.0.1:11434/v1":  "http://127.0.0.1:11434",
		"127.0.0.1:11434":            "http://127.0.0.1:11434",
		"http://127.0.0.1:11434/api": "http://127.0.0.1:11434",
		"127.0.0.1":                  "http://127.0.0.1:11434",
		":8000":                      "http://127.0.0.1:8000",
		"0.0.0.0":                    "http://127.0.0.1:11434",
		"[::1]:9":                    "http://[::1]:9",
		"https://host.example/x/v1/": "https://host.example/x",
	} {
		if got, err := address(in, "11434", "/v1", "/api"); got != want || err != nil {
			t.Errorf("address(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"ftp://a", "http://", "http://a b"} {
		if got, err := address(in, "11434"); err == nil {
			t.Errorf("address(%q) = %q, want an error", in, got)
		}
	}
}
