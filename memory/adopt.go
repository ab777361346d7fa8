package memory

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Record is an event with what proves its place in the log: Hash is that of
// the event itself, Prev that of the one before it in the store, which may be
// another session's.
type Record struct {
	Event
	Prev, Hash []byte
}

// Fault says what is wrong with r if its hash is not that of the rest of it;
// "" if it is.
func (r *Record) Fault() string { return r.fault(r.Seq, r.Prev, r.Prev, r.Hash) }

// recordJSON is a Record as a line of an export.
type recordJSON struct {
	Seq  int64           `json:"seq"`
	Kind string          `json:"kind"`
	At   time.Time       `json:"at"`
	Body json.RawMessage `json:"body"`
	Prev string          `json:"prev"` // hex
	Hash string          `json:"hash"` // hex; empty: it proves nothing
}

// MarshalJSON leaves the session out: it is the same for a whole export. The
// encoder has to have SetEscapeHTML(false), or the body is another one than was
// hashed.
func (r Record) MarshalJSON() ([]byte, error) {
	return encode(recordJSON{r.Seq, r.Kind, r.At, r.Body, hex.EncodeToString(r.Prev), hex.EncodeToString(r.Hash)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Record) UnmarshalJSON(line []byte) error {
	var j recordJSON
	if err := json.Unmarshal(line, &j); err != nil {
		return err
	}
	prev, err := hex.DecodeString(j.Prev)
	hash, err2 := hex.DecodeString(j.Hash)
	r.Event = Event{Seq: j.Seq, Kind: j.Kind, At: j.At.UTC(), Body: j.Body}
	r.Prev, r.Hash = prev, hash
	return errors.Join(err, err2)
}

// Records returns the events of a session, in order, with what proves them.
func (s *Store) Records(ctx context.Context, session string) ([]Record, error) {
	rows, err := s.reader.QueryContext(ctx, "SELECT seq, session, kind, at, body, prev_hash, hash FROM event WHERE session = ? ORDER BY seq", session)
	if err != nil {
		return nil, s.explain("read", err)
	}
	defer rows.Close()
	var all []Record
	for rows.Next() {
		var r Record
		var at int64
		if err := rows.Scan(&r.Seq, &r.Session, &r.Kind, &at, (*[]byte)(&r.Body), &r.Prev, &r.Hash); err != nil {
			return nil, s.explain("read", err)
		}
		r.At = time.Unix(0, at).UTC()
		all = append(all, r)
	}
	return all, s.explain("read", rows.Err())
}

// Adopt commits events as those of a new session, all of them or none. The
// first one is its start, and says from then on that it comes from from. The
// session has the name id if that is still free, and a new one otherwise. The
// events keep their times, and get new numbers.
func (s *Store) Adopt(ctx context.Context, id string, events []Event, from string) (Session, error) {
	var start started
	if len(events) == 0 || events[0].Kind != KindStart || json.Unmarshal(events[0].Body, &start) != nil {
		return Session{}, errors.New("the first event of a session is its start, and this one is not")
	}
	start.From = from
	first, err := encode(start)
	if err != nil {
		return Session{}, err
	}
	err = s.write(ctx, "add a session to", func(tx *sql.Tx) error {
		if id, err = s.freeID(ctx, tx, id); err != nil {
			return err
		}
		return s.adopt(ctx, tx, id, first, events)
	})
	return Session{ID: id, Task: start.Task, Model: start.Model, Started: events[0].At, From: from}, err
}

// freeID is id, or a new name if there are events of that session.
func (s *Store) freeID(ctx context.Context, tx *sql.Tx, id string) (string, error) {
	var taken bool
	err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM event WHERE session = ?)", id).Scan(&taken)
	if taken || id == "" {
		return s.newID(), err
	}
	return id, err
}

// adopt puts the events at the end of the log.
func (s *Store) adopt(ctx context.Context, tx *sql.Tx, id string, first json.RawMessage, events []Event) error {
	var seq int64
	prev := []byte{}
	err := tx.QueryRowContext(ctx, "SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").Scan(&seq, &prev)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	for i, e := range events {
		if e.Session, e.Seq = id, seq+int64(i)+1; i == 0 {
			e.Body = first
		}
		if e.Body, err = s.redact(e.Body); err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
		if prev, err = put(ctx, tx, prev, e); err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	return nil
}
