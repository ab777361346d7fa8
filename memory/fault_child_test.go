package memory

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// roleEnv makes the test binary another process that uses a store. What it says
// is a line a time, so that a test can wait for it.
const roleEnv = "TETHER_TEST_ROLE"

// roles are what such a process can do with its arguments.
var roles = map[string]func(args []string) error{
	"append":   roleAppend,
	"hold":     roleHold,
	"try":      roleTry,
	"lock":     roleLock,
	"rebuild":  roleRebuild,
	"search":   roleSearch,
	"remember": roleRemember,
}

// roleAppend appends N events to a session, each after a mark, and then waits
// for the end of its input with the store open.
func roleAppend(args []string) error {
	path, session, n := args[0], args[1], 0
	fmt.Sscan(args[2], &n)
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := s.Append(ctx, session, "x", fmt.Sprintf("%s number %d %s", session, i, strings.Repeat(".", 80))); err != nil {
			return err
		}
		if len(args) > 3 {
			if err := s.Mark(ctx); err != nil {
				return err
			}
		}
		fmt.Println(i)
	}
	fmt.Println("done")
	if len(args) > 3 {
		io.Copy(io.Discard, os.Stdin)
	}
	return s.Close()
}

// roleHold keeps the write lock of the database until the end of its input.
func roleHold(args []string) error {
	s, err := Open(context.Background(), args[0])
	if err != nil {
		return err
	}
	tx, err := s.writer.Begin()
	if err != nil {
		return err
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	return tx.Rollback()
}

// roleTry says whether the write lock can be had.
func roleTry(args []string) error {
	db, err := connect(address(args[0]), "journal_mode(WAL)")
	if err != nil {
		return err
	}
	if _, err := db.Exec("PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	tx, err := db.Begin()
	if sqliteCode(err) == sqliteBusy {
		fmt.Println("busy")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("free")
	return tx.Rollback()
}

// roleLock takes a session and keeps it until the end of its input.
func roleLock(args []string) error {
	s, err := Open(context.Background(), args[0])
	if err != nil {
		return err
	}
	if _, err := s.Lock(args[1]); err != nil {
		return err
	}
	fmt.Println("locked")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// A child is such a process.
type child struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// start starts a process in a role. It is killed at the end of the test.
func start(t testing.TB, role string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], args...)}
	c.Env = append(os.Environ(), roleEnv+"="+role)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c
}

// says waits for a line.
func (c *child) says(t *testing.T, want string) {
	t.Helper()
	for c.lines.Scan() {
		if c.lines.Text() == want {
			return
		}
		if strings.HasPrefix(c.lines.Text(), "error") {
			t.Fatal(c.lines.Text())
		}
	}
	t.Fatalf("the process ended before it said %s", want)
}

// ends lets the process end, and waits for that.
func (c *child) ends(t *testing.T) {
	t.Helper()
	c.in.Close()
	for c.lines.Scan() {
		if strings.HasPrefix(c.lines.Text(), "error") {
			t.Error(c.lines.Text())
		}
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// kill ends the process as a power cut would.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait()
}

// insideEnv is the folder on which another file system is mounted, in the run of
// a test inside.
const insideEnv = "TETHER_TEST_INSIDE"

// inside runs the test once more under bubblewrap with these arguments and a
// folder, where they mount a file system, which needs no root. In that run it
// returns the folder, else "".
func inside(t *testing.T, args ...string) string {
	t.Helper()
	if dir := os.Getenv(insideEnv); dir != "" {
		return dir
	}
	dir := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	args = append(append([]string{"--dev-bind", "/", "/"}, args...), dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bwrap", append(args, self, "-test.run=^"+t.Name()+"$", "-test.v")...)
	cmd.Env = append(os.Environ(), insideEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return ""
}

// copyState copies the files of a store that no process uses.
func copyState(t *testing.T, from string) (path string) {
	t.Helper()
	path = temp(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tether.db", "tether.db-wal", headFile} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(from), name))
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(filepath.Dir(path), name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// change rewrites a file.
func change(t *testing.T, path string, how func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, how(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
