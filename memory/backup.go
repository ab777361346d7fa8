package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup writes a copy of the store into a new file (mode 0600), as it is at one
// moment, while others may go on writing. The copy is checked before it gets its
// name. A plain copy of the files would lack what is in the write-ahead log, or
// have half of it.
func (s *Store) Backup(ctx context.Context, file string) error {
	err := s.backup(ctx, file)
	if err != nil {
		return fmt.Errorf("back up state %s to %s: %w", s.path, file, err)
	}
	return nil
}

func (s *Store) backup(ctx context.Context, file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, errors.New("there is something of that name already; name a new file"))
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".backup-") // mode 0700: nobody reads it meanwhile
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	temp := filepath.Join(dir, filepath.Base(file))
	if err := s.vacuumInto(ctx, temp); err != nil {
		return err
	}
	r, err := Inspect(ctx, temp, AnyFileSystem())
	if err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("the copy is not sound: %s; see: tether fsck", r.Problems[0].What)
	}
	if err := os.Rename(temp, file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

// vacuumInto makes the copy and puts it on the disk.
func (s *Store) vacuumInto(ctx context.Context, temp string) error {
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	// It reads only, but query_only takes it for a write.
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if s.readOnly {
		if _, err := conn.ExecContext(ctx, "PRAGMA query_only = 0"); err != nil {
			return err
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA query_only = 1")
	}
	if _, err := conn.ExecContext(ctx, "VACUUM INTO ?", temp); err != nil {
		return err
	}
	return out.Sync()
}
