package act

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// noting is a command that notes that it was run, and succeeds or fails.
func noting(name string, err error) *Command {
	return &Command{Name: name, Args: "WORD", Run: func(_ context.Context, env *Env, args []string) error {
		f, openErr := os.OpenFile(filepath.Join(env.Box.Policy().Root, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if openErr != nil {
			return openErr
		}
		defer f.Close()
		if _, err := f.WriteString(args[0] + "\n"); err != nil {
			return err
		}
		_, _ = env.Out.Write([]byte(args[0] + "\n"))
		return err
	}}
}

// asFunctions are the same commands for bash.
const asFunctions = "good() { echo $1 >> log; echo $1; }\nbad() { echo $1 >> log; echo $1; return 1; }\n"

// TestListsRunAsInBash runs lists of built-ins and programs, joined at random, in
// act and in bash: the same commands must have run, in the same order.
func TestListsRunAsInBash(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		compareWithBash(t, randomList(rng))
	}
	for _, line := range []string{
		"bad a || good b && good c", "good a || bad b | cat && good c", "bad a && good b | cat; good c",
		"good a && echo b | cat > out && good c", "bad a && echo b || good c", "good a || good b || good c; good d",
		"bad a > out || good b", "good a > out && good b >> out; good c", "cd sub 2>/dev/null || good a", "good a; ; good b",
		"mkdir -p d && cd d && good a", "bad a | cat; good c", "ls nope | cat && good b", "good a && (echo x) && good b", "bad a || (exit 3) || good c",
	} {
		compareWithBash(t, line)
	}
}

func randomList(rng *rand.Rand) string {
	commands := []string{"good", "bad", "good", "bad", "echo", "false #", "true"}
	ops := []string{" && ", " || ", "; ", " && ", "||"}
	var b strings.Builder
	for i := range 2 + rng.IntN(5) {
		if i > 0 {
			b.WriteString(ops[rng.IntN(len(ops))])
		}
		switch c := commands[rng.IntN(len(commands))]; c {
		case "echo":
			b.WriteString("echo " + string(rune('a'+i)) + " >> log")
		case "false #", "true":
			b.WriteString(strings.TrimSuffix(c, " #"))
		default:
			b.WriteString(c + " " + string(rune('a'+i)))
		}
	}
	return b.String()
}

func compareWithBash(t *testing.T, line string) {
	t.Helper()
	ours, theirs := t.TempDir(), t.TempDir()
	cmds := append(Builtins(), noting("good", nil), noting("bad", failed("", "it is bad")))
	r := NewShell(Env{Box: newBox(t, ours, 0)}, cmds).Do(context.Background(), line, "")
	check(t, r.Err)
	bash := exec.Command("bash", "-c", asFunctions+line)
	bash.Dir = theirs
	err := bash.Run()
	if bash.ProcessState.ExitCode() == 2 && strings.Contains(line, "; ;") {
		return // bash does not read it at all
	}
	got, _ := os.ReadFile(filepath.Join(ours, "log"))
	want, _ := os.ReadFile(filepath.Join(theirs, "log"))
	if strings.Contains(line, "cd d") {
		return2, _ := os.ReadFile(filepath.Join(theirs, "d", "log")) // bash notes where it is
		want = append(want, return2...)
	}
	if string(got) != string(want) || (r.Status == OK) != (err == nil) {
		t.Errorf("%q: ran %q with status %d; bash ran %q with %v", line, got, r.Status, want, err)
	}
}
