package act

import (
	"testing"

	"tether/sandbox"
)

// TestUnreachable: the line about the network, for each network there is.
func TestUnreachable(t *testing.T) {
	const lost, refused, other = "fatal: Could not resolve host: x.org", "curl: (56) CONNECT tunnel failed, response 403", "no such file"
	off := sandbox.Policy{Network: sandbox.NetOff}
	proxy := sandbox.Policy{Network: sandbox.NetProxy, Allow: []string{"a.org", ".b.org"}}
	cases := []struct {
		p      sandbox.Policy
		output string
		status int
		want   string
	}{
		{off, lost, 1, "There is no network here: use what is installed."},
		{off, "go: module lookup disabled by GOPROXY=off", 1, "There is no network here: use what is installed."},
		{off, "sys/unix: open /home/ada/go/pkg/mod/cache/download/golang.org/x/sys/@v/v0.5.0.lock: read-only file system", 1, "There is no network here: use what is installed."},
		{off, "npm error code ENOTCACHED", 1, "There is no network here: use what is installed."},
		{off, "As a reminder, you're using offline mode (--offline) which can", 101, "There is no network here: use what is installed."},
		{off, "that satisfies the requirement requests (from versions: none)", 1, "There is no network here: use what is installed."},
		{off, "touch: cannot touch 'go.lock': Read-only file system", 1, ""},
		{off, "fatal: Unable to create '.git/index.lock': Read-only file system", 128, "The repository is read-only here: leave commits to the user."},
		{off, "fatal: Unable to create '.git/index.lock': Read-only file system", 0, ""},
		{off, "fatal: Unable to create '.git/index.lock': File exists.", 128, ""},
		{off, lost, 0, ""},
		{off, other, 1, ""},
		{off, refused, 1, ""},
		{proxy, lost, 1, "Only these hosts may be reached: a.org, .b.org"},
		{proxy, refused, 56, "Only these hosts may be reached: a.org, .b.org"},
		{proxy, other, 1, ""},
		{proxy, "that satisfies the requirement requests (from versions: none)", 1, ""},
		{sandbox.Policy{Network: sandbox.NetProxy}, lost, 1, "No host may be reached from here."},
		{sandbox.Policy{Network: sandbox.NetProxy, Allow: []string{"a", "b", "c", "d", "e"}}, lost, 1, "Only these hosts may be reached: a, b, c, d, …"},
		{sandbox.Policy{Network: sandbox.NetHost}, lost, 1, ""},
	}
	for _, c := range cases {
		if got := unreachable(c.p, sandbox.Outcome{Output: c.output, Status: c.status}); got != c.want {
			t.Errorf("%s, %q, status %d: %q, want %q", c.p.Network, c.output, c.status, got, c.want)
		}
	}
}
