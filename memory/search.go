package memory

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"sort"
)

// A Hit is a passage that Search found.
type Hit struct {
	ID          string // for Recall: "obs_3", "done_9"; of a note, its key
	Session     string
	Note        bool
	First, Last int    // its lines, as Lines counts them; 0, 0 if only the heading matches
	Head        string // one line: the command, of a report the task, of a note the key
	Snippet     string // one line of at most 200 characters around what matches best
}

const (
	defaultHits = 5
	maxHits     = 50
	// commonFloor is how many passages may always be ranked, which takes about
	// 2 ms. In a large store each of them takes longer, since the lists of its words
	// are longer, and commonLarge may be: at 100,000 the slowest of 20 searches
	// takes 24 ms with that, 28 ms with commonFloor. Of a very large one it is one in
	// commonShare.
	commonFloor = 1000
	commonLarge = 700
	commonShare = 200
	largeStore  = 50_000
	// tooCommon is the part of the newest passages above which a term is left out:
	// one in ten. Without those terms as many labelled questions are answered.
	tooCommon = 10
	// perSource is how many passages of one observation are hits: a long output
	// about the matter shall not hide all others.
	perSource = 3
	// pool is how many passages are looked at closely for one hit: the ranking of
	// the labelled questions (TestRelevance) has 63 % of the answers among its first
	// five passages, and 80 % among the first 20.
	pool = 4
	// headWeight is what a word of the heading counts beside one of the text: it
	// stands at every passage of an output.
	headWeight = "bm25(0.5, 1.0)"
)

// Search finds passages of what a session saw, remembers and reported by free
// text: any string is a query, and none is an error. At most limit hits (0: 5;
// never more than 50), best first: what holds all the words before what holds
// any of the rarer ones. The same passage, seen twice, is one hit.
//
// Words are compared by their stems ("parsing" finds "parsed"), case and
// accents aside; a word with marks in it, such as a/b.go, is a phrase. No match
// is no hits and no error.
func (s *Store) Search(ctx context.Context, session, query string, limit int) ([]Hit, error) {
	return s.searchIn(ctx, scope{session: session}, query, limit)
}

// SearchProject is Search over all sessions of the store. Notes are found only
// if they are the given session's.
func (s *Store) SearchProject(ctx context.Context, session, query string, limit int) ([]Hit, error) {
	return s.searchIn(ctx, scope{session: session, project: true}, query, limit)
}

func (s *Store) searchIn(ctx context.Context, in scope, query string, limit int) ([]Hit, error) {
	words := terms(query)
	if len(words) == 0 {
		return nil, nil
	}
	if limit <= 0 {
		limit = defaultHits
	}
	limit = min(limit, maxHits)
	hits, err := s.search(ctx, in, words, limit)
	if sqliteCode(err) == sqliteCorrupt || errors.Is(err, errStrange) { // the index is derived: make it again, once
		if err := s.Rebuild(ctx); err != nil {
			return nil, err
		}
		hits, err = s.search(ctx, in, words, limit)
	}
	return hits, s.explain("search", err)
}

// search runs within one transaction: between two, Rebuild may give the same
// numbers to other passages.
func (s *Store) search(ctx context.Context, in scope, words []string, limit int) ([]Hit, error) {
	conn, err := s.reader.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	q := &search{db: conn, scope: in, limit: limit, seen: map[string]bool{}, of: map[[2]string]int{}}
	if err := q.bounds(ctx); err != nil {
		return nil, err
	}
	return q.hits, q.run(ctx, words)
}

// A scope is where is searched: a range of passages, because FTS5 itself can
// keep to one, and in it those of the session or all but the notes of others.
type scope struct {
	session string
	project bool
	lo, hi  int64
}

// A search is one query and what it has found so far.
type search struct {
	db *sql.Conn
	scope
	common int // in more passages than these a term is a common one
	limit  int
	hits   []Hit
	seen   map[string]bool   // by heading and text
	of     map[[2]string]int // by session and id
}

// bounds finds out in which passages is searched.
func (q *search) bounds(ctx context.Context) error {
	where, args := "", []any{}
	if !q.project {
		where, args = " WHERE session = ?1", []any{q.session}
	}
	// Each by itself: SQLite looks up one end of an index, not two at once.
	err := q.db.QueryRowContext(ctx, "SELECT coalesce((SELECT min(id) FROM chunk"+where+"), 1), coalesce((SELECT max(id) FROM chunk"+where+"), 0)",
		args...).Scan(&q.lo, &q.hi)
	n := int(min(q.hi-q.lo, math.MaxInt32))
	if q.common = commonFloor; n > largeStore {
		q.common = max(commonLarge, n/commonShare)
	}
	return err
}

// run looks for all words and then for the rarest.
func (q *search) run(ctx context.Context, words []string) error {
	weights, err := q.weigh(ctx, words)
	if err == nil {
		weights, err = q.telling(ctx, weights)
	}
	if err != nil || len(weights) == 0 {
		return err
	}
	match := every(weights)
	n, err := q.count(ctx, match)
	if err != nil {
		return err
	}
	// Few need no ranking but how close the words stand, and ranking looks at
	// every passage of every word.
	if few := n <= pool*q.limit; n > 0 {
		if err := q.find(ctx, match, !few && n <= q.common, len(weights)); err != nil {
			return err
		}
	}
	if len(q.hits) == q.limit {
		return nil
	}
	match, n = rare(weights, q.common)
	return q.find(ctx, match, n <= q.common, len(weights))
}

// count returns in how many passages match is, up to one more than common ones
// are in. Asking the index itself means that stems and phrases are counted as
// they are searched; it takes no longer than a look into fts5vocab, which
// knows only stems.
func (q *search) count(ctx context.Context, match string) (n int, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT count(*) FROM (
		SELECT 1 FROM chunk_fts WHERE chunk_fts MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)`,
		match, q.lo, q.hi, q.common+1).Scan(&n)
	return n, err
}

// weigh counts the passages of each term. One that is nowhere is left out; of a
// phrase that is nowhere, the parts take its place.
func (q *search) weigh(ctx context.Context, words []string) ([]weighed, error) {
	var all []weighed
	known := map[string]bool{}
	for len(words) > 0 && len(known) < 2*maxTerms {
		word := words[0]
		words = words[1:]
		if known[word] {
			continue
		}
		known[word] = true
		n, err := q.count(ctx, word)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			all = append(all, weighed{word, n})
		} else {
			words = append(parts(word), words...)
		}
	}
	return all, nil
}

// telling leaves out the terms that are in more than one in tooCommon of the
// newest passages, unless all are: they take the most time, and tell the least.
func (q *search) telling(ctx context.Context, all []weighed) ([]weighed, error) {
	newest := *q
	newest.lo = max(q.lo, q.hi-int64(q.common)+1)
	var some []weighed
	for _, w := range all {
		n := 0
		if w.count > q.common {
			var err error
			if n, err = newest.count(ctx, w.term); err != nil {
				return nil, err
			}
		}
		if n*tooCommon <= q.common {
			some = append(some, w)
		}
	}
	if len(some) == 0 {
		return all, nil
	}
	return some, nil
}

// find adds what match, which has that many terms, finds. What is not ranked
// comes newest first.
func (q *search) find(ctx context.Context, match string, ranked bool, terms int) error {
	rank, order := "-rank", "rank"
	if !ranked {
		rank, order = "1.0", "chunk_fts.rowid DESC"
	}
	filter := "chunk.session = ?4"
	if q.project {
		filter = "(chunk.note = 0 OR chunk.session IN (?4, ''))"
	}
	// CROSS JOIN holds SQLite to this order of loops.
	rows, err := q.db.QueryContext(ctx, `SELECT chunk.id, chunk.session, ref, note, first, last, chunk.head,
			highlight(chunk_fts, 1, char(2), char(3)), `+rank+`
		FROM chunk_fts CROSS JOIN chunk ON chunk.id = chunk_fts.rowid
		WHERE chunk_fts MATCH ?1 AND rank MATCH '`+headWeight+`' AND chunk_fts.rowid BETWEEN ?2 AND ?3 AND `+filter+`
		ORDER BY `+order, match, q.lo, q.hi, q.session)
	if err != nil {
		return err
	}
	best, err := q.take(rows, terms)
	if err != nil {
		return err
	}
	return q.add(ctx, best)
}

// A candidate may become a hit.
type candidate struct {
	Hit
	id    int64  // of the passage
	text  string // in which the matches are marked
	score float64
}

// take reads candidates until there are several for each hit.
func (q *search) take(rows *sql.Rows, terms int) (all []candidate, err error) {
	defer rows.Close()
	for want := pool * (q.limit - len(q.hits)); len(all) < want && rows.Next(); {
		var c candidate
		if err := rows.Scan(&c.id, &c.Session, &c.ID, &c.Note, &c.First, &c.Last, &c.Head, &c.text, &c.score); err != nil {
			return nil, err
		}
		// The mark-up differs from one match to the next, the text does not.
		if same := c.Head + "\n" + unmarked(c.text); !q.seen[same] {
			q.seen[same] = true
			c.score *= 1 + float64(together(c.text))/float64(terms)
			all = append(all, c)
		}
	}
	return all, rows.Err()
}

// add makes hits of the best candidates. Each is compared with its event: an
// index that is not that of the log is made again.
func (q *search) add(ctx context.Context, all []candidate) error {
	sort.SliceStable(all, func(i, j int) bool { return all[i].score > all[j].score }) // slices.SortStableFunc is 7 KB of code for each type
	for _, c := range all {
		of := [2]string{c.Session, c.ID}
		if len(q.hits) == q.limit || q.of[of] == perSource {
			continue
		}
		bad, err := strange(ctx, q.db, c.id)
		if bad {
			err = errStrange
		}
		if err != nil {
			return err
		}
		q.of[of]++
		c.Head, c.Snippet = oneLine(c.Head), snippet(c.text)
		q.hits = append(q.hits, c.Hit)
	}
	return nil
}
