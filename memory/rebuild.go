package memory

import (
	"context"
	"database/sql"
)

// indexSchema is the migration that makes the index. A later one that makes it
// anew takes its place here.
const indexSchema = 3

// indexed are the kinds of events that index reads.
const indexed = "kind IN ('observation', 'note', 'forget', 'stop')"

// Rebuild throws the full-text index away and makes it again from the log.
// Nothing is lost if it is interrupted: until it is done, the old index stays.
// It takes about a second for 10,000 chunks, and writers wait for it.
func (s *Store) Rebuild(ctx context.Context) error {
	script, err := migrations.ReadFile("migration/003_search.sql")
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
		some, err := events(ctx, tx, "seq > ? AND "+indexed+" ORDER BY seq LIMIT 20", seq)
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
