package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// The kinds of events that the store itself reads. Any other word is a kind
// too, with a body of the caller's own.
const (
	KindStart       = "start"       // body: {"task", "model", "from"}; made by NewSession and Adopt
	KindStop        = "stop"        // body: {"stop", "exit"} and what else the harness says
	KindObservation = "observation" // body: an Observation; made by Observe
	KindNote        = "note"        // body: {"key", "text"}; made by Remember
)

// maxBody is the largest body of an event in bytes: a task of a megabyte and
// an output of 128 KiB are far below, and a window is read back as a whole.
const maxBody = 16 << 20

// An Event is one line of the log. It never changes.
type Event struct {
	Seq     int64           // 1, 2, 3 … over all sessions of the store, without gaps
	Session string          // "" for what belongs to no session
	Kind    string          // one word
	At      time.Time       // UTC; for people, the order is Seq
	Body    json.RawMessage // one JSON value, at most 16 MiB
}

// Append commits an event and returns it; body is anything that encoding/json
// can encode. When it returns nil the event is on the disk, and in the same
// transaction what it says can be found (Search).
//
// Secrets (SetSecrets) are taken out before. If the disk is full the end of a
// session is kept nevertheless, in room that was set aside for it.
//
// A cancelled ctx is an error like any other: to record an interruption, pass
// context.WithoutCancel(ctx).
func (s *Store) Append(ctx context.Context, session, kind string, body any) (Event, error) {
	raw, err := encode(body)
	if err == nil {
		raw, err = s.redact(raw)
	}
	if err != nil {
		return Event{}, s.explain("encode "+kind+" for", err)
	}
	e := Event{Session: session, Kind: kind, Body: raw}
	add := func() error {
		return s.write(ctx, "append "+kind+" to", func(tx *sql.Tx) error { return s.add(ctx, tx, &e) })
	}
	if kind == KindStart && s.file != nil {
		s.makeBallast() // the one of Open may have been used since
	}
	err = add()
	if kind == KindStop && isFull(err) && s.dropBallast() {
		err = add()
	}
	return e, err
}

// add gives e its place at the end of the log, within tx.
func (s *Store) add(ctx context.Context, tx *sql.Tx, e *Event) error {
	var last int64
	prev := []byte{}
	err := tx.QueryRowContext(ctx, "SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").Scan(&last, &prev)
	if err != nil && err != sql.ErrNoRows {
		return err
	}
	e.Seq, e.At = last+1, time.Unix(0, s.now().UnixNano()).UTC() // as it is read back
	_, err = put(ctx, tx, prev, *e)
	return err
}

// put adds e behind an event with the hash prev, with the number and the time
// that it has, and returns its hash.
func put(ctx context.Context, tx *sql.Tx, prev []byte, e Event) ([]byte, error) {
	sum := e.sum(prev)
	_, err := tx.ExecContext(ctx, "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)",
		e.Seq, e.Session, e.Kind, e.At.UnixNano(), string(e.Body), prev, sum)
	if err != nil {
		return nil, err
	}
	return sum, index(ctx, tx, e)
}

// sum is the hash that stands beside e: of everything in its row but itself.
// Each part is preceded by its length, so that no two rows have the same bytes.
func (e *Event) sum(prev []byte) []byte {
	h := sha256.New()
	part := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	part(prev)
	part(binary.BigEndian.AppendUint64(nil, uint64(e.Seq)))
	part([]byte(e.Session))
	part([]byte(e.Kind))
	part(binary.BigEndian.AppendUint64(nil, uint64(e.At.UnixNano())))
	part(e.Body)
	return h.Sum(nil)
}

// encode keeps <, > and & as they are: bodies are shell lines and outputs.
func encode(body any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, err
	}
	if b.Len() > maxBody {
		return nil, fmt.Errorf("%d bytes, at most %d can be kept; shorten it", b.Len(), maxBody)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Events returns the events of a session in order; a session that is not there
// has none.
func (s *Store) Events(ctx context.Context, session string) ([]Event, error) {
	events, err := events(ctx, s.reader, "session = ? ORDER BY seq", session)
	return events, s.explain("read", err)
}

// A queryer is a pool or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func events(ctx context.Context, db queryer, where string, args ...any) ([]Event, error) {
	rows, err := db.QueryContext(ctx, "SELECT seq, session, kind, at, body FROM event WHERE "+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Event
	for rows.Next() {
		var e Event
		var at int64
		if err := rows.Scan(&e.Seq, &e.Session, &e.Kind, &at, (*[]byte)(&e.Body)); err != nil {
			return nil, err
		}
		e.At = time.Unix(0, at).UTC()
		all = append(all, e)
	}
	return all, rows.Err()
}
