//go:build linux

package sandbox

import (
	"errors"
	"strings"
	"testing"
)

func TestCompareMounts(t *testing.T) {
	p := Policy{Profile: WorkspaceWrite, Root: "/home/ada/a b"}
	work := tree{Protect: []string{".git", "x\n#"}, Hide: []string{"/home/ada/a b/.tether"}, GitDirs: []string{"/srv/main/.git"}}
	good := `27 20 0:24 / /newroot rw - tmpfs tmpfs rw
30 27 8:1 /home/ada/a\040b /newroot/home/ada/a\040b rw - ext4 /dev/sda1 rw
31 30 8:1 /home/ada/a\040b/.git /newroot/home/ada/a\040b/.git ro - ext4 /dev/sda1 rw
32 30 8:1 /x /newroot/home/ada/a\040b/x\012\043 ro - ext4 /dev/sda1 rw
33 30 0:25 / /newroot/home/ada/a\040b/.tether ro - tmpfs tmpfs rw
34 27 8:1 /srv/main/.git /newroot/srv/main/.git ro - ext4 /dev/sda1 rw
`
	if err := compareMounts(good, p, work); err != nil {
		t.Errorf("all is mounted: %v", err)
	}
	for line := range strings.Lines(good) {
		err := compareMounts(strings.Replace(good, line, "", 1), p, work)
		var re *RefusedError
		if first := strings.HasPrefix(line, "27"); first != (err == nil) || !first && !errors.As(err, &re) {
			t.Errorf("without %q: error %v", line, err)
		}
	}
	// A link was followed: the mount is there, but elsewhere.
	if err := compareMounts(strings.Replace(good, `/newroot/home/ada/a\040b/.git`, "/newroot/home/ada", 1), p, work); err == nil {
		t.Error("a mount at another place is taken")
	}
	p.Profile = Full // neither the workspace nor its repository is a mount of its own
	if err := compareMounts(good, p, tree{Hide: work.Hide}); err != nil {
		t.Errorf("full: %v", err)
	}
}

// A launcher that cannot do what it is asked for says so, and the brake does not hide it.
func TestBrakeLauncherFails(t *testing.T) {
	b := newBox(t, Policy{})
	b.host.Files = []string{"/etc/no-such-folder/file"} // it cannot be made there
	_, err := b.Run(t.Context(), Cmd{Shell: "true"})
	var le *LaunchError
	if !errors.As(err, &le) || !strings.Contains(le.Error(), "no-such-folder") {
		t.Errorf("error %v, want the launcher's own words", err)
	}
}
