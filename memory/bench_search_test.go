package memory

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkSearch searches 10,000 and 100,000 passages of real text for ten words
// that stand together in one of them, in one session and in all of them. With
// 100,000, 95 of 100 searches must take no more than 25 ms and half of them a
// tenth of the time of a plain query for any of the words; the store must open
// within 30 ms, and a process that searches needs no more than 60 MB.
//
// What is reported as a time is the time of the processor, so that what else the
// machine does counts for little; p95-wall-ms is what a clock says.
func BenchmarkSearch(b *testing.B) {
	for _, size := range []int{10_000, 100_000} {
		path := temp(b)
		s := at(b, path)
		n := fill(b, s, size, ".")
		queries := natural(b, s, 100)
		b.Run(fmt.Sprint(size), func(b *testing.B) { compare(b, s, n, queries) })
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(size, "/open"), func(b *testing.B) { reopen(b, path) })
		b.Run(fmt.Sprint(size, "/memory"), func(b *testing.B) { peak(b, path, queries) })
	}
}

// compare runs each query in all three ways, one after the other, so that what
// else the machine does falls on all of them.
func compare(b *testing.B, s *Store, n int, queries []string) {
	sessions := n / 2000 // about as many as fill has made
	var ours, one, plain, wall []time.Duration
	timed := func(all *[]time.Duration, find func()) {
		began := processor(b)
		find()
		*all = append(*all, processor(b)-began)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		for i, q := range queries {
			began := time.Now()
			timed(&ours, func() { project(b, s, q) })
			wall = append(wall, time.Since(began))
			timed(&one, func() { look(b, s, fmt.Sprint("s", i%sessions), q, 5) })
			timed(&plain, func() { plainOr(b, s, q) })
		}
	}
	for _, all := range [][]time.Duration{ours, one, plain, wall} {
		slices.Sort(all)
	}
	ms := func(all []time.Duration, percent int) float64 {
		return float64(all[len(all)*percent/100].Microseconds()) / 1000
	}
	ratio := ms(plain, 50) / ms(ours, 50)
	b.ReportMetric(float64(n), "passages")
	b.ReportMetric(ms(ours, 50), "p50-ms")
	b.ReportMetric(ms(ours, 95), "p95-ms")
	b.ReportMetric(ms(wall, 95), "p95-wall-ms")
	b.ReportMetric(ms(one, 95), "session-p95-ms")
	b.ReportMetric(ms(plain, 50), "plain-p50-ms")
	b.ReportMetric(ms(plain, 95), "plain-p95-ms")
	b.ReportMetric(ratio, "times-faster")
	if n >= 100_000 && ratio < 10 {
		b.Errorf("only %.1f times faster than a plain query", ratio)
	}
}

// processor is the time that this thread has had of the processor.
func processor(b *testing.B) time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var use syscall.Rusage
	if err := syscall.Getrusage(thread, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func reopen(b *testing.B, path string) {
	for b.Loop() {
		s, err := Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s.Close()
		b.StartTimer()
	}
}

// roleSearch opens a store, searches for each line of the file and says how much
// memory the process has had at most, in kB.
func roleSearch(args []string) error {
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	s, err := Open(context.Background(), args[0])
	if err != nil {
		return err
	}
	for q := range strings.Lines(string(text)) {
		if _, err := s.SearchProject(context.Background(), "", q, 5); err != nil {
			return err
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, high, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println(strings.Fields(high)[0])
	return s.Close()
}

func peak(b *testing.B, path string, queries []string) {
	file := b.TempDir() + "/queries"
	if err := os.WriteFile(file, []byte(strings.Join(queries, "\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	high := 0
	for b.Loop() {
		c := start(b, "search", path, file)
		kb := 0
		if c.lines.Scan() {
			fmt.Sscan(c.lines.Text(), &kb)
		}
		if kb == 0 {
			b.Fatalf("the process says %q", c.lines.Text())
		}
		high = max(high, kb)
		c.Wait()
	}
	b.ReportMetric(float64(high)/1000, "peak-MB")
	if high > 60_000 {
		b.Errorf("a search takes %d kB", high)
	}
}
