//go:build linux

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// writer makes the test binary a process that replaces a file again and again.
const writer = "write-for-ever"

// wholes are the contents that the file has in turn.
var wholes = [][]byte{bytes.Repeat([]byte("a"), 300_000), bytes.Repeat([]byte("b"), 700_000)}

// writeForEver says so after each time, so that it can be killed at any moment of the next.
func writeForEver(root string) {
	b, err := New(context.Background(), Policy{Root: root, Profile: Off})
	for n := 0; err == nil; n++ {
		err = b.Files().WriteFile("dir/file", wholes[n%2])
		fmt.Println(n)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilledWrite ends a process by SIGKILL while it writes a file of the workspace. The file is one content or the
// other, never a mix, and the next start takes away what was half written.
func TestKilledWrite(t *testing.T) {
	root := t.TempDir()
	halves, kills := 0, 0
	for ; kills < 40 || halves == 0 && kills < 1000; kills++ {
		cmd := exec.Command(os.Args[0], writer, root)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		for range 1 + rand.IntN(4) {
			said.Scan()
		}
		cmd.Process.Kill()
		cmd.Wait()
		got, err := os.ReadFile(filepath.Join(root, "dir/file"))
		if err != nil || !bytes.Equal(got, wholes[0]) && !bytes.Equal(got, wholes[1]) {
			t.Fatalf("%v: %d bytes that are neither content", err, len(got))
		}
		left, err := filepath.Glob(filepath.Join(root, "dir", ".tether-*.tmp"))
		if err != nil {
			t.Fatal(err)
		}
		halves += len(left)
		b := newBox(t, Policy{Root: root})
		if b.looked != nil {
			<-b.looked
		}
		if left, _ = filepath.Glob(filepath.Join(root, "dir", ".tether-*.tmp")); len(left) > 0 {
			t.Fatalf("%q is left after the next start", left)
		}
	}
	t.Logf("%d kills, %d in the middle of a write", kills, halves)
	if halves == 0 {
		t.Error("no kill came in the middle of a write: nothing was shown")
	}
}
