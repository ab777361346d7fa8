package memory

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"
)

// patience is how long a write waits for other processes. A commit takes a
// millisecond and making the index of a large store again some seconds: who has
// the lock for longer is halted or stuck.
const patience = 30 * time.Second

// errHeld is what is told after patience.
type errHeld struct {
	error
	holder string // "process 12 (tether)"; "" if unknown
	after  time.Duration
}

// Unwrap is SQLite's own error.
func (e *errHeld) Unwrap() error { return e.error }

// begin begins a transaction that writes. SQLite itself waits for the lock for
// some seconds, polling at fixed times; after that it is asked again at random
// ones, so that many waiting processes do not fall into step.
func (s *Store) begin(ctx context.Context) (*sql.Tx, error) {
	began := time.Now()
	for {
		tx, err := s.writer.BeginTx(ctx, nil)
		if sqliteCode(err) != sqliteBusy {
			return tx, err
		}
		if after := time.Since(began); after >= s.patience {
			return nil, &errHeld{err, s.holder(), after}
		}
		if err := wait(ctx, time.Duration(20+rand.IntN(180))*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// wait waits for d, or returns the reason that ctx ended for.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), context.Cause(ctx))
	}
}
