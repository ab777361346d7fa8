package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
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

// Lines returns the text of o as search counts it: the lines of its output,
// then those of its stdin, then those of a command too long for a heading.
func (o Observation) Lines() []string {
	all := append(Lines(o.Output), Lines(o.Stdin)...)
	if len(o.Cmd) > maxHead || strings.Contains(o.Cmd, "\n") {
		all = append(all, Lines(o.Cmd)...)
	}
	return all
}

// Observe commits an observation and indexes it, in one transaction.
func (s *Store) Observe(ctx context.Context, session string, o Observation) error {
	_, err := s.Append(ctx, session, KindObservation, o)
	return err
}

// Recall returns the observation of a session with that id, or the report with
// which the session was done under an id such as "done_7": the task is its Cmd.
// "k7qa/obs_3" is of another session, which is named by its ID, a beginning of
// it, or its last four letters. If there is none the error wraps ErrNotFound.
func (s *Store) Recall(ctx context.Context, session, id string) (Observation, error) {
	name := id
	if of, rest, other := strings.Cut(id, "/"); other {
		var err error
		if session, err = s.named(ctx, of); err != nil {
			return Observation{}, err
		}
		name = rest
	}
	where, args := "kind = 'observation' AND session = ? AND body ->> '$.id' = ?", []any{session, name}
	read := observationOf
	if seq, ok := reportSeq(name); ok {
		where, args, read = "kind = 'stop' AND session = ? AND seq = ?", []any{session, seq}, reportOf
	}
	found, err := events(ctx, s.reader, where+" ORDER BY seq DESC LIMIT 1", args...)
	if err != nil {
		return Observation{}, s.explain("recall "+id+" from", err)
	}
	if len(found) == 0 {
		return Observation{}, fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	o, err := read(found[0])
	return o, s.explain("recall "+id+" from", err)
}

// named returns the ID of the session that a model calls name.
func (s *Store) named(ctx context.Context, name string) (string, error) {
	found, err := s.sessions(ctx, "(substr(session, 1, length(?1)) = ?1 OR substr(session, -length(?1) - 1) = '-' || ?1)", name, 2)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0 || name == "":
		return "", fmt.Errorf("session %s: %w", name, ErrNotFound)
	case len(found) > 1:
		return "", fmt.Errorf("session %s: %w, for there is more than one; write more of its name, such as %s", name, ErrNotFound, found[0].ID)
	}
	return found[0].ID, nil
}

func observationOf(e Event) (o Observation, err error) {
	err = json.Unmarshal(e.Body, &o)
	return o, err
}

// reportOf is the report in a stop event. Its Output is empty if there is none,
// as in a stop event of another shape.
func reportOf(e Event) (Observation, error) {
	var body struct{ Task, Report string }
	_ = json.Unmarshal(e.Body, &body)
	return Observation{ID: "done_" + strconv.FormatInt(e.Seq, 10), Cmd: body.Task, Output: body.Report}, nil
}

// reportSeq is the event that a report's id stands for.
func reportSeq(id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, "done_")
	seq, err := strconv.ParseInt(digits, 10, 64)
	return seq, ok && err == nil
}
