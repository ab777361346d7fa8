package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// labels are questions to which the comment and the declaration of something in
// the library of Go is the answer.
var labels = []struct{ query, dir, decl string }{
	{"stop a timer and know whether it had already fired", "time", "func (t *Timer) Stop() bool"},
	{"wait until a group of goroutines has finished", "sync", "type WaitGroup struct"},
	{"run a function exactly once", "sync", "type Once struct"},
	{"parse a duration such as 1h15m", "time", "func ParseDuration("},
	{"how do I limit the size of an http request body?", "net/http", "func MaxBytesReader("},
	{"write json without escaping html characters", "encoding/json", "func (enc *Encoder) SetEscapeHTML("},
	{"reject unknown fields when json is decoded", "encoding/json", "func (dec *Decoder) DisallowUnknownFields("},
	{"environment of the command as it would run", "os/exec", "func (c *Cmd) Environ("},
	{"kill the process when the context is cancelled", "os/exec", "func CommandContext("},
	{"create a temporary directory", "os", "func MkdirTemp("},
	{"replace all matches of a regular expression in a string", "regexp", "func (re *Regexp) ReplaceAllString("},
	{"split a string around white space", "strings", "func Fields("},
	{"compare two strings ignoring case", "strings", "func EqualFold("},
	{"read a file line by line", "bufio", "type Scanner struct"},
	{"what is the longest line that a Scanner accepts and how is it raised", "bufio", "func (s *Scanner) Buffer("},
	{"maximum number of open connections to the database", "database/sql", "func (db *DB) SetMaxOpenConns("},
	{"how many idle connections does the pool keep", "database/sql", "func (db *DB) SetMaxIdleConns("},
	{"walk a directory tree without following symbolic links", "path/filepath", "func WalkDir("},
	{"relative path from one directory to another", "path/filepath", "func Rel("},
	{"convert a string in a given base to an integer", "strconv", "func ParseInt("},
	{"shut down the http server gracefully without interrupting active connections", "net/http", ") Shutdown(ctx context.Context) error"},
	{"policy for handling redirects in the http client", "net/http", "CheckRedirect func("},
	{"escape a string so it can be placed in a url query", "net/url", "func QueryEscape("},
	{"wrap several errors into one", "errors", "func Join("},
	{"does any error in the chain match the target", "errors", "func Is("},
	{"copy exactly n bytes from a reader to a writer", "io", "func CopyN("},
	{"cancel a context at a given deadline", "context", "func WithDeadline("},
	{"skip slow tests with -test.short", "testing", "func Short("},
	{"structured logs as json lines", "log/slog", "func NewJSONHandler("},
	{"count the runes in a byte slice", "unicode/utf8", "func RuneCount("},
}

// libraries are the folders in which the answers are, and about ten times as
// many passages that are none.
var libraries = []string{"archive", "bufio", "bytes", "context", "database", "encoding", "errors", "flag", "fmt", "io", "log", "math", "mime",
	"net/http", "net/url", "os", "path", "reflect", "regexp", "sort", "strconv", "strings", "sync", "testing", "text", "time", "unicode"}

// An answer is where something is declared: its comment and its first line.
type answer struct{ first, last int }

// answers returns, by the heading of its file, each place below dir at which decl
// is.
func answers(t testing.TB, dir, decl string) map[string]answer {
	t.Helper()
	all := map[string]answer{}
	files, err := filepath.Glob(filepath.Join(goroot(t), dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := Lines(string(data))
		for i, line := range lines {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") && strings.Contains(line, decl) && !strings.HasSuffix(file, "_test.go") {
				from := i
				for from > 0 && strings.HasPrefix(strings.TrimSpace(lines[from-1]), "//") {
					from--
				}
				all["read "+dir+"/"+filepath.Base(file)] = answer{from + 1, i + 1}
			}
		}
	}
	if len(all) == 0 {
		t.Errorf("%s: %s is not there: write another label", dir, decl)
	}
	return all
}

// recall is the share of labels whose answer is among the hits of find.
func recall(t testing.TB, find func(query string) []Hit) float64 {
	t.Helper()
	right := 0
	for _, l := range labels {
		want, ok := answers(t, l.dir, l.decl), false
		for _, h := range find(l.query) {
			a, here := want[h.Head]
			ok = ok || here && h.First <= a.last && h.Last >= a.first
		}
		if ok {
			right++
		} else {
			t.Logf("not found: %s", l.query)
		}
	}
	return float64(right) / float64(len(labels))
}

// plainOr is what anybody would write first: any of the words, best first.
func plainOr(t testing.TB, s *Store, query string) []Hit {
	t.Helper()
	var words []string
	for _, w := range strings.Fields(query) {
		if strings.ContainsFunc(w, isToken) {
			words = append(words, quoted(strings.ToLower(w)))
		}
	}
	rows, err := s.reader.Query(`SELECT chunk.head, first, last, snippet(chunk_fts, 1, '', '', '…', 32)
		FROM chunk_fts JOIN chunk ON chunk.id = chunk_fts.rowid WHERE chunk_fts MATCH ? ORDER BY rank LIMIT 5`, strings.Join(words, " OR "))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []Hit
	for rows.Next() {
		var h Hit
		if err := rows.Scan(&h.Head, &h.First, &h.Last, &h.Snippet); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func project(t testing.TB, s *Store, query string) []Hit {
	t.Helper()
	hits, err := s.SearchProject(t.Context(), "", query, 5)
	if err != nil {
		t.Fatalf("%q: %v", query, err)
	}
	return hits
}

// TestRelevance: what makes a search fast shall not make it blind. The answer to
// 20 of the 30 questions is among the first five passages (recall 0.67); a plain
// query for any of the words, which looks at all that they are in, finds 21.
func TestRelevance(t *testing.T) {
	s := at(t, temp(t))
	n := fill(t, s, 1<<30, libraries...)
	ours := recall(t, func(q string) []Hit { return project(t, s, q) })
	t.Log("plain:")
	plain := recall(t, func(q string) []Hit { return plainOr(t, s, q) })
	if ours < plain-0.1 || ours < 0.6 {
		t.Errorf("too much is not found: %.2f, and %.2f by a plain query", ours, plain)
	}
	t.Logf("recall@5 of %d questions over %d passages: %.2f, plain OR %.2f", len(labels), n, ours, plain)
}
