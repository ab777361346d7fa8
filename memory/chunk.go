package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// chunkBytes is the size of an indexed piece: a hit in a long output should be
// about its own lines, and ranking needs pieces of a like length.
const chunkBytes = 1000

// index adds the chunks of e, within the transaction that adds e. Only what
// was observed or noted is searched.
func index(ctx context.Context, tx *sql.Tx, e Event) error {
	ref, text, err := indexed(e)
	if err != nil || ref == "" {
		return err
	}
	step, edge := 1, "max"
	if e.Kind == KindNote {
		step, edge = -1, "min"
	}
	id := 0
	if err := tx.QueryRowContext(ctx, "SELECT "+edge+"(0, coalesce("+edge+"(id), 0)) FROM chunk").Scan(&id); err != nil {
		return err
	}
	for _, piece := range split(text) {
		id += step
		if err := insertChunk(ctx, tx, id, e.Session, ref, piece); err != nil {
			return err
		}
	}
	return nil
}

// indexed is the id under which e is found, "" if it is not, and the text of
// which its chunks are pieces.
func indexed(e Event) (ref, text string, err error) {
	switch e.Kind {
	case KindNote:
		n, err := noteOf(e)
		return noteRef(n.ID), n.Text, err
	case KindObservation:
		var o Observation
		if err := json.Unmarshal(e.Body, &o); err != nil {
			return "", "", fmt.Errorf("observation %d: %w", e.Seq, err)
		}
		return o.ID, strings.ReplaceAll(strings.Join([]string{o.Cmd, o.Stdin, o.Output}, "\n"), "\x00", " "), nil
	}
	return "", "", nil
}

func insertChunk(ctx context.Context, tx *sql.Tx, id int, session, ref, text string) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO chunk VALUES (?, ?, ?, ?)", id, session, ref, text); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO chunk_fts (rowid, text) VALUES (?, ?)", id, text)
	return err
}

// split cuts text into chunks of about chunkBytes, at the end of a line if one
// is in the second half, else between two characters. Blank ones are dropped.
func split(text string) []string {
	var all []string
	for text != "" {
		n := min(len(text), chunkBytes)
		if n < len(text) {
			if nl := strings.LastIndexByte(text[:n], '\n'); nl >= n/2 {
				n = nl + 1
			}
			for n > 1 && !utf8.RuneStart(text[n]) {
				n--
			}
		}
		if strings.TrimSpace(text[:n]) != "" {
			all = append(all, text[:n])
		}
		text = text[n:]
	}
	return all
}

// Rebuild throws the full-text index away and makes it again from the log.
// Nothing is lost if it is interrupted. It takes about a second for 10,000
// chunks, and writers wait for it.
func (s *Store) Rebuild(ctx context.Context) error {
	script, err := migrations.ReadFile("migration/002_chunk.sql")
	if err != nil {
		return err
	}
	return s.write(ctx, "index", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, string(script)); err != nil {
			return err
		}
		return reindex(ctx, tx)
	})
}

// reindex reads a few events at a time, because a body may be large.
func reindex(ctx context.Context, tx *sql.Tx) error {
	for seq := int64(0); ; {
		some, err := events(ctx, tx,
			"seq > ? AND kind IN ('observation', 'note') ORDER BY seq LIMIT 20", seq)
		if err != nil || len(some) == 0 {
			return err
		}
		for _, e := range some {
			if err := index(ctx, tx, e); err != nil {
				return err
			}
			seq = e.Seq
		}
	}
}
