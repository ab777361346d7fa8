package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
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
