//go:build linux

package memory

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// Fault 18 and 37: what is there belongs to somebody else, or others could have
// written into it. Nothing is opened then, and the command that mends it is told.
func TestOwnersAndModes(t *testing.T) {
	path := filled(t, 1)
	for _, c := range []struct {
		name string
		mode os.FileMode
		want string // "": it is tightened, and used
	}{
		{"", 0o777, "chmod 700"}, {"", 0o770, "chmod 700"}, {"", 0o1777, "chmod 700"}, {"", 0o755, ""}, {"", 0o711, ""},
		{"tether.db", 0o666, "chmod 600"}, {"tether.db", 0o620, "chmod 600"}, {"tether.db", 0o644, ""}, {"tether.db", 0o640, ""},
		{"tether.db-wal", 0o666, "chmod 600"}, {"tether.db-journal", 0o606, "chmod 600"}, {"tether.db-shm", 0o622, "chmod 600"},
	} {
		t.Run(fmt.Sprintf("%s %04o", c.name, c.mode), func(t *testing.T) {
			there := copyState(t, path)
			file := filepath.Join(filepath.Dir(there), c.name)
			if f, err := os.OpenFile(file, os.O_CREATE, 0o600); err == nil && c.name != "" {
				f.Close()
			}
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), there)
			if c.want != "" {
				fails(t, err, file+" can be written by other users", fmt.Sprintf("mode %04o", c.mode.Perm()), c.want+" "+file, "TETHER_STATE")
				if r, err := Inspect(t.Context(), there); err != nil || !r.Has(PartModes) {
					t.Errorf("fsck: %+v, %v", r, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("not tightened: %v, %v", info.Mode(), err)
			}
		})
	}
}

// Fault 37: a folder without a store in it is made ours, whoever could write
// there before.
func TestEmptyFolder(t *testing.T) {
	path := temp(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	at(t, path)
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

// Fault 37: another owner. Root is refused like everybody else; who is not root
// tries a folder of root's.
func TestForeignOwner(t *testing.T) {
	path := filled(t, 1)
	if os.Geteuid() != 0 {
		_, err := Open(t.Context(), "/tmp/tether.db")
		fails(t, err, "/tmp belongs to user 0 and this is user", "chown -R")
		return
	}
	for _, name := range []string{"", "tether.db", "tether.db-wal"} {
		there := copyState(t, path)
		file := filepath.Join(filepath.Dir(there), name)
		if f, err := os.OpenFile(file, os.O_CREATE, 0o600); err == nil && name != "" {
			f.Close()
		}
		if err := os.Chown(file, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), there)
		fails(t, err, file+" belongs to user 4711 and this is user 0", "chown -R 0 "+filepath.Dir(there))
	}
}

// The files that are made are nobody else's, whatever the umask.
func TestMadeModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := temp(t)
	s := at(t, path)
	add(t, s, "a", "x", 1)
	if _, err := s.Lock("a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(filepath.Dir(path), func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen < 9 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// A network file system is refused, unless the user takes the risk.
func TestNetworkFileSystem(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x517b: "SMB", 0x65735546: "FUSE", 0x01021997: "9P",
		0x5346414f: "AFS", 0x00c36400: "Ceph", 0x0bd00bd0: "Lustre",
		0xef53: "", 0x01021994: "", 0x9123683e: "", 0x58465342: "", 0x794c7630: "", 0x2fc12fc1: "", // ext4, tmpfs, btrfs, XFS, overlay, ZFS
	} {
		there := func(s *Store) { s.statfs = func(string) (uint32, error) { return magic, nil } }
		path := temp(t)
		s, err := Open(t.Context(), path, there)
		if want == "" {
			if err != nil {
				t.Errorf("%#x: %v", magic, err)
				continue
			}
			s.Close()
			continue
		}
		fails(t, err, "network file system ("+want+")", "TETHER_STATE", "TETHER_STATE_ANYWHERE=1")
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the file was made", want)
		}
		forced, err := Open(t.Context(), path, there, AnyFileSystem())
		if err != nil {
			t.Errorf("%s, forced: %v", want, err)
			continue
		}
		forced.Close()
	}
	if kind, err := fileSystem(t.TempDir()); err != nil || kind == 0 || remote[kind] != "" {
		t.Errorf("here: %#x, %v", kind, err)
	}
}

// dieEnv is at which statement of a migration the process dies.
const dieEnv = "TETHER_TEST_DIE"

func init() { roles["migrate"] = roleMigrate }

// roleMigrate brings a store to the newest schema and dies at a statement, or
// after the last one and before the commit.
func roleMigrate(args []string) error {
	left := 0
	fmt.Sscan(os.Getenv(dieEnv), &left)
	die := func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		if left--; left == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return int64(0), nil
	}
	if err := sqlite.RegisterScalarFunction("tether_die", 0, die); err != nil {
		return err
	}
	s := newStore(args[0], nil)
	name, err := s.take()
	if err != nil {
		return err
	}
	if s.writer, err = connect(name, "journal_mode(WAL)"); err != nil {
		return err
	}
	files, err := migrations.ReadDir("migration")
	if err != nil {
		return err
	}
	for {
		have, err := s.step(context.Background(), len(files), func(have int) ([]byte, error) {
			text, err := migrations.ReadFile("migration/" + files[have].Name())
			return []byte(mined(string(text))), err
		})
		if err != nil || have == len(files) {
			return err
		}
	}
}

// mined is a script with a place to die behind each of its statements.
func mined(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		b.WriteString(line)
		if !strings.HasPrefix(line, "--") && strings.HasSuffix(strings.TrimRight(line, "\n"), ";") {
			b.WriteString("SELECT tether_die();\n")
		}
	}
	return b.String()
}

// Fault 20: a crash at each statement of each schema change.
func TestCrashInMigration(t *testing.T) {
	files, err := migrations.ReadDir("migration")
	if err != nil {
		t.Fatal(err)
	}
	schema := map[int]string{} // of each version, as it should be
	statements := 0
	whole := temp(t)
	os.MkdirAll(filepath.Dir(whole), 0o700)
	for i, file := range files {
		text, err := migrations.ReadFile("migration/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		statements += strings.Count(mined(string(text)), "tether_die")
		edit(t, whole, string(text), fmt.Sprintf("PRAGMA user_version = %d", i+1))
		schema[i+1] = schemaOf(t, whole, i+1)
	}
	for n := 1; n <= statements; n++ {
		path := temp(t)
		t.Setenv(dieEnv, fmt.Sprint(n))
		c := start(t, "migrate", path)
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("statement %d: %v", n, err)
		}
		version := 0
		db, err := sql.Open("sqlite", path)
		if err == nil {
			err = db.QueryRow("PRAGMA user_version").Scan(&version)
			db.Close()
		}
		if err != nil || version >= len(files) {
			t.Fatalf("statement %d: version %d, %v", n, version, err)
		}
		if got := schemaOf(t, path, version); got != schema[version] {
			t.Errorf("statement %d: between two schemas, version %d:\n%s", n, version, got)
		}
		s := at(t, path)
		add(t, s, "a", "x", 1)
		sound(t, s, 1)
		s.Close()
		if got := schemaOf(t, path, len(files)); got != schema[len(files)] {
			t.Errorf("statement %d: the rest was not made:\n%s", n, got)
		}
	}
	t.Logf("%d statements in %d steps", statements, len(files))
}

// schemaOf is the text of a schema, which must have that version.
func schemaOf(t *testing.T, path string, version int) (text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got := 0
	err = errors.Join(db.QueryRow("PRAGMA user_version").Scan(&got),
		db.QueryRow("SELECT coalesce(group_concat(name || ': ' || sql, char(10)), '') FROM (SELECT * FROM sqlite_schema ORDER BY name)").Scan(&text))
	if err != nil || got != version {
		t.Fatalf("version %d, %v; want %d", got, err, version)
	}
	return text
}

// Fault 20: a newer schema is refused by every way to open a store, and not
// touched.
func TestNewerSchemaEverywhere(t *testing.T) {
	path := filled(t, 1)
	edit(t, path, "PRAGMA user_version = 99")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	know, err := newestSchema()
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() error{
		"open":    func() error { _, err := Open(t.Context(), path); return err },
		"read":    func() error { _, err := OpenReadOnly(t.Context(), path); return err },
		"inspect": func() error { _, err := Inspect(t.Context(), path); return err },
		"repair":  func() error { _, err := Repair(t.Context(), path); return err },
	} {
		err := open()
		if got, ok := errors.AsType[*SchemaError](err); !ok || *got != (SchemaError{Have: 99, Know: know}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v", err)
	}
}

// Fault 21: the clock jumps. Order and locks do not follow it.
func TestClockJumps(t *testing.T) {
	path := temp(t)
	s := at(t, path)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s.SetClock(func() time.Time { return now })
	var want []string
	for _, jump := range []time.Duration{0, 24 * time.Hour, -48 * time.Hour, 24 * time.Hour} {
		now = now.Add(jump)
		session, err := s.NewSession(t.Context(), fmt.Sprint("task ", jump), "m")
		if err != nil {
			t.Fatal(err)
		}
		want = append([]string{session.ID}, want...)
		l, err := s.Lock(session.ID)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(-jump)
		if _, err := s.Lock(session.ID); err == nil {
			t.Error("the lock was lost by a jump")
		}
		now = now.Add(jump)
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	all, err := s.Sessions(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, session := range all {
		if session.ID != want[i] {
			t.Errorf("place %d has %s, want %s: newest first is by number, not by time", i, session.ID, want[i])
		}
	}
	if newest, err := s.Session(t.Context(), ""); err != nil || newest.ID != want[0] {
		t.Errorf("the newest is %s, %v", newest.ID, err)
	}
	sound(t, s, 4)
	s.Close()
	if r, err := Inspect(t.Context(), path); err != nil || len(r.Problems) > 0 {
		t.Errorf("fsck: %+v, %v", r, err)
	}
}
