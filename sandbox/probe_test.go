//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// refusals are the words in which bubblewrap 0.8 tells that it cannot work, with the cause that each has.
var refusals = []struct{ said, cause, repair string }{
	{"bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'.",
		"does not let you make user namespaces", "seccomp=unconfined"},
	{"bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)", "allows no more user namespaces", "user.max_user_namespaces"},
	{"bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  bwrap must be installed setuid on such systems.",
		"has no user namespaces", "CONFIG_USER_NS"},
	{"bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system", "keeps /proc/sys read-only", "systempaths=unconfined"},
	{"bwrap: setting up uid map: Permission denied", "AppArmor", "/etc/apparmor.d/bwrap"},
	{"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor", "userns,"},
	{"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "hides parts of /proc", "systempaths=unconfined"},
	{"bwrap: Creating new namespace failed: Resource temporarily unavailable", "limit on your processes", "ulimit -u"},
	{"bwrap: Unknown option --disable-userns", "older than 0.8", "update"},
	{"bwrap: something that nobody has seen yet", "bubblewrap failed: bwrap: something that nobody", "update"},
}

// TestSupported: what is said on another system, in three lines: what, why, what next.
func TestSupported(t *testing.T) {
	if err := supported("linux"); err != nil {
		t.Errorf("linux: %v", err)
	}
	err := supported("darwin")
	var none *UnavailableError
	if !errors.As(err, &none) {
		t.Fatalf("darwin: %v, want an *UnavailableError", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "darwin") || !strings.Contains(lines[1], "Linux") || !strings.HasSuffix(lines[2], "--sandbox off") {
		t.Errorf("darwin: %q, want three lines: what, why, what next", lines)
	}
}

// standIn makes a launcher that says something and fails.
func standIn(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bwrap")
	write(t, path, "#!/bin/sh\n"+script)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each failure of a launcher that really runs is told with its cause and repair, and nothing runs in its place.
func TestProbeSaysWhy(t *testing.T) {
	for _, r := range refusals {
		b := newBox(t, Policy{})
		b.host.Bwrap = standIn(t, fmt.Sprintf("cat >&2 <<'END'\n%s\nEND\nexit 1\n", r.said))
		err := b.probe(t.Context(), standardName)
		var ue *UnavailableError
		if !errors.As(err, &ue) || !strings.Contains(ue.Cause, r.cause) || !strings.Contains(ue.Repair, r.repair) || ue.Stderr != r.said {
			t.Errorf("%s:\n%v", r.said, err)
			continue
		}
		if !strings.Contains(ue.Repair, "--sandbox landlock") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s", r.said, err)
		}
	}
}

// A launcher that lacks what can be done without is asked again without it.
func TestProbeGoesOnWithout(t *testing.T) {
	b := newBox(t, Policy{})
	real := b.host.Bwrap
	for name, tt := range map[string]struct {
		script       string
		pins, frozen bool
	}{
		"no descriptors":  {`if tr '\0' '\n' </proc/self/fd/3 | grep -q -e -bind-fd; then echo "bwrap: Unknown option --bind-fd" >&2; exit 1; fi; exec ` + real + ` "$@"`, false, true},
		"follows nothing": {`if tr '\0' '\n' </proc/self/fd/3 | grep -q oldroot; then echo "bwrap: Can't remount readonly on /../oldroot: Invalid argument" >&2; exit 1; fi; exec ` + real + ` "$@"`, true, false},
		"all":             {"exec " + real + ` "$@"`, true, true},
	} {
		b.host.Bwrap = standIn(t, tt.script)
		if err := b.probe(t.Context(), standardName); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b.host.Pins != tt.pins || (b.host.Freeze != nil) != tt.frozen {
			t.Errorf("%s: descriptors %v, frozen %q", name, b.host.Pins, b.host.Freeze)
		}
		if o := shell(t, b, "echo x > file; cat file"); o.Output != "x\n" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// elsewhere runs this binary as a program that makes a box, after some preparation in a user namespace of its own.
func elsewhere(t *testing.T, prepare string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-Urm", "sh", "-c", prepare+` && exec "$@"`, "sh", self, harness, t.TempDir(), "true")
	cmd.Env = append(os.Environ(), "PROFILE=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", prepare, err, out)
	}
	return string(out)
}

// The causes that can be produced here, with the real launcher.
func TestProbeForReal(t *testing.T) {
	for prepare, want := range map[string]string{
		"true": "<nil>",
		"echo 0 > /proc/sys/user/max_user_namespaces":                          "this system allows no more user namespaces; as root: sysctl",
		"mount --bind /dev/null /proc/version":                                 "the container hides parts of /proc",
		"export TETHER_SANDBOX=1; echo 0 > /proc/sys/user/max_user_namespaces": "this is the inside of a tether sandbox",
	} {
		if got := elsewhere(t, prepare); !strings.Contains(got, want) {
			t.Errorf("%s: %s", prepare, got)
		}
	}
}

// Inside a sandbox of tether there is none to be had, and the text says that instead of blaming the machine.
func TestProbeInside(t *testing.T) {
	root := t.TempDir()
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "program"), self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t, Policy{Root: root})
	for line, want := range map[string]string{
		"mkdir -p ws; ./program -harness ws true":                       "one in another is not supported",
		"mkdir -p ws; env -u TETHER_SANDBOX ./program -harness ws true": "does not let you make user namespaces",
	} {
		if o := shell(t, b, line); !strings.Contains(o.Output, want) {
			t.Errorf("%s: %+v", line, o)
		}
	}
}
