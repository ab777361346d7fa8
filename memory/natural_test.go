package memory

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// natural returns n queries of ten words that stand next to each other in a
// comment of the store's passages: what a model would ask, at its longest.
func natural(t testing.TB, s *Store, n int) []string {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	most := 0
	if err := s.reader.QueryRow("SELECT max(id) FROM chunk").Scan(&most); err != nil {
		t.Fatal(err)
	}
	var all []string
	for range 100 * n {
		text := ""
		if err := s.reader.QueryRow("SELECT text FROM chunk WHERE id = ?", 1+r.IntN(most)).Scan(&text); err != nil {
			t.Fatal(err)
		}
		var words []string
		for line := range strings.Lines(text) {
			if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
				words = append(words, strings.Fields(comment)...)
			}
		}
		if len(words) >= 10 {
			from := r.IntN(len(words) - 9)
			all = append(all, strings.Join(words[from:from+10], " "))
		}
		if len(all) == n {
			return all
		}
	}
	t.Fatalf("only %d queries", len(all))
	return nil
}
