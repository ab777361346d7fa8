package memory

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// childEnv makes the test binary a writer that appends to the store it names
// and prints each number after it was acknowledged.
const childEnv = "TETHER_TEST_APPEND"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		fmt.Fprintln(os.Stderr, appendForEver(path))
		os.Exit(1)
	}
	if what := os.Getenv(roleEnv); what != "" {
		if err := roles[what](os.Args[1:]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func appendForEver(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path)
	for err == nil {
		var e Event
		e, err = s.Append(ctx, "a", KindObservation, Observation{ID: "obs_1", Output: "some words to index"})
		fmt.Println(e.Seq)
		if err == nil {
			err = s.Mark(ctx)
		}
	}
	return err
}

// TestKill ends a writer by SIGKILL again and again. Every event that it
// acknowledged must be there, and at most one more.
func TestKill(t *testing.T) {
	path := temp(t)
	last := int64(0)
	for range 20 {
		acked := killed(t, path, rand.IntN(40))
		s := at(t, path)
		got, err := s.Verify(t.Context())
		if err != nil || s.Lost() != nil {
			t.Fatal(err, s.Lost())
		}
		if acked = max(acked, last); got < acked || got > acked+1 {
			t.Fatalf("%d events acknowledged, %d there", acked, got)
		}
		last = got
		if _, err := s.writer.Exec("INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('integrity-check', 1)"); err != nil {
			t.Fatalf("index: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d events, 20 kills", last)
}

// killed starts a writer, kills it after it has acknowledged n events, and
// returns the last number that it could print.
func killed(t *testing.T, path string, n int) (acked int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if acked, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Error(err)
		}
		if i == n {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	return acked
}
