package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Session is one task and what came of it, as its events tell.
type Session struct {
	ID      string    // such as "20260102-150405-k7qa"; sorts by time
	Task    string    // as the user wrote it
	Model   string    // the one that ran, else as the user or the config named it
	Started time.Time // UTC
	Stop    string    // "stop" of the stop event of its newest run (DESIGN 8); "" while there is none
	Exit    int       // "exit" of that event
	End     string    // body of that event
	From    string    // what it was copied from, such as "20260102-150405-k7qa@3"; "" for its own beginning
}

// NewSession commits the start event of a new session and returns it.
func (s *Store) NewSession(ctx context.Context, task, model string) (Session, error) {
	id := s.newID()
	e, err := s.Append(ctx, id, KindStart, started{Task: task, Model: model})
	return Session{ID: id, Task: task, Model: model, Started: e.At}, err
}

func (s *Store) newID() string {
	return s.now().UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:4])
}

type started struct {
	Task  string `json:"task"`
	Model string `json:"model"`
	From  string `json:"from,omitempty"`
}

// Session returns the session whose id is id, or is the only one to begin with
// it; "" is the newest one. If there is none the error wraps ErrNotFound.
func (s *Store) Session(ctx context.Context, id string) (Session, error) {
	limit := 2 // enough to see that a prefix is not enough
	if id == "" {
		limit = 1
	}
	found, err := s.sessions(ctx, "substr(session, 1, length(?1)) = ?1", id, limit)
	switch {
	case err != nil:
		return Session{}, err
	case len(found) == 0:
		if id == "" {
			return Session{}, fmt.Errorf("the newest session: %w, there is none here yet; start one: tether run", ErrNotFound)
		}
		return Session{}, fmt.Errorf("session %q: %w; list them with: tether ls", id, ErrNotFound)
	case len(found) > 1:
		return Session{}, fmt.Errorf("session %q: more than one begins so; list them with: tether ls", id)
	}
	return found[0], nil
}

// Sessions returns at most limit sessions, newest first; a limit of 0 or less
// is all of them.
func (s *Store) Sessions(ctx context.Context, limit int) ([]Session, error) {
	if limit <= 0 {
		limit = -1
	}
	return s.sessions(ctx, "?1 IS NOT NULL", "", limit)
}

// sessions reads the start events that where, with the argument ?1, selects.
func (s *Store) sessions(ctx context.Context, where, arg string, limit int) ([]Session, error) {
	// A run that was taken up again has ended only if its own stop is there.
	rows, err := s.reader.QueryContext(ctx, `SELECT session, at, body, (
		SELECT CASE kind WHEN 'stop' THEN body END FROM event stop
		WHERE kind IN ('stop', 'resume') AND stop.session = start.session ORDER BY seq DESC LIMIT 1)
		FROM event start WHERE kind = 'start' AND `+where+` ORDER BY seq DESC LIMIT ?2`, arg, limit)
	if err != nil {
		return nil, s.explain("list the sessions of", err)
	}
	defer rows.Close()
	var all []Session
	for rows.Next() {
		one, err := scanSession(rows)
		if err != nil {
			return nil, s.explain("list the sessions of", err)
		}
		all = append(all, one)
	}
	return all, s.explain("list the sessions of", rows.Err())
}

func scanSession(rows *sql.Rows) (Session, error) {
	var one Session
	var at int64
	var start string
	var stop sql.NullString
	if err := rows.Scan(&one.ID, &at, &start, &stop); err != nil {
		return one, err
	}
	one.Started = time.Unix(0, at).UTC()
	var body struct {
		started
		Stop string
		Exit int
	}
	// A start or stop event of another shape is shown with what it has.
	_ = json.Unmarshal([]byte(start), &body)
	if stop.Valid {
		one.End = stop.String
		named := body.Model
		_ = json.Unmarshal([]byte(one.End), &body)
		body.Model = cmp.Or(body.Model, named) // a run that could not begin ends without one
	}
	one.Task, one.Model, one.From, one.Stop, one.Exit = body.Task, body.Model, body.From, body.Stop, body.Exit
	return one, nil
}
