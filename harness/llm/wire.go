package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Bounds of one reply, so that a server gone mad cannot fill the memory: a
// line of 4 MiB is far above a whole reply of 2,048 tokens.
const (
	maxLine  = 4 << 20
	maxReply = 16 << 20
)

// Times at the start. One attempt and one retry end within 2 s, so that a
// server that is not there is known before the user looks away.
const (
	dialTimeout  = 500 * time.Millisecond
	probeTimeout = 900 * time.Millisecond
	retryPause   = 100 * time.Millisecond
)

// newTransport returns the transport of one model. Its connections are kept
// between requests; dial is for tests, nil for the network.
func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 5 * time.Second,
	}
}

// twice runs attempt once more if the first one did not reach the server.
func twice(ctx context.Context, attempt func(context.Context) error) error {
	err := attempt(ctx)
	if !isDial(err) || ctx.Err() != nil {
		return err
	}
	select {
	case <-time.After(retryPause):
	case <-ctx.Done():
		return ctx.Err()
	}
	return attempt(ctx)
}

// isDial reports whether err means that there was nobody to talk to.
func isDial(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) || errors.Is(err, errSilent)
}

// errSilent is the cause of a probe that found a listener that does not answer.
var errSilent = errors.New("it does not answer")

// probe asks url whether a server is there, and returns what it answered.
func probe(ctx context.Context, rt http.RoundTripper, url, key string) (status int, body []byte, err error) {
	err = twice(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, errSilent)
		defer cancel()
		status, body, err = get(ctx, rt, http.MethodGet, url, key, nil)
		if err != nil && context.Cause(ctx) == errSilent {
			return errSilent
		}
		return err
	})
	return status, body, err
}

// get sends a small request and reads a small answer.
func get(ctx context.Context, rt http.RoundTripper, method, url, key string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxLine))
	return resp.StatusCode, b, err
}

// why takes the wrapping of net/http off an error: the address is told
// apart from it, and who was asked for a name does not help.
func why(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(dns.Err)
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// noServer makes the error for a server at addr that does not answer.
func noServer(addr string, err error, repair string) *UnreachableError {
	return serverGone(addr, err, repair, inContainer("/"))
}

// serverGone is noServer for who is inside a container, or not.
func serverGone(addr string, err error, repair string, inside bool) *UnreachableError {
	if u, e := url.Parse(addr); e == nil && local(u.Hostname()) && inside {
		repair += "\ninside a container this address is the container itself: give the host's, for example host.docker.internal"
	}
	return &UnreachableError{URL: addr, Cause: why(err), Repair: repair}
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// inContainer reports whether root is the root of a container, by the marks that Docker
// and Podman leave there or by the name of its control group.
func inContainer(root string) bool {
	for _, mark := range []string{".dockerenv", "run/.containerenv"} {
		if _, err := os.Stat(filepath.Join(root, mark)); err == nil {
			return true
		}
	}
	group, err := os.ReadFile(filepath.Join(root, "proc/1/cgroup"))
	return err == nil && containers.Match(group)
}

// containers are the names that runtimes give to control groups.
var containers = regexp.MustCompile(`docker|kubepods|containerd|libpod|/lxc`)

// address brings the ways in which people write a server's address to one:
// scheme and port are added, a slash and the paths in trim are taken off.
func address(s, port string, trim ...string) (string, error) {
	if strings.HasPrefix(s, ":") {
		s = "127.0.0.1" + s
	}
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not the address of a server; write it as http://HOST:PORT", s)
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // what a server listens on is not what a client asks
	}
	switch {
	case u.Port() != "":
		u.Host = net.JoinHostPort(host, u.Port())
	case port != "" && u.Scheme == "http":
		u.Host = net.JoinHostPort(host, port)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	for _, t := range trim {
		u.Path = strings.TrimSuffix(u.Path, t)
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String(), nil
}
