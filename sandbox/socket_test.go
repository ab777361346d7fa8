//go:build linux

package sandbox

import (
	"net"
	"path/filepath"
	"testing"
)

// A program of the host that listens at a socket in the workspace is out of reach, also when it came later; a socket that
// nobody listens at any more is a file like any other.
func TestSocketsOfTheHost(t *testing.T) {
	const knock = `/usr/bin/python3 -c 'import socket,sys
s=socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])' `
	for _, profile := range []Profile{WorkspaceWrite, ReadOnly} {
		root := t.TempDir()
		write(t, filepath.Join(root, "sub/file"), "")
		listen := func(rel string) net.Listener {
			l, err := net.Listen("unix", filepath.Join(root, rel))
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			t.Cleanup(func() { l.Close() })
			return l
		}
		listen("sub/host.sock")
		listen("dead.sock").Close()
		b := newBox(t, Policy{Root: root, Profile: profile})
		if o := shell(t, b, knock+"sub/host.sock 2>&1"); o.Status == 0 || len(o.Planted) > 0 {
			t.Errorf("%s: %+v", profile, o)
		}
		if profile == ReadOnly {
			continue
		}
		if o := shell(t, b, "rm dead.sock; "+knock+"$PWD/sub/host.sock || mv sub s; "+knock+"s/host.sock"); o.Status == 0 || exists(filepath.Join(root, "dead.sock")) {
			t.Errorf("%+v", o)
		}
		listen("later.sock")
		shell(t, b, "true") // it is seen after a command
		if o := shell(t, b, knock+"later.sock"); o.Status == 0 {
			t.Errorf("%+v", o)
		}
	}
}
