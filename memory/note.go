package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Note is a text to be found again, in any session.
type Note struct {
	ID   int64 // the Seq of its event; a Hit and Recall call it "note_ID"
	Text string
	At   time.Time // UTC
}

// noteBody is the body of a note's event.
type noteBody struct {
	Text string `json:"text"`
}

// Add commits a note. An empty one is an error: it could never be found.
func (s *Store) Add(ctx context.Context, text string) (Note, error) {
	if strings.TrimSpace(text) == "" {
		return Note{}, errors.New("the note is empty; give it some text")
	}
	e, err := s.Append(ctx, "", KindNote, noteBody{text})
	if err != nil {
		return Note{}, err
	}
	return noteOf(e)
}

// Notes returns at most limit notes, newest first; a limit of 0 or less is all
// of them.
func (s *Store) Notes(ctx context.Context, limit int) ([]Note, error) {
	if limit <= 0 {
		limit = -1
	}
	found, err := events(ctx, s.reader, "kind = 'note' ORDER BY seq DESC LIMIT ?", limit)
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

func noteOf(e Event) (Note, error) {
	var body noteBody
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return Note{}, fmt.Errorf("note %d: %w", e.Seq, err)
	}
	return Note{ID: e.Seq, Text: body.Text, At: e.At}, nil
}

// noteRef and noteID turn the ID of a note into the id that a model uses and back.
func noteRef(id int64) string { return "note_" + strconv.FormatInt(id, 10) }

func noteID(ref string) (int64, bool) {
	digits, ok := strings.CutPrefix(ref, "note_")
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, ok && err == nil
}
