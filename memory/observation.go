package memory

import (
	"context"
	"encoding/json"
	"fmt"
)

// An Observation is what a model could see after one of its calls, in full:
// the window may show less of it.
type Observation struct {
	ID     string `json:"id"` // such as "obs_1"; the newest one counts if a session has two
	Cmd    string `json:"cmd"`
	Stdin  string `json:"stdin,omitempty"`
	Status int    `json:"status"`
	Output string `json:"output"`
}

// Observe commits an observation and indexes it, in one transaction.
func (s *Store) Observe(ctx context.Context, session string, o Observation) error {
	_, err := s.Append(ctx, session, KindObservation, o)
	return err
}

// Recall returns the observation of a session with that id. An id such as
// "note_7" is a note of any session: its text is the Output. If there is none
// the error wraps ErrNotFound.
func (s *Store) Recall(ctx context.Context, session, id string) (Observation, error) {
	if n, ok := noteID(id); ok {
		return s.recallNote(ctx, id, n)
	}
	o := Observation{}
	found, err := events(ctx, s.reader,
		"kind = 'observation' AND session = ? AND body ->> '$.id' = ? ORDER BY seq DESC LIMIT 1", session, id)
	if err != nil {
		return o, s.explain("recall "+id+" from", err)
	}
	if len(found) == 0 {
		return o, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	return o, s.explain("recall "+id+" from", json.Unmarshal(found[0].Body, &o))
}

func (s *Store) recallNote(ctx context.Context, id string, seq int64) (Observation, error) {
	found, err := events(ctx, s.reader, "kind = 'note' AND seq = ?", seq)
	if err != nil {
		return Observation{}, s.explain("recall "+id+" from", err)
	}
	if len(found) == 0 {
		return Observation{}, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	n, err := noteOf(found[0])
	return Observation{ID: id, Output: n.Text}, s.explain("recall "+id+" from", err)
}
