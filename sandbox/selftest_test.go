//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSelfTest(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
	for profile, most := range map[Profile]int{WorkspaceWrite: len(attacks), ReadOnly: len(attacks) - 1, Full: 5, Landlock: 4} {
		trials, err := SelfTest(t.Context(), Policy{Profile: profile})
		if err != nil {
			t.Fatalf("%s: %v", profile, err)
		}
		if len(trials) != most {
			t.Errorf("%s: %d attempts, want %d", profile, len(trials), most)
		}
		for _, tr := range trials {
			if !tr.Held || tr.Promise == "" {
				t.Errorf("%s: %+v", profile, tr)
			}
		}
	}
	if trials, err := SelfTest(t.Context(), Policy{Profile: Off}); err != nil || len(trials) != 0 {
		t.Errorf("off promises nothing: %v, %v", trials, err)
	}
	if left, err := os.ReadDir(filepath.Join(home, ".cache/tether")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if v := os.Getenv(canaryName); v != "" {
		t.Errorf("the variable is left: %q", v)
	}
}

func TestSelfTestRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	t.Setenv("XDG_CACHE_HOME", file) // no folder can be made there
	t.Setenv("TMPDIR", file)
	if _, err := SelfTest(t.Context(), Policy{}); err == nil {
		t.Error("no error where nothing can be made")
	}
}

// An attempt that cannot succeed anywhere proves nothing. Without a sandbox, and as an ordinary user, all but these do.
func TestSelfTestBites(t *testing.T) {
	const elsewhere = "write to /proc/sys, open a vsock, leave a message in /tmp" // as root; with a kernel that has them; told by the next
	lab := newLab(t)
	v := lab.try(t, escapeCase{ID: "bites", Profile: WorkspaceWrite, Drive: "selftest", Check: `cat "$LOG"`}, true)
	lines := strings.Split(v.Detail, "\n")
	seen := 0
	for _, l := range lines {
		if name, _, ok := strings.Cut(strings.TrimPrefix(l, "true "), ": "); ok && strings.HasPrefix(l, "true ") && !strings.Contains(elsewhere, name) {
			t.Errorf("it cannot succeed: %s", l)
		}
		if strings.HasPrefix(l, "false ") {
			seen++
		}
	}
	if want := 2 * (len(attacks) - 3); seen < want { // printed, and printed by the check
		t.Errorf("%d attempts succeeded, want %d:\n%s", seen/2, want/2, v.Detail)
	}
}
