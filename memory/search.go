package memory

import (
	"context"
	"database/sql"
	"errors"
	"math"
)

// A Hit is something that Search found.
type Hit struct {
	ID      string // for Recall: "obs_3", "note_7"
	Session string // "" for a note
	Snippet string // one line of at most 200 characters about the first match
	Note    bool
}

const (
	defaultHits = 5
	maxHits     = 50
	// commonFloor is how many chunks may always be ranked, which takes about
	// 2 ms. Above 20 times as many, commonShare of the store may be.
	commonFloor = 1000
	commonShare = 20
	// perHit is how many chunks are read at most for a hit wanted: the best
	// ones are often of the same observation, which has up to 140.
	perHit = 40
)

// Search finds observations and notes by free text: any string is a query, and
// none is an error. At most limit hits (0: 5; never more than 50), best first:
// what holds all the words before what holds the rarer ones of them, and each
// time the given session first, then the notes, then other sessions. The last
// place goes to the best note if no note has one.
//
// Words are compared by their stems ("parsing" finds "parsed"), case and
// accents aside; a word with marks in it, such as a/b.go, is a phrase. No match
// is no hits and no error.
func (s *Store) Search(ctx context.Context, session, query string, limit int) ([]Hit, error) {
	if limit <= 0 {
		limit = defaultHits
	}
	words := terms(query)
	if len(words) == 0 {
		return nil, nil
	}
	hits, err := s.search(ctx, session, words, min(limit, maxHits))
	if sqliteCode(err) == sqliteCorrupt || errors.Is(err, errStrange) { // the index is derived: make it again, once
		if err := s.Rebuild(ctx); err != nil {
			return nil, err
		}
		hits, err = s.search(ctx, session, words, min(limit, maxHits))
	}
	return hits, s.explain("search", err)
}

func (s *Store) search(ctx context.Context, session string, words []string, limit int) ([]Hit, error) {
	common, err := s.common(ctx)
	if err != nil {
		return nil, err
	}
	weights, err := s.weigh(ctx, words, common+1)
	if err != nil {
		return nil, err
	}
	found := hits{limit: limit, seen: map[[2]string]bool{}}
	for _, match := range []string{all(weights), rare(weights, common)} {
		if match == "" || found.full() {
			continue
		}
		// Where every word is everywhere, ranking is slow and says nothing.
		q := lookup{match, session, ranked(weights, common)}
		if err := s.find(ctx, q, &found); err != nil {
			return nil, err
		}
	}
	return s.snippets(ctx, found.list)
}

// common is the number of chunks above which a term is a common one.
func (s *Store) common(ctx context.Context) (int, error) {
	size := 0
	err := s.reader.QueryRowContext(ctx,
		"SELECT coalesce((SELECT max(id) FROM chunk), 0) - min(0, coalesce((SELECT min(id) FROM chunk), 0))").Scan(&size)
	return max(commonFloor, size/commonShare), err
}

// weigh counts the chunks of each term, up to limit. Asking the index itself
// means that stems and phrases are counted as they are searched.
func (s *Store) weigh(ctx context.Context, words []string, limit int) ([]weighed, error) {
	var all []weighed
	for _, word := range words {
		w := weighed{term: word}
		err := s.reader.QueryRowContext(ctx,
			"SELECT count(*) FROM (SELECT 1 FROM chunk_fts WHERE chunk_fts MATCH ? LIMIT ?)", word, limit).Scan(&w.count)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func ranked(terms []weighed, common int) bool {
	for _, t := range terms {
		if t.count <= common {
			return true
		}
	}
	return false
}

// A candidate is a hit without its snippet.
type candidate struct {
	Hit
	chunk int64
	match string // the query that found it
}

// hits collects what is found, each observation or note once.
type hits struct {
	limit int
	list  []candidate
	seen  map[[2]string]bool
	notes bool // one of them is a note
}

func (h *hits) full() bool { return len(h.list) >= h.limit }

func (h *hits) add(one candidate) {
	key := [2]string{one.Session, one.ID}
	if h.seen[key] {
		return
	}
	if h.full() {
		if !one.Note || h.notes {
			return
		}
		h.list = h.list[:h.limit-1]
	}
	h.seen[key] = true
	h.notes = h.notes || one.Note
	h.list = append(h.list, one)
}

// A lookup is one FTS5 query.
type lookup struct {
	match   string
	session string // preferred
	ranked  bool   // best first, else newest first
}

// find runs q over the three scopes in their order. Each is a range of chunk
// ids, because FTS5 itself can keep to a range.
func (s *Store) find(ctx context.Context, q lookup, found *hits) error {
	if q.session != "" {
		var lo, hi int64
		err := s.reader.QueryRowContext(ctx, `SELECT coalesce((SELECT min(id) FROM chunk WHERE session = ?1), 1),
			coalesce((SELECT max(id) FROM chunk WHERE session = ?1), 0)`, q.session).Scan(&lo, &hi)
		if err != nil {
			return err
		}
		if err := s.scope(ctx, q, "AND chunk.session = ?4", lo, hi, found); err != nil {
			return err
		}
	}
	if err := s.scope(ctx, q, "", math.MinInt64, -1, found); err != nil || found.full() {
		return err
	}
	return s.scope(ctx, q, "AND chunk.session <> ?4", 1, math.MaxInt64, found)
}

// scope adds what q finds in the chunks from lo to hi. Snippets are made last,
// because making one costs more than finding ten chunks.
func (s *Store) scope(ctx context.Context, q lookup, filter string, lo, hi int64, found *hits) error {
	order := "chunk_fts.rowid DESC"
	if q.ranked {
		order = "rank"
	}
	// CROSS JOIN holds SQLite to this order of loops.
	rows, err := s.reader.QueryContext(ctx, `SELECT chunk.id, chunk.session, chunk.ref
		FROM chunk_fts CROSS JOIN chunk ON chunk.id = chunk_fts.rowid
		WHERE chunk_fts MATCH ?1 AND chunk_fts.rowid BETWEEN ?2 AND ?3 `+filter+`
		ORDER BY `+order+` LIMIT ?5`, q.match, lo, hi, q.session, perHit*found.limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for first := true; rows.Next() && (first || !found.full()); first = false {
		one := candidate{match: q.match}
		if err := rows.Scan(&one.chunk, &one.Session, &one.ID); err != nil {
			return err
		}
		one.Note = one.chunk < 0
		found.add(one)
	}
	return rows.Err()
}

// snippets finishes the hits.
func (s *Store) snippets(ctx context.Context, found []candidate) ([]Hit, error) {
	var all []Hit
	for _, one := range found {
		text := ""
		err := s.reader.QueryRowContext(ctx, `SELECT snippet(chunk_fts, 0, char(2), char(3), '…', 32)
			FROM chunk_fts WHERE chunk_fts MATCH ? AND rowid = ?`, one.match, one.chunk).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			continue // Rebuild came between
		}
		if err != nil {
			return nil, err
		}
		bad, err := s.strange(ctx, one.chunk)
		if bad {
			err = errStrange
		}
		if err != nil {
			return nil, err
		}
		one.Snippet = snippet(text)
		all = append(all, one.Hit)
	}
	return all, nil
}
