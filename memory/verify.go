package memory

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Verify reads the whole log and checks its hash chain. It returns how many
// events are sound, counted from the first; the error wraps a *ChainError that
// names the first one that was changed, added or taken away. It cannot see
// that the newest events are missing: nothing in the file points at them.
func (s *Store) Verify(ctx context.Context) (sound int64, err error) {
	sound, err = s.verify(ctx)
	if _, bad := errors.AsType[*ChainError](err); !bad && damages(err) {
		err = errors.Join(&ChainError{sound + 1, "its page or its table is damaged"}, err)
	}
	return sound, s.explain("check", err)
}

func (s *Store) verify(ctx context.Context) (sound int64, err error) {
	rows, err := s.reader.QueryContext(ctx, chain+" ORDER BY seq")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	last := []byte{}
	for rows.Next() {
		e, prev, hash, err := scanLink(rows)
		if err != nil {
			return sound, &ChainError{sound + 1, err.Error()}
		}
		if cause := e.fault(sound+1, last, prev, hash); cause != "" {
			return sound, &ChainError{sound + 1, cause}
		}
		last = hash
		sound++
	}
	return sound, rows.Err()
}

// chain selects what scanLink reads.
const chain = "SELECT seq, session, kind, at, CAST(body AS BLOB), prev_hash, hash FROM event"

// scanLink reads an event with what ties it to the one before it.
func scanLink(rows *sql.Rows) (e Event, prev, hash []byte, err error) {
	var at int64
	if err := rows.Scan(&e.Seq, &e.Session, &e.Kind, &at, (*[]byte)(&e.Body), &prev, &hash); err != nil {
		return e, nil, nil, fmt.Errorf("a value has the wrong type: %w", err)
	}
	e.At = time.Unix(0, at)
	return e, prev, hash, nil
}

// fault says what is wrong with e, which should have the number seq and stand
// behind an event with the hash last; "" if nothing is.
func (e *Event) fault(seq int64, last, prev, hash []byte) string {
	switch {
	case e.Seq != seq:
		return "it is missing"
	case !bytes.Equal(prev, last):
		return "it does not follow the one before it"
	case !bytes.Equal(e.sum(prev), hash):
		return "its hash does not fit"
	case !json.Valid(e.Body):
		return "its body is not JSON"
	}
	return ""
}
