//go:build linux

package sandbox

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// project makes a workspace with all that costs a command something: a repository, files that are protected, some
// hundred others.
func project(t testing.TB) Policy {
	t.Helper()
	root := t.TempDir()
	for _, f := range []string{".git/HEAD", ".git/config", ".git/hooks/x", "tether.toml", ".vscode/tasks.json", "go.mod"} {
		write(t, filepath.Join(root, f), "text\n")
	}
	for d := range 20 {
		for f := range 20 {
			write(t, filepath.Join(root, "d"+string(rune('a'+d)), "f"+string(rune('a'+f))), "text\n")
		}
	}
	return Policy{Root: root, Cache: t.TempDir(), State: t.TempDir()}
}

// BenchmarkBox measures one call through the whole policy and, in turn with it, the same program with nothing around
// it. The difference is what the sandbox costs: "ms-more/op". On a busy machine that of the two fastest calls says more:
// "ms-best/op".
func BenchmarkBox(b *testing.B) {
	for _, bb := range []struct {
		name string
		c    Cmd
		bare []string
	}{
		{"argv", Cmd{Argv: []string{"true"}}, []string{"true"}},
		{"shell", Cmd{Shell: "cd . && true"}, []string{"bash", "--noprofile", "--norc", "-c", "cd . && true"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			box := newBox(b, project(b))
			var boxed, bare durations
			for b.Loop() {
				began := time.Now()
				if err := exec.Command(bb.bare[0], bb.bare[1:]...).Run(); err != nil {
					b.Fatal(err)
				}
				bare.add(time.Since(began))
				o := do(b, box, bb.c)
				if o.Status != 0 {
					b.Fatalf("%+v", o)
				}
				boxed.add(o.Elapsed)
			}
			b.ReportMetric(float64(boxed.sum.Nanoseconds())/float64(boxed.n), "ns/op")
			b.ReportMetric(milliseconds(bare.sum)/float64(bare.n), "ms-bare/op")
			b.ReportMetric(milliseconds(boxed.sum-bare.sum)/float64(boxed.n), "ms-more/op")
			b.ReportMetric(milliseconds(boxed.best-bare.best), "ms-best/op")
		})
	}
}

// durations adds up what calls took.
type durations struct {
	sum, best time.Duration
	n         int
}

func (d *durations) add(took time.Duration) {
	if d.n == 0 || took < d.best {
		d.best = took
	}
	d.sum, d.n = d.sum+took, d.n+1
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkBoxNew is what a session pays once: the survey of the machine and the probe.
func BenchmarkBoxNew(b *testing.B) {
	p := project(b)
	for b.Loop() {
		box, err := New(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		box.Close()
	}
}

// BenchmarkBoxFlood reads 64 MiB of a program that never ends, and kills it.
func BenchmarkBoxFlood(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(flood(b))/(1<<20), "MiB-allocated/op")
	}
}

// flood lets a program print until it is killed, and returns the bytes that were allocated meanwhile.
func flood(t testing.TB) uint64 {
	t.Helper()
	const limit = 64 << 20
	p := project(t)
	p.Output = limit
	box := newBox(t, p)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := do(t, box, Cmd{Argv: []string{"yes"}})
	runtime.ReadMemStats(&after)
	if o.Killed != killedOutput || o.Left < limit-2*keep || len(o.Output) > 2*keep+100 {
		t.Fatalf("killed %q, %d bytes left out, %d kept", o.Killed, o.Left, len(o.Output))
	}
	return after.TotalAlloc - before.TotalAlloc
}

// A flood costs no memory: of 64 MiB, all that was ever allocated is less than 8.
func TestFloodInLittleMemory(t *testing.T) {
	const most = 8 << 20
	if n := flood(t); n > most {
		t.Errorf("%d bytes were allocated, want at most %d", n, most)
	}
}
