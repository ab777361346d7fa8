package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func observe(t testing.TB, s *Store, session, id, output string) {
	t.Helper()
	if err := s.Observe(t.Context(), session, Observation{ID: id, Cmd: "cat " + id, Output: output}); err != nil {
		t.Fatal(err)
	}
}

// ids searches and returns "session/id" of each hit.
func ids(t testing.TB, s *Store, session, query string, limit int) []string {
	t.Helper()
	hits, err := s.Search(t.Context(), session, query, limit)
	if err != nil {
		t.Fatalf("%q: %v", query, err)
	}
	var all []string
	for _, h := range hits {
		if h.Note != (h.Session == "") {
			t.Errorf("%+v", h)
		}
		all = append(all, h.Session+"/"+h.ID)
	}
	return all
}

func TestSearch(t *testing.T) {
	s := at(t, temp(t))
	observe(t, s, "a", "obs_1", "parser_test.go:12: the parser panics on quotes")
	observe(t, s, "a", "obs_2", "ok  	tether/act	0.1s\nCafé größer")
	observe(t, s, "b", "obs_1", "quotes are parsed in internal/quote.go")
	if _, err := s.Add(t.Context(), "quotes: see the manual"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ session, query, want string }{
		{"a", "quotes", "a/obs_1 /note_4 b/obs_1"},
		{"b", "quotes", "b/obs_1 /note_4 a/obs_1"},
		{"", "quoting", "/note_4 b/obs_1 a/obs_1"},
		{"a", "parsing quotes", "b/obs_1 a/obs_1 /note_4"}, // all words, then some
		{"a", "CAFE Größer", "a/obs_2"},
		{"a", "parser_test.go", "a/obs_1"},
		{"a", "test_parser.go", ""},
		{"a", "internal/quote.go panics", "a/obs_1 b/obs_1"},
		{"a", "cat obs_2", "a/obs_2 a/obs_1 b/obs_1"},
		{"a", "quotes NOT parser", "a/obs_1 /note_4 b/obs_1"},
		{"a", `"quotes" OR (text:parser*) ^ NEAR(`, "a/obs_1 /note_4 b/obs_1"},
		{"a", "", ""},
		{"a", " \n\x00 *** \"\" ' -- () ", ""},
		{"a", "nowhere", ""},
	} {
		got := ids(t, s, c.session, c.query, 5)
		want := strings.Fields(c.want)
		if c.session == "" || strings.Contains(c.query, " ") { // the order of equals is SQLite's
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q: got %q, want %q", c.session, c.query, got, want)
		}
	}
}

func TestSearchPrefers(t *testing.T) {
	s := at(t, ":memory:")
	for i := range 20 {
		observe(t, s, "other", fmt.Sprintf("obs_%d", i), "needle needle needle")
	}
	for i := range 20 {
		observe(t, s, "mine", fmt.Sprintf("obs_%d", i), "some needle in much more hay "+strings.Repeat("hay ", 2000))
	}
	for i, hit := range ids(t, s, "mine", "needle", 5) {
		if !strings.HasPrefix(hit, "mine/") {
			t.Errorf("hit %d is %s", i, hit)
		}
	}
	if _, err := s.Add(t.Context(), "the needle is sharp"); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, s, "mine", "needle", 3); got[2] != "/note_41" {
		t.Errorf("no place for the note: %q", got)
	}
	if got := ids(t, s, "mine", "hay", 3); len(got) != 3 || got[0] == got[1] {
		t.Errorf("an observation twice: %q", got)
	}
	if got := len(ids(t, s, "mine", "needle", 1000)); got != 41 {
		t.Errorf("%d hits, want all", got)
	}
}

func TestSnippet(t *testing.T) {
	s := at(t, ":memory:")
	observe(t, s, "a", "obs_1", strings.Repeat("=", 400)+"\n\x1b[31m needle\x00\r\n\tend "+strings.Repeat("é", 700))
	hits, err := s.Search(t.Context(), "a", "needle", 1)
	if err != nil || len(hits) != 1 {
		t.Fatalf("%v, %v", hits, err)
	}
	got := hits[0].Snippet
	if n := utf8.RuneCountInString(got); n > maxSnippet || !strings.Contains(got, "needle end é") || strings.ContainsAny(got, "\x02\x03\x1b\n") {
		t.Errorf("%d characters: %q", n, got)
	}
}

func TestSplit(t *testing.T) {
	line := strings.Repeat("é", 150) + "\n"
	for _, text := range []string{"", "x", strings.Repeat(line, 50), strings.Repeat("日本", 5000), strings.Repeat("\xff", 3000), "\n" + strings.Repeat("x", 999)} {
		pieces := split(text)
		if got := strings.Join(pieces, ""); got != text {
			t.Errorf("%.10q: %d bytes became %d", text, len(text), len(got))
		}
		for _, p := range pieces {
			if len(p) > chunkBytes || utf8.ValidString(text) && !utf8.ValidString(p) {
				t.Errorf("%.10q: piece of %d bytes", text, len(p))
			}
		}
	}
}

func TestRareTerms(t *testing.T) {
	terms := []weighed{{"the", 900}, {"parser", 4}, {"nowhere", 0}, {"error", 60}, {"go", 50}}
	for budget, want := range map[int]string{
		1: "parser", 54: "parser OR go", 200: "parser OR go OR error", 2000: "parser OR go OR error OR the",
	} {
		if got := rare(terms, budget); got != want {
			t.Errorf("%d: got %q, want %q", budget, got, want)
		}
	}
	if got := rare(terms[2:3], 9); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestRebuild(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	for i := range 60 {
		observe(t, s, "a", fmt.Sprintf("obs_%d", i), strings.Repeat("lorem ipsum\n", 200)+fmt.Sprintf("needle%d", i))
	}
	if _, err := s.Add(t.Context(), "needle30 is the one"); err != nil {
		t.Fatal(err)
	}
	want := ids(t, s, "a", "needle30", 5)
	if len(want) != 2 {
		t.Fatalf("got %q", want)
	}
	for _, damage := range []string{
		"DELETE FROM chunk",
		"UPDATE chunk_fts_data SET block = x'0102' WHERE id > 10", // search finds out and rebuilds
		"INSERT INTO chunk_fts (chunk_fts) VALUES ('delete-all')",
		"DROP TABLE chunk_fts",
	} {
		if _, err := s.writer.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(damage, "UPDATE") {
			if err := s.Rebuild(t.Context()); err != nil {
				t.Fatalf("%s: %v", damage, err)
			}
		}
		if got := ids(t, s, "a", "needle30", 5); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", damage, got, want)
		}
	}
	sound(t, s, 61)
}

func FuzzSearch(f *testing.F) {
	s := at(f, ":memory:")
	for i := range 50 {
		observe(f, s, "a", fmt.Sprintf("obs_%d", i), fmt.Sprintf("line %d of a file\nAND NOT NEAR \"quoted\" größe 日本 x*y", i))
	}
	for _, q := range []string{"", "line", `"`, `""""`, "a AND", "NEAR(a b", "text:x", "{text}:x", "^a", "a*", "-a", "a\x00b", "\xff", "日本", "١٢", "é\u0301", "''", "(", "\u2028a", "𝟘", "ª"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		began := time.Now()
		hits, err := s.Search(t.Context(), "a", query, 5)
		if err != nil {
			t.Fatalf("%q: %v", query, err)
		}
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("%q: %v", query, d)
		}
		for _, h := range hits {
			if utf8.RuneCountInString(h.Snippet) > maxSnippet || !utf8.ValidString(h.Snippet) || strings.Contains(h.Snippet, "\n") {
				t.Errorf("%q: snippet %q", query, h.Snippet)
			}
		}
	})
}

// words is text of n words, few of them common and most of them rare.
func words(r *rand.Rand, zipf *rand.Zipf, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%d ", zipf.Uint64())
	}
	return b.String()
}

func BenchmarkSearch10k(b *testing.B) {
	s := at(b, b.TempDir()+"/tether.db")
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 2, 50000)
	for i := range 80 { // 128 KiB each, as large as an output gets
		observe(b, s, fmt.Sprintf("s%d", i/8), fmt.Sprintf("obs_%d", i%8), words(r, zipf, 24000))
	}
	var n int
	s.reader.QueryRow("SELECT max(id) FROM chunk").Scan(&n)
	for _, c := range []struct{ name, query string }{
		{"rare", "w30011"}, {"two", "w300 w400"}, {"common", "w0 w1 w2"}, {"absent", "w0 w1 nowhere"},
		{"ten", words(r, zipf, 10)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportMetric(float64(n), "chunks")
			for b.Loop() {
				if _, err := s.Search(b.Context(), "s3", c.query, 5); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	s := at(b, b.TempDir()+"/tether.db")
	body := strings.Repeat("x", 2000)
	for b.Loop() {
		add(b, s, "a", "x", body)
	}
}

func BenchmarkObserve(b *testing.B) {
	s := at(b, b.TempDir()+"/tether.db")
	r := rand.New(rand.NewPCG(1, 2))
	output := words(r, rand.NewZipf(r, 1.1, 2, 50000), 400) // about 2 KB
	for b.Loop() {
		observe(b, s, "a", "obs_1", output)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := b.TempDir() + "/tether.db"
	add(b, at(b, path), "a", "x", 1)
	for b.Loop() {
		s, err := Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
