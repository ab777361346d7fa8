//go:build linux

package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// proxied makes a box with the network NetProxy, and the world that its proxy leads to: a server that echoes the target.
func proxied(t *testing.T, p Policy) (*Box, *world) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "answer of %s\n", r.Host)
	}))
	t.Cleanup(server.Close)
	w := &world{names: map[string]string{}, server: server.Listener.Addr().String()}
	p.Network, p.Decide = NetProxy, func(d Decision) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.decisions = append(w.decisions, d)
	}
	b := newBox(t, p)
	b.proxy.resolve, b.proxy.dial = w.lookUp, w.connect
	return b, w
}

// through sends a request to the proxy as a line of bash does, and prints the answer's head and body.
const through = `exec 3<>/dev/tcp/127.0.0.1/3128 && printf '%s' >&3 && cat <&3`

func TestProxyInside(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, profile := range []Profile{WorkspaceWrite, ReadOnly} {
		b, w := proxied(t, Policy{Profile: profile, Allow: []string{"good.example"}})
		get := func(host string) string {
			return fmt.Sprintf(through, `GET http://`+host+`/ HTTP/1.1\r\nHost: x\r\n\r\n`)
		}
		for line, want := range map[string]string{
			get("good.example"): "answer of good.example",
			get("evil.example"): "403 tether: evil.example port 80 is not on the list",
			fmt.Sprintf(through, `CONNECT 127.0.0.1\000.good.example:443 HTTP/1.1\r\n\r\n`):          "400 tether: malformed",
			fmt.Sprintf("%s; exec 3<>/dev/tcp/127.0.0.1/%d || echo closed", "echo direct", port):     "closed",
			"getent hosts good.example || echo unknown":                                              "unknown",
			"echo $HTTPS_PROXY $http_proxy $NO_PROXY":                                                "http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1",
			"grep -c : /proc/net/dev; cat /proc/net/route | wc -l":                                   "1\n1\n",
			"ls /run/tether /proc/self/fd":                                                           "/proc/self/fd:\n0\n1\n2\n3\n",
			"cat /run/tether/tether-shim > /dev/null; echo x > /run/tether/tether-shim || echo held": "held",
			"ulimit -n; ulimit -u; ulimit -c":                                                        "4096\n512\n0\n",
		} {
			if o := shell(t, b, line); !strings.Contains(o.Output, want) {
				t.Errorf("%s: %s: %+v, want %q", profile, line, o, want)
			}
		}
		if d := w.decisions; len(d) != 3 {
			t.Errorf("%s: decisions %+v", profile, d)
		}
	}
}

func TestProxyAllowsNothing(t *testing.T) {
	b, w := proxied(t, Policy{})
	for _, host := range []string{"127.0.0.1:18996", "good.example", "localhost", "[::1]"} {
		o := shell(t, b, fmt.Sprintf(through, `GET http://`+host+`/ HTTP/1.1\r\nHost: x\r\n\r\n`))
		if !strings.HasPrefix(o.Output, "HTTP/1.1 403 tether: ") {
			t.Errorf("%s: %+v", host, o)
		}
	}
	if len(w.dialled) > 0 || len(w.resolved) > 0 || len(w.decisions) != 4 {
		t.Errorf("dialled %q, resolved %q, decisions %+v", w.dialled, w.resolved, w.decisions)
	}
}

// Each command has a proxy of its own, in a network of its own.
func TestProxyOfManyCommands(t *testing.T) {
	b, w := proxied(t, Policy{Allow: []string{".good.example"}})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			host := fmt.Sprintf("x%d.good.example", i)
			o, err := b.Run(t.Context(), Cmd{Shell: fmt.Sprintf(through, `GET http://`+host+`/ HTTP/1.1\r\nHost: x\r\n\r\n`)})
			if err != nil || !strings.HasSuffix(o.Output, "answer of "+host+"\n") {
				t.Errorf("%s: %+v, %v", host, o, err)
			}
		})
	}
	all.Wait()
	if len(w.decisions) != 8 {
		t.Errorf("%d decisions", len(w.decisions))
	}
}

// A command ends when it ends, whatever hangs in its tunnels.
func TestProxyDoesNotHoldTheCommand(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	b, w := proxied(t, Policy{Allow: []string{"good.example:22"}})
	w.server = silent.Addr().String()
	b.proxy.resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
	}
	o := shell(t, b, `(exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT good.example:22 HTTP/1.1\r\n\r\n' >&3; read -r -u 3 l; echo "$l"; touch open; cat <&3) & until [ -e open ]; do :; done`)
	if o.Status != 0 || !strings.Contains(o.Output, "200 OK") {
		t.Errorf("%+v", o)
	}
}

// What the shim cannot do is a fault of the sandbox; what the command cannot do is a status.
func TestShimFails(t *testing.T) {
	b, _ := proxied(t, Policy{})
	for program, want := range map[string]int{"no-such-program": 127, "./no-such-file": 127, "/etc/passwd": 126, "/": 126} {
		if o := do(t, b, Cmd{Argv: []string{program}}); o.Status != want || !strings.HasPrefix(o.Output, program+": ") {
			t.Errorf("%s: %+v, want status %d", program, o, want)
		}
	}
	if o := do(t, b, Cmd{Argv: []string{"sh", "-c", "exit 125"}}); o.Status != shimFailed {
		t.Errorf("a command with the shim's own status: %+v", o)
	}
	raw, err := bpf.Assemble([]bpf.Instruction{bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_LISTEN, SkipFalse: 1}, bpf.RetConstant{Val: errno(unix.EPERM)}, bpf.RetConstant{Val: actAllow}})
	if err != nil {
		t.Fatal(err)
	}
	b.filter = nil
	for _, i := range raw {
		b.filter = append(binary.NativeEndian.AppendUint16(b.filter, i.Op), i.Jt, i.Jf)
		b.filter = binary.NativeEndian.AppendUint32(b.filter, i.K)
	}
	var fault *LaunchError
	o, err := b.Run(t.Context(), Cmd{Shell: "echo ran"})
	if !errors.As(err, &fault) || !strings.Contains(fault.Stderr, proxyAddress) || strings.Contains(o.Output, "ran") {
		t.Errorf("%+v, %v; want a fault that names %s", o, err, proxyAddress)
	}
}

// When the program's file was replaced, what runs is copied: never the new file.
func TestShimIsThisProgram(t *testing.T) {
	if path := self(); still(path) != path {
		t.Errorf("this program is not at %q", path)
	}
	other := filepath.Join(t.TempDir(), "other")
	write(t, other, "#!/bin/sh\necho replaced\n")
	if got := still(other); got != "" {
		t.Errorf("%q is taken for this program", got)
	}
	b, _ := proxied(t, Policy{Allow: []string{"good.example"}})
	b.host.Self = other
	o := shell(t, b, fmt.Sprintf(through, `GET http://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n`))
	if !strings.HasSuffix(o.Output, "answer of good.example\n") {
		t.Errorf("%+v", o)
	}
}

func TestNetworkOfTheHost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	line := fmt.Sprintf("exec 9<>/dev/tcp/127.0.0.1/%d && echo connected; cat /etc/resolv.conf >/dev/null && echo resolver; ls /run", l.Addr().(*net.TCPAddr).Port)
	b := newBox(t, Policy{Network: NetHost})
	if o := shell(t, b, line); !strings.HasPrefix(o.Output, "connected\nresolver\n") {
		t.Errorf("%+v", o)
	}
	abstract, err := net.Listen("unix", "@tether-test-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	copyFile(t, self(), filepath.Join(b.Policy().Root, "self"))
	for profile, want := range map[Profile]string{WorkspaceWrite: unix.EPERM.Error(), Full: "<nil>"} { // full shows that the check bites
		in := newBox(t, Policy{Root: b.Policy().Root, Profile: profile, Network: NetHost})
		if kernelABI() < landlockABI {
			want = "<nil>"
		}
		if o := do(t, in, Cmd{Argv: []string{"./self", inside, abstract.Addr().String()}}); strings.TrimSpace(o.Output) != want {
			t.Errorf("%s: an abstract socket: %+v, want %s", profile, o, want)
		}
	}
	if o := shell(t, newBox(t, Policy{Profile: Full, Network: NetOff}), line); strings.Contains(o.Output, "connected") {
		t.Errorf("full without a network: %+v", o)
	}
}

func BenchmarkProxyBox(b *testing.B) {
	box := newBox(b, Policy{Network: NetProxy})
	for b.Loop() {
		do(b, box, Cmd{Argv: []string{"true"}})
	}
}

func BenchmarkLandlockBox(b *testing.B) {
	box := newBox(b, Policy{Profile: Landlock})
	for b.Loop() {
		do(b, box, Cmd{Argv: []string{"true"}})
	}
}
