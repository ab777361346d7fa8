package main

import (
	"debug/buildinfo"
	"debug/macho"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOtherSystems: a program for macOS can be built. It is not run: what it does
// without a sandbox is what the tests of the profile off see here.
func TestOtherSystems(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "tether")
	cmd := exec.Command("go", "build", "-tags", "nethttpomithttp2", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=darwin", "GOARCH=arm64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	f, err := macho.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Cpu != macho.CpuArm64 || f.Type != macho.TypeExec {
		t.Errorf("%v %v, want a program for arm64", f.Cpu, f.Type)
	}
	info, err := buildinfo.ReadFile(bin)
	if err != nil || info.Path != "tether/cmd/tether" {
		t.Errorf("%v, %v", info, err)
	}
}
