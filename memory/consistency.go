package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// errStrange says that the index has a passage that is not of the event which
// it names.
var errStrange = errors.New("the full-text index is not that of the events")

// An indexedPassage is a row of the index.
type indexedPassage struct {
	session, ref, head, text string
	note                     bool
	first, last              int
}

// passagesOf returns the rows that the index should have of e, in order: none
// if e is not searched, or is a note that was replaced or forgotten.
func passagesOf(ctx context.Context, db queryer, e Event) ([]indexedPassage, error) {
	d, ok, err := documentOf(e)
	if err != nil || !ok {
		return nil, err
	}
	if d.note {
		later, err := events(ctx, db, "kind IN ('note', 'forget') AND session = ? AND body ->> '$.key' = ? AND seq > ? LIMIT 1", e.Session, d.ref, e.Seq)
		if err != nil || len(later) > 0 {
			return nil, err
		}
	}
	var all []indexedPassage
	for _, p := range d.passages() {
		all = append(all, indexedPassage{e.Session, d.ref, storable(cut(d.head, maxHead)), storable(p.text), d.note, p.first, p.last})
	}
	return all, nil
}

const passageColumns = "SELECT session, ref, head, text, note, first, last FROM chunk WHERE "

func scanPassage(row interface{ Scan(...any) error }) (p indexedPassage, err error) {
	err = row.Scan(&p.session, &p.ref, &p.head, &p.text, &p.note, &p.first, &p.last)
	return p, err
}

// textFault says which indexed passage is not as Rebuild would make it; "" if
// all are.
func (s *Store) textFault(ctx context.Context) (string, error) {
	want := 0
	for seq := int64(0); ; {
		some, err := events(ctx, s.reader, "seq > ? AND "+indexed+" ORDER BY seq LIMIT 20", seq)
		if err != nil {
			return "", err
		}
		if len(some) == 0 {
			break
		}
		for _, e := range some {
			n, what, err := s.eventFault(ctx, e)
			if what != "" || err != nil {
				return what, err
			}
			want += n
			seq = e.Seq
		}
	}
	have := 0
	err := s.reader.QueryRowContext(ctx, "SELECT count(*) FROM chunk").Scan(&have)
	if err == nil && have != want {
		return fmt.Sprintf("it has %d passages and the events %d", have, want), nil
	}
	return "", err
}

// eventFault compares the passages of e with those that the index has of it,
// and counts them.
func (s *Store) eventFault(ctx context.Context, e Event) (n int, what string, err error) {
	want, err := passagesOf(ctx, s.reader, e)
	if err != nil {
		return 0, "", err
	}
	rows, err := s.reader.QueryContext(ctx, passageColumns+"seq = ? ORDER BY id", e.Seq)
	if err != nil {
		return 0, "", err
	}
	defer rows.Close()
	var have []indexedPassage
	for rows.Next() {
		p, err := scanPassage(rows)
		if err != nil {
			return 0, "", err
		}
		have = append(have, p)
	}
	if !slices.Equal(have, want) {
		what = fmt.Sprintf("event %d of session %q is not in it as it was written", e.Seq, e.Session)
	}
	return len(want), what, rows.Err()
}

// sampleIndex reports whether a passage, of the newest and of some others, is
// not of the event that it is said to be of.
func (s *Store) sampleIndex(ctx context.Context, enough time.Time) (bad bool, err error) {
	var lo, hi int64
	err = s.reader.QueryRowContext(ctx,
		"SELECT coalesce((SELECT min(id) FROM chunk), 0), coalesce((SELECT max(id) FROM chunk), 0)").Scan(&lo, &hi)
	for i := 0; i < samples && err == nil && !bad && lo < hi; i++ {
		id := hi
		if i > 0 {
			id = lo + rand.Int64N(hi-lo+1)
			if time.Now().After(enough) {
				break
			}
		}
		bad, err = strange(ctx, s.reader, id)
	}
	return bad, err
}

// strange reports whether the first passage from id on is not of its event.
func strange(ctx context.Context, db interface {
	queryer
	rower
}, id int64) (bool, error) {
	seq := int64(0)
	err := db.QueryRowContext(ctx, "SELECT id, seq FROM chunk WHERE id >= ? ORDER BY id LIMIT 1", id).Scan(&id, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	have, err := scanPassage(db.QueryRowContext(ctx, passageColumns+"id = ?", id))
	if err != nil {
		return false, err
	}
	found, err := events(ctx, db, "seq = ?", seq)
	if err != nil || len(found) == 0 {
		return len(found) == 0, err
	}
	if d, ok, err := documentOf(found[0]); !d.note { // the usual case, without making all its passages
		return !ok || !d.holds(found[0].Session, have), err
	}
	want, err := passagesOf(ctx, db, found[0])
	return !slices.Contains(want, have), err
}

// holds reports whether the lines that p names have its text.
func (d document) holds(session string, p indexedPassage) bool {
	text := ""
	if p.first > 0 && p.first <= p.last && p.last <= len(d.text) {
		text = storable(strings.Join(d.text[p.first-1:p.last], "\n"))
	}
	return p == indexedPassage{session, d.ref, storable(cut(d.head, maxHead)), text, d.note, p.first, p.last}
}
