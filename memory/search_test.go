package memory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func observe(t testing.TB, s *Store, session, id, output string) {
	t.Helper()
	if err := s.Observe(t.Context(), session, Observation{ID: id, Cmd: "cat " + id, Output: output}); err != nil {
		t.Fatal(err)
	}
}

// look searches the session, or all of them for "".
func look(t testing.TB, s *Store, session, query string, limit int) []Hit {
	t.Helper()
	find := s.Search
	if session == "" {
		find = s.SearchProject
	}
	hits, err := find(t.Context(), session, query, limit)
	if err != nil {
		t.Fatalf("%q: %v", query, err)
	}
	return hits
}

// ids searches and returns "session/id" of each observation or note, once.
func ids(t testing.TB, s *Store, session, query string, limit int) []string {
	t.Helper()
	var all []string
	for _, h := range look(t, s, session, query, limit) {
		if id := h.Session + "/" + h.ID; !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// intact checks the whole index against the log.
func intact(t testing.TB, s *Store) {
	t.Helper()
	for _, look := range []func() (string, error){
		func() (string, error) { return s.textFault(t.Context()) },
		func() (string, error) { return s.termFault(t.Context()) },
	} {
		if what, err := look(); what != "" || err != nil {
			t.Errorf("index: %s, %v", what, err)
		}
	}
}

func TestSearch(t *testing.T) {
	s := at(t, temp(t))
	observe(t, s, "a", "obs_1", "parser_test.go:12: the parser panics on quotes")
	observe(t, s, "a", "obs_2", "ok  	tether/act	0.1s\nCafé größer")
	observe(t, s, "b", "obs_1", "quotes are parsed in internal/quote.go")
	remember(t, s, "a", "style", "quotes: see the manual")
	remember(t, s, "b", "style", "quotes are single here")
	add(t, s, "a", KindStop, map[string]string{"task": "mend the lexer", "report": "Quotes no longer panic.", "stop": "done"})
	for _, c := range []struct{ session, query, want string }{
		{"a", "quotes", "a/done_6 a/obs_1 a/style"},
		{"b", "quotes", "b/obs_1 b/style"},
		{"", "quoting", "a/done_6 a/obs_1 b/obs_1"}, // no notes
		{"a", "the parser of quotes", "a/obs_1 a/done_6 a/style"},
		{"a", "CAFE Größer", "a/obs_2"},
		{"a", "parser_test.go", "a/obs_1"},
		{"a", "lexer", "a/done_6"},
		{"b", "quote.go:12:", "b/obs_1 b/style"}, // no such phrase: its parts
		{"a", "internal/quote.go panics", "a/done_6 a/obs_1"},
		{"a", "cat obs_2", "a/obs_2 a/obs_1"},
		{"a", "quotes NOT parser", "a/obs_1 a/done_6 a/style"},
		{"a", `"quotes" OR (text:parser*) ^ NEAR(`, "a/obs_1 a/done_6 a/style"},
		{"a", "", ""},
		{"a", "the", "a/done_6 a/obs_1 a/style"}, // nothing but a filler
		{"a", " \n\x00 *** \"\" ' -- () ", ""},
		{"a", "nowhere", ""},
	} {
		got, want := ids(t, s, c.session, c.query, 5), strings.Fields(c.want)
		if len(want) > 0 && len(got) > 0 && strings.Contains(c.query, "parser") && got[0] != want[0] {
			t.Errorf("%s: %q: first is %s, want %s", c.session, c.query, got[0], want[0])
		}
		slices.Sort(got) // the order of equals is SQLite's
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q: got %q, want %q", c.session, c.query, got, want)
		}
	}
	intact(t, s)
}

// TestHitIsWhereItSays: the lines that a hit names hold what matches.
func TestHitIsWhereItSays(t *testing.T) {
	s := at(t, ":memory:")
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "line %d of the log is about word%d\n", i+1, i+1)
		if i%9 == 8 {
			b.WriteString("\r\n")
		}
	}
	o := Observation{ID: "obs_1", Cmd: "sh cat <<E\nheredoc\nE", Stdin: "first\nin the stdin", Output: b.String() + strings.Repeat("x ", 5000) + "needle " + strings.Repeat("y ", 5000)}
	if err := s.Observe(t.Context(), "a", o); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"word1", "word200", "word400", "needle", "stdin", "heredoc"} {
		hits := look(t, s, "a", word, 5)
		if len(hits) != 1 && word != "heredoc" {
			t.Fatalf("%s: %d hits", word, len(hits))
		}
		h := hits[0]
		text := strings.Join(o.Lines()[h.First-1:h.Last], "\n")
		if !strings.Contains(text, word) || !strings.Contains(h.Snippet, word) || len(text) > passageBytes {
			t.Errorf("%s: lines %d:%d are %q, snippet %q", word, h.First, h.Last, text, h.Snippet)
		}
	}
	if h := look(t, s, "a", "cat", 1); len(h) != 1 || h[0].Head != "sh cat <<E heredoc E" {
		t.Errorf("by its command: %+v", h)
	}
}

// TestSearchVaries: neither one long output nor copies of a text fill the hits,
// and what mem itself printed is not found again.
func TestSearchVaries(t *testing.T) {
	s := at(t, ":memory:")
	long := ""
	for i := range 40 {
		long += fmt.Sprintf("%d needles in much hay %s\n", i, strings.Repeat("hay ", 100))
	}
	observe(t, s, "a", "obs_1", long)
	for i := range 5 {
		if err := s.Observe(t.Context(), "a", Observation{ID: fmt.Sprint("obs_", 2+i), Cmd: "read x", Output: "the needle of x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Observe(t.Context(), "a", Observation{ID: "obs_7", Cmd: "mem search needle", Output: "obs_1 needle"}); err != nil {
		t.Fatal(err)
	}
	observe(t, s, "a", "obs_8", "a needle by itself")
	hits := look(t, s, "a", "needle", 5)
	count := map[string]int{}
	for _, h := range hits {
		count[h.ID]++
	}
	if len(hits) != 5 || count["obs_1"] > perSource || count["obs_7"] > 0 || count["obs_8"] != 1 {
		t.Errorf("got %v", count)
	}
	if got := len(look(t, s, "a", "needle", 1000)); got != 5 {
		t.Errorf("%d hits, want 3 of the long one, one of the copies and the last", got)
	}
}

func TestSnippet(t *testing.T) {
	s := at(t, ":memory:")
	observe(t, s, "a", "obs_1", strings.Repeat("=", 390)+"\n\x1b[31m needle\x00\x02\r\n\tend "+strings.Repeat("é", 150))
	hits := look(t, s, "a", "needle", 1)
	if len(hits) != 1 {
		t.Fatalf("%v", hits)
	}
	got := hits[0].Snippet
	if n := utf8.RuneCountInString(got); n > maxSnippet || !strings.Contains(got, "needle end é") || strings.ContainsAny(got, "\x02\x03\x1b\n") {
		t.Errorf("%d characters: %q", n, got)
	}
	long := strings.Repeat("filling words ", 20)
	if got := snippet("\x02one\x03 " + long + "\x02one\x03 \x02two\x03 " + long); !strings.Contains(got, "one two") {
		t.Errorf("not where most matches are: %q", got)
	}
}

func TestTogether(t *testing.T) {
	far := strings.Repeat("x", near)
	for text, want := range map[string]int{
		"nothing": 0, "\x02a\x03 b \x02c\x03": 2, "\x02parse\x03 \x02parsed\x03": 1, "\x02a\x03" + far + "\x02b\x03": 1,
	} {
		if got := together(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestPassages(t *testing.T) {
	line := strings.Repeat("é", 150) + "\n"
	for _, text := range []string{"", "x", "\n\nx\n\n", strings.Repeat(line, 50), strings.Repeat(line+"\n", 50), strings.Repeat("日本", 5000), strings.Repeat("\xff", 3000), "\n" + strings.Repeat("x", 999)} {
		lines := Lines(text)
		if got := strings.Join(lines, ""); got != strings.ReplaceAll(text, "\n", "") {
			t.Errorf("%.10q: %d bytes became %d", text, len(text), len(got))
		}
		last := 0
		for _, p := range passages(lines) {
			for _, l := range lines[last : p.first-1] {
				if strings.TrimSpace(l) != "" {
					t.Errorf("%.10q: line %q is in no passage", text, l)
				}
			}
			if last = p.last; len(p.text) > passageBytes || p.text != strings.Join(lines[p.first-1:p.last], "\n") || utf8.ValidString(text) && !utf8.ValidString(p.text) {
				t.Errorf("%.10q: passage %d:%d of %d bytes", text, p.first, p.last, len(p.text))
			}
		}
	}
	paragraphs := strings.Repeat("some words of a paragraph\nand its second line\n\n", 40)
	for _, p := range passages(Lines(paragraphs)) {
		if !strings.HasPrefix(p.text, "some") || !strings.HasSuffix(p.text, "line") {
			t.Errorf("not cut between paragraphs: %q", p.text)
		}
	}
}

func TestTerms(t *testing.T) {
	for query, want := range map[string]string{
		"how do I parse": `"parse"`, "how do I": `"how" "do" "i"`, `say "x"`: `"say" """x"""`, "a/b.go A/B.go": `"a/b.go"`, "* ()": "",
	} {
		if got := strings.Join(terms(query), " "); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	if got := terms(strings.Repeat("é", 500)); len(got) != 1 || len(got[0]) > maxTermSize+2 {
		t.Errorf("got %q", got)
	}
}

func TestRareTerms(t *testing.T) {
	terms := []weighed{{"the", 900}, {"parser", 4}, {"error", 60}, {"go", 50}}
	all := "parser OR go OR error OR the"
	for budget, want := range map[int]string{
		1: "(parser) AND (" + all + ")", 54: "(parser OR go) AND (" + all + ")", 200: "(parser OR go OR error) AND (" + all + ")", 2000: all,
	} {
		if got, _ := rare(terms, budget); got != want {
			t.Errorf("%d: got %q, want %q", budget, got, want)
		}
	}
}

func TestRebuild(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	for i := range 60 {
		observe(t, s, "a", fmt.Sprintf("obs_%d", i), strings.Repeat("lorem ipsum\n", 200)+fmt.Sprintf("needle%d", i))
	}
	remember(t, s, "a", "which", "needle29 is the one")
	remember(t, s, "a", "which", "needle30 is the one")
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
		intact(t, s)
	}
	sound(t, s, 62)
}

// TestStrayPassage: a passage that is not of its event is never a hit.
func TestStrayPassage(t *testing.T) {
	s := at(t, ":memory:")
	observe(t, s, "a", "obs_1", "a needle")
	observe(t, s, "b", "obs_1", "some hay")
	if _, err := s.writer.Exec("UPDATE chunk SET session = 'a', seq = 1 WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, s, "a", "hay", 5); len(got) > 0 {
		t.Errorf("found %q", got)
	}
	intact(t, s) // it was made again
}

func FuzzSearch(f *testing.F) {
	s := at(f, ":memory:")
	for i := range 50 {
		observe(f, s, "a", fmt.Sprintf("obs_%d", i), fmt.Sprintf("line %d of a file\nAND NOT NEAR \"quoted\" größe 日本 x*y", i))
	}
	for _, q := range []string{"", "line", `"`, `""""`, "a AND", "NEAR(a b", "text:x", "{text}:x", "^a", "a*", "-a", "a\x00b", "\xff", "日本", "١٢", "é\u0301", "''", "(", "\u2028a", "𝟘", "ª", "no.such.line.file", "ª.x\"y line"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, session := range []string{"a", ""} {
			for _, h := range look(t, s, session, query, 5) {
				if utf8.RuneCountInString(h.Snippet) > maxSnippet || !utf8.ValidString(h.Snippet) || strings.Contains(h.Snippet, "\n") {
					t.Errorf("%q: snippet %q", query, h.Snippet)
				}
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
