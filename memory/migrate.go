package memory

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
)

// migrations holds the steps from one schema to the next: the first file makes
// schema 1, the second makes 2 of it. A file that was released never changes.
//
//go:embed migration/*.sql
var migrations embed.FS

// migrate brings the store to the newest schema, each step in a transaction
// of its own: a crash leaves one schema or the next, nothing between. The
// first transaction is also what finds out whether the store can be written.
func (s *Store) migrate(ctx context.Context) error {
	files, err := migrations.ReadDir("migration")
	if err != nil {
		return err
	}
	for {
		have, err := s.step(ctx, len(files), func(have int) ([]byte, error) {
			return migrations.ReadFile("migration/" + files[have].Name())
		})
		if err != nil || have == len(files) {
			return err
		}
	}
}

// newestSchema is the number of the last migration.
func newestSchema() (int, error) {
	files, err := migrations.ReadDir("migration")
	return len(files), err
}

// step makes at most one step and returns the schema that it found.
func (s *Store) step(ctx context.Context, know int, script func(have int) ([]byte, error)) (have int, err error) {
	tx, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return 0, err
	}
	switch {
	case have > know:
		return have, &SchemaError{Have: have, Know: know}
	case have == know:
		return have, nil
	}
	if have == 0 {
		if err := ownTables(ctx, tx); err != nil {
			return have, err
		}
	}
	text, err := script(have)
	if err != nil {
		return have, err
	}
	if err := apply(ctx, tx, have+1, string(text)); err != nil {
		return have, err
	}
	if have+1 == indexSchema { // of what was there before
		if err := reindex(ctx, tx); err != nil {
			return have, err
		}
	}
	return have, tx.Commit()
}

// ownTables refuses a database that has tables and no schema: nothing is written
// into what belongs to another program, or has lost its number.
func ownTables(ctx context.Context, db rower) error {
	tables := 0
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
	if err == nil && tables > 0 {
		err = &DamageError{Cause: "the tables in it are those of another program, or its schema has lost its number"}
	}
	return err
}

func apply(ctx context.Context, tx *sql.Tx, version int, script string) error {
	script += fmt.Sprintf("\nPRAGMA user_version = %d;", version)
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return fmt.Errorf("make schema %d: %w", version, err)
	}
	return nil
}
