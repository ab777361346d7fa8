package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// kindForget is an event that puts an end to a note; its body is {"key"}. What
// the note said stays in the log.
const kindForget = "forget"

// A Note is a text that one session keeps under a key.
type Note struct {
	Key  string
	Text string
	At   time.Time // UTC
}

// noteBody is the body of a note's event, and without the text of the one that
// ends it.
type noteBody struct {
	Key  string `json:"key"`
	Text string `json:"text,omitempty"`
}

// maxKey is the length of a key in bytes: it is shown on one line with the
// beginning of its note.
const maxKey = 60

// A KeyError says why a key cannot be one.
type KeyError struct{ Key, Cause string }

// Error names the key and the cause.
func (e *KeyError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.Cause) }

// taken matches what recall reads as something else than a key.
var taken = regexp.MustCompile(`^(obs|done)_\d+$`)

// checkKey returns a *KeyError if key is no key: one word, of no more than 60
// bytes, that is not the name of an observation or a report.
func checkKey(key string) error {
	switch {
	case key == "" || strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return &KeyError{strconv.Quote(key), "a key is one word"}
	case len(key) > maxKey:
		return &KeyError{cut(key, 20) + "…", fmt.Sprintf("a key has at most %d bytes", maxKey)}
	case taken.MatchString(key), strings.Contains(key, "/") && taken.MatchString(key[strings.LastIndexByte(key, '/')+1:]):
		return &KeyError{key, "that is the name of something that happened; take another key"}
	}
	return nil
}

// Remember commits a note of a session under key; one that is there is
// replaced. It is an error if the text is blank, and a *KeyError if key is no
// single word of at most 60 bytes or the name of an observation.
func (s *Store) Remember(ctx context.Context, session, key, text string) (Note, error) {
	if err := checkKey(key); err != nil {
		return Note{}, err
	}
	if strings.TrimSpace(text) == "" {
		return Note{}, errors.New("the note is empty; give it some text")
	}
	e, err := s.Append(ctx, session, KindNote, noteBody{key, text})
	if err != nil {
		return Note{}, err
	}
	return noteOf(e)
}

// Forget commits that a session keeps nothing under key any more. If it does
// not, the error wraps ErrNotFound.
func (s *Store) Forget(ctx context.Context, session, key string) error {
	if _, err := s.Note(ctx, session, key); err != nil {
		return err
	}
	_, err := s.Append(ctx, session, kindForget, noteBody{Key: key})
	return err
}

// Note returns what a session keeps under key. If there is nothing the error
// wraps ErrNotFound.
func (s *Store) Note(ctx context.Context, session, key string) (Note, error) {
	found, err := events(ctx, s.reader,
		"kind IN ('note', 'forget') AND session = ? AND body ->> '$.key' = ? ORDER BY seq DESC LIMIT 1", session, key)
	if err != nil {
		return Note{}, s.explain("recall "+key+" from", err)
	}
	if seq, ok := oldNote(key); ok && len(found) == 0 {
		if found, err = events(ctx, s.reader, "kind = 'note' AND session = '' AND seq = ?", seq); err != nil {
			return Note{}, s.explain("recall "+key+" from", err)
		}
	}
	if len(found) == 0 || found[0].Kind == kindForget {
		return Note{}, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	n, err := noteOf(found[0])
	return n, s.explain("recall "+key+" from", err)
}

// Notes returns all that a session keeps, oldest first.
func (s *Store) Notes(ctx context.Context, session string) ([]Note, error) {
	found, err := events(ctx, s.reader, `kind = 'note' AND session = ?1 AND seq IN (
		SELECT max(seq) FROM event WHERE kind IN ('note', 'forget') AND session = ?1 GROUP BY body ->> '$.key')
		ORDER BY seq`, session)
	if err != nil {
		return nil, s.explain("read the notes of", err)
	}
	var all []Note
	for _, e := range found {
		n, err := noteOf(e)
		if err != nil {
			return nil, s.explain("read the notes of", err)
		}
		all = append(all, n)
	}
	return all, nil
}

// oldNote is the event of a note of the time when notes had no key and belonged
// to all sessions, and are called after their event.
func oldNote(key string) (int64, bool) {
	digits, ok := strings.CutPrefix(key, "note_")
	seq, err := strconv.ParseInt(digits, 10, 64)
	return seq, ok && err == nil
}

// noteOf reads a note.
func noteOf(e Event) (Note, error) {
	var body noteBody
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return Note{}, fmt.Errorf("note %d: %w", e.Seq, err)
	}
	if body.Key == "" {
		body.Key = "note_" + strconv.FormatInt(e.Seq, 10)
	}
	return Note{Key: body.Key, Text: body.Text, At: e.At}, nil
}
