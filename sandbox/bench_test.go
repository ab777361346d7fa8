package sandbox

import (
	"os/exec"
	"testing"
)

func BenchmarkBoxRun(b *testing.B) {
	box := newBox(b, Policy{})
	for b.Loop() {
		if o := do(b, box, Cmd{Argv: []string{"true"}}); o.Status != 0 {
			b.Fatal(o)
		}
	}
}

func BenchmarkBoxRunShell(b *testing.B) {
	box := newBox(b, Policy{})
	for b.Loop() {
		if o := do(b, box, Cmd{Shell: "cd . && true"}); o.Status != 0 {
			b.Fatal(o)
		}
	}
}

// BenchmarkExec is the floor: the same command with no sandbox around it.
func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	root := b.TempDir()
	for b.Loop() {
		box, err := New(b.Context(), Policy{Root: root})
		if err != nil {
			b.Fatal(err)
		}
		box.Close()
	}
}
