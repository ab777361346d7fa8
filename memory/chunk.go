package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

// passageBytes bounds a passage: at most 200 tokens and, cut at paragraphs,
// about 150. A hit should be about its own lines, ranking needs pieces of a
// like length, and a model reads one for the price of a short answer.
const passageBytes = 800

// maxHead is how much of a command is searched with each passage of its output.
const maxHead = 200

// A passage is a piece of a text: its lines first to last, counted from 1.
type passage struct {
	first, last int
	text        string
}

// passages cuts lines into pieces of at most passageBytes, before a blank line
// if one is in the second half, else between two lines. Blank pieces are left
// out, and blank lines around a piece are not part of it.
func passages(lines []string) []passage {
	var all []passage
	for from := 0; from < len(lines); {
		to := passageEnd(lines, from)
		if p, ok := trimmed(lines, from, to); ok {
			all = append(all, p)
		}
		from = to
	}
	return all
}

// passageEnd returns the line behind the passage that begins at from.
func passageEnd(lines []string, from int) int {
	size, blank := 0, 0
	for i := from; i < len(lines); i++ {
		size += len(lines[i]) + 1
		switch {
		case size > passageBytes && i > from && blank > 0:
			return blank
		case size > passageBytes && i > from:
			return i
		case i > from && size > passageBytes/2 && strings.TrimSpace(lines[i]) == "":
			blank = i
		}
	}
	return len(lines)
}

// trimmed is the passage of lines[from:to] without blank lines around it.
func trimmed(lines []string, from, to int) (passage, bool) {
	for from < to && strings.TrimSpace(lines[from]) == "" {
		from++
	}
	for to > from && strings.TrimSpace(lines[to-1]) == "" {
		to--
	}
	return passage{from + 1, to, strings.Join(lines[from:to], "\n")}, from < to
}

// A document is what an event gives to the index.
type document struct {
	ref  string // what recall calls it
	head string // what it came from
	text []string
	note bool
}

// documentOf returns what is searched of e, and false if nothing is. What the
// command mem printed is in the index already, under the name that it has.
func documentOf(e Event) (document, bool, error) {
	switch e.Kind {
	case KindNote:
		n, err := noteOf(e)
		return document{ref: n.Key, head: n.Key, text: Lines(n.Text), note: true}, true, err
	case KindObservation:
		var o Observation
		if err := json.Unmarshal(e.Body, &o); err != nil {
			return document{}, false, fmt.Errorf("observation %d: %w", e.Seq, err)
		}
		ours := o.Cmd == "mem" || strings.HasPrefix(o.Cmd, "mem ")
		return document{ref: o.ID, head: o.Cmd, text: o.Lines()}, !ours, nil
	case KindStop:
		o, err := reportOf(e)
		return document{ref: o.ID, head: o.Cmd, text: o.Lines()}, o.Output != "", err
	}
	return document{}, false, nil
}

// passages returns the pieces of d; one without a line can still be found by
// its head.
func (d document) passages() []passage {
	if all := passages(d.text); len(all) > 0 {
		return all
	}
	return []passage{{}}
}

// index brings the index up to date with e, within the transaction that adds
// e: a crash leaves both or none.
func index(ctx context.Context, tx *sql.Tx, e Event) error {
	if e.Kind == KindNote || e.Kind == kindForget {
		if err := unindex(ctx, tx, e); err != nil {
			return err
		}
	}
	d, ok, err := documentOf(e)
	if err != nil || !ok {
		return err
	}
	id := int64(0)
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM chunk").Scan(&id); err != nil {
		return err
	}
	head := storable(cut(d.head, maxHead))
	for _, p := range d.passages() {
		id++
		text := storable(p.text)
		_, err := tx.ExecContext(ctx, "INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			id, e.Seq, e.Session, d.note, d.ref, p.first, p.last, head, text)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO chunk_fts (rowid, head, text) VALUES (?, ?, ?)", id, head, text); err != nil {
			return err
		}
	}
	return nil
}

// unindex takes out the note that e, a note or the word that it is forgotten,
// puts an end to.
func unindex(ctx context.Context, tx *sql.Tx, e Event) error {
	n, err := noteOf(e)
	if err != nil {
		return err
	}
	old := `seq IN (SELECT seq FROM event WHERE kind IN ('note', 'forget') AND session = ?
		AND body ->> '$.key' = ? AND seq < ?)`
	args := []any{e.Session, n.Key, e.Seq}
	// An external content table is told what its row held.
	_, err = tx.ExecContext(ctx, "INSERT INTO chunk_fts (chunk_fts, rowid, head, text) SELECT 'delete', id, head, text FROM chunk WHERE "+old, args...)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM chunk WHERE "+old, args...)
	return err
}

// storable is text as it can be held: a string of SQLite ends at a NUL, and two
// other characters mark what matches in a snippet.
func storable(text string) string {
	return blanked.Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

var blanked = strings.NewReplacer("\x00", " ", "\x02", " ", "\x03", " ")
