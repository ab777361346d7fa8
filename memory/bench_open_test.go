package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkOpenLarge opens a store of 100,000 chunks, about 250 MB. It must take
// no more than 30 ms.
func BenchmarkOpenLarge(b *testing.B) {
	path := temp(b)
	s := at(b, path)
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 1, 50000)
	for n, i := 0, 0; n < 100_000; i++ {
		observe(b, s, "a", fmt.Sprint("obs_", i), words(r, zipf, 15000))
		if err := s.reader.QueryRow("SELECT max(id) FROM chunk").Scan(&n); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		s, err := Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		b.StopTimer()
		s.Close()
		b.StartTimer()
	}
	spread(b, took)
}

// spread reports the median and the 95th percentile.
func spread(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// BenchmarkAppendMedian is what a step's events cost: half of the commits must
// take no more than a millisecond.
func BenchmarkAppendMedian(b *testing.B) {
	s := at(b, temp(b))
	body := strings.Repeat("x", 2000)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		add(b, s, "a", "x", body)
		took = append(took, time.Since(began))
	}
	spread(b, took)
}

// BenchmarkMark is what the head costs at the end of each step.
func BenchmarkMark(b *testing.B) {
	s := at(b, temp(b))
	add(b, s, "a", "x", 1)
	for b.Loop() {
		if err := s.Mark(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
