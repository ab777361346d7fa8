//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inet is an address that a process speaks to, as strace prints it.
var inet = regexp.MustCompile(`sa_family=AF_INET6?,.*`)

// TestOffline: no telemetry, no look for updates. Of all that tether and its
// commands do nothing goes farther than this machine, where it looks for a server.
func TestOffline(t *testing.T) {
	h := newDesk(t)
	looked := 0
	for _, args := range [][]string{
		{"run", "Look"}, // no model: those of this machine are looked for
		{"run", "-m", h.script("sh true", "write a.txt < a", "done"), "--verify", "true", "Write"},
		{"doctor"}, {"version"}, {"stats"},
	} {
		trace := filepath.Join(t.TempDir(), "trace")
		cmd := exec.CommandContext(t.Context(), "strace", append([]string{"-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", trace, "tether"}, args...)...)
		cmd.Dir, cmd.Env = filepath.Join(h.dir, "ws"), h.env
		out, err := cmd.CombinedOutput() // the status is what other tests look at
		data, rerr := os.ReadFile(trace)
		if rerr != nil {
			t.Fatalf("%q: %v, %v\n%s", args, err, rerr, out)
		}
		for _, at := range inet.FindAllString(string(data), -1) {
			if looked++; !strings.Contains(at, `"127.0.0.1"`) && !strings.Contains(at, `"::1"`) {
				t.Errorf("%q speaks to %s", args, at)
			}
		}
	}
	if looked == 0 {
		t.Error("not even this machine was asked for a server: the trace shows nothing")
	}
}
