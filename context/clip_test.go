package window

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestExcerptGolden keeps whole observations, so that a change's diff shows what a
// model will read of each kind of tool.
func TestExcerptGolden(t *testing.T) {
	whole := []string{"go-test-fail", "go-test-race", "pytest-xdist", "unittest-fail", "cargo-test", "jest", "gxx-template",
		"maven-test", "tsc", "make-keep", "rspec", "bash-x", "wget-dot", "python-recursion", "git-rebase", "apt-install"}
	for _, l := range corpus(t) {
		if !slices.Contains(whole, l.Name) {
			continue
		}
		turn := Turn{ID: "obs_7", Call: Call{Cmd: l.Command}, Output: l.output, Status: 1, Next: Text("next_failed", nil)}
		got, file := Default.Observe(turn), filepath.Join("testdata/clip", l.Name+".golden")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s reads (go test -update writes it):\n%s", file, got)
		}
	}
}

func count(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

// filler is a text of n lines that neither repeat nor say anything of a failure.
func filler(n int) string {
	return count(n, func(i int) string {
		return strings.Repeat(string(rune('a'+i%26)), 3+i%7) + strings.Repeat(string(rune('a'+i/26%26)), 2+i%5) + strings.Repeat(" word", i%9)
	})
}

func TestRepeats(t *testing.T) {
	const rest = " | `mem recall obs_1` shows them …]"
	long := strings.Repeat("a long line ", 8)
	for _, c := range []struct{ name, in, want string }{
		{"the same line", count(90, func(int) string { return long }) + "end\n",
			long + "\n[… the line above 89 more times" + rest + "\nend"},
		{"only a counter", count(90, func(i int) string { return fmt.Sprint(long, i) }),
			long + "0\n[… 88 more times the line above, with other numbers" + rest + "\n" + long + "89"},
		{"a block", count(90, func(int) string { return "first\nsecond of them\n" + long }),
			"first\nsecond of them\n" + long + "\n[… the 3 lines above 89 more times" + rest},
		{"a block with times", count(90, func(i int) string { return fmt.Sprintf("run %d\n%s %d.%03ds", i, long, i%7, i*37%1000) }),
			fmt.Sprintf("run 0\n%s 0.000s\n[… 88 more times the 2 lines above, with other numbers%s\nrun 89\n%s 5.293s", long, rest, long)},
		{"a bar", count(90, func(i int) string {
			return fmt.Sprintf("%slayer 4c3f2e1d: [%s>%s] %d%%", long, strings.Repeat("=", i), strings.Repeat(" ", 90-i), i)
		}), ""},
	} {
		got := Excerpt(c.in, 2400, 900, 900, "obs_1")
		if c.want != "" && got != c.want {
			t.Errorf("%s reads\n%s\nwant\n%s", c.name, got, c.want)
		}
		if len(got) > 800 {
			t.Errorf("%s takes %d bytes", c.name, len(got))
		}
	}
}

// TestNoRepeats: what is not the same is not counted instead of shown.
func TestNoRepeats(t *testing.T) {
	for name, in := range map[string]string{
		"twice":              "a\na\nb\n",
		"numbers are data":   count(900, func(i int) string { return fmt.Sprintf("%d, %d.5", i, i*i) }),
		"complaints":         count(40, func(i int) string { return fmt.Sprintf("a.go:%d:3: error: line %d is wrong", i, i) }),
		"a name that counts": filler(300),
	} {
		all := entries(in)
		judgeAll(all)
		if got := collapse(all); len(got) != len(all) {
			t.Errorf("%s: %d lines became %d", name, len(all), len(got))
		}
	}
}

// TestFileText: what a model copies from is cut and not otherwise changed.
func TestFileText(t *testing.T) {
	same := count(400, func(int) string { return "0, 0, 0, error" })
	for _, cmd := range []string{"read a.csv", "cat a.csv", "cd data && cat a.csv", "git show HEAD:a.csv", "sed -n 1,400p a.csv", "mem recall obs_1", "grep error a.csv", "cat a.csv | head -400", "sh cat a.csv"} {
		got := Default.Observe(Turn{ID: "obs_2", Call: Call{Cmd: cmd}, Output: same})
		if want := Clip(same, Default.Elide, Default.Head, Default.Tail, "obs_2"); got != strings.TrimRight(want, "\n") {
			t.Errorf("%s: it reads\n%s", cmd, got)
		}
	}
	for _, cmd := range []string{"go test ./... | tail -100", "make 2>&1 | grep -v ok", "cd a && make", "CI=1 npm test", "git status", "python3 a.py; ls"} {
		if all, _ := prints(cmd); all {
			t.Errorf("%s is taken for a text", cmd)
		}
	}
	for _, cmd := range []string{
		"for f in *.go; do cat $f; done", "timeout 5 cat x", "bash -c 'cat x'", "ls | xargs cat", "xargs cat < list", "if true; then cat x; fi", "(cat x)", "{ cat x; }",
		"/bin/cat x", `\cat x`, "nice -n 5 cat x", "git -C sub diff", "git --no-pager show", "git stash show -p", `python3 -c 'print(open("x").read())'`, "python3 -m json.tool x",
		"node -e 'console.log(fs.readFileSync(1))'", "perl -pe 1 x", `echo "$(cat x)"`, "sh cat x | nl", "while true; do head -50 x; done",
	} {
		if _, some := prints(cmd); !some {
			t.Errorf("%s prints a file, and is not taken for what does", cmd)
		}
	}
	for _, cmd := range []string{"for i in 1 2; do go test ./...; done && make", "timeout 60 pytest", "python3 -m pytest tests", "if make; then ./run; fi", "git push", "bash build.sh", "bin/", "'' x", "sh", "timeout", "(", "\\", "nice -n", "a=b"} {
		if all, _ := prints(cmd); all {
			t.Errorf("%s is taken for a text", cmd)
		}
	}
	if _, some := prints("cat a.go && go build"); !some {
		t.Error("a file among other things is not seen")
	}
	if all, some := prints("sqlite3 a.db 'select *'"); all || !some {
		t.Error("a table is not seen")
	}
}

// TestHiddenFailure: wherever a failure stands in ten thousand lines, and in whose
// words, it is shown.
func TestHiddenFailure(t *testing.T) {
	for _, failure := range []string{
		"panic: runtime error: index out of range [3] with length 3",
		"app/models.py:31:5: F821 undefined name 'order'",
		"ValueError: invalid literal for int() with base 10: 'x'",
		"src/main.c:7:3: error: unknown type name 'strng'",
		"bash: line 4: frobnicate: command not found",
		"not ok 17 - sums up",
		"make: *** [Makefile:12: all] Error 2",
		"FAILED tests/test_a.py::test_b - assert 1 == 2",
		"Segmentation fault (core dumped)",
		"    cart_test.go:12: got 3, want 4",
		"ERROR 2026-01-01 worker: no route to host",
		"fatal: not a git repository (or any of the parent directories): .git",
	} {
		for _, at := range []int{0, 40, 500, 2500, 4960, 5000} {
			text := filler(at) + failure + "\n" + filler(5000-at)
			if got := Excerpt(text, 2400, 900, 900, ""); !strings.Contains(got, failure) {
				t.Errorf("line %d: it does not say %q", at, failure)
			}
		}
	}
}

// TestHarmless: no failures are no news.
func TestHarmless(t *testing.T) {
	for _, l := range []string{"Tests run: 5, Failures: 0, Errors: 0, Skipped: 0", "warning: unused variable", "a.c:3:4: warning: unused", "12 passed, 0 failed", "", "    ", "│", "just a line", "ok  	a/b	0.3s"} {
		if j := judge(l); j.weight >= strong {
			t.Errorf("%q weighs %d", l, j.weight)
		}
	}
}

// TestHugeLines: a few lines of any length keep their ends.
func TestHugeLines(t *testing.T) {
	got := Excerpt(strings.Repeat("x", 20_000)+"\n"+strings.Repeat("y", 20_000)+"the end", 2400, 900, 900, "obs_1")
	if !strings.HasPrefix(got, "xxx") || !strings.HasSuffix(got, "yythe end") || utf8.RuneCountInString(got) > 2000 {
		t.Errorf("it reads %q", got)
	}
	one := filler(200) + strings.Repeat("{\"a\": 1}, ", 900) + "error: no such key" + strings.Repeat(", {\"a\": 1}", 900) + "\n" + filler(200)
	if got := Excerpt(one, 2400, 900, 900, "obs_1"); !strings.Contains(got, "error: no such key") {
		t.Errorf("the failure in a huge line is lost:\n%s", got)
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("a 1\na 2\na 3\na 4\na 5\nerror: x\n", "b\n", 50, 2400, 900, 900)
	f.Add("\xff\x00\n", "E  x\n", 3, 300, 20, 80)
	f.Add("…]\n[… 3 lines …]\n", "\n", 900, 2000, 900, 900)
	f.Fuzz(func(t *testing.T, a, b string, n, limit, head, tail int) {
		if n < 0 || n > 2000 || len(a)+len(b) > 400 || head < 0 || tail < 0 || head > 5000 || tail > 5000 || limit < 0 || limit > 20_000 {
			return
		}
		s := strings.Repeat(a, n) + b + strings.Repeat(b+a, n/2)
		got := Excerpt(s, limit, head, tail, "obs_1")
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		if most := max(limit, head+tail+200); utf8.RuneCountInString(got) > most {
			t.Fatalf("%d characters of %d: %q", utf8.RuneCountInString(got), most, got)
		}
		if again := Excerpt(got, limit, head, tail, "obs_1"); limit >= head+tail+200 && again != got {
			t.Fatalf("the excerpt of %q is another one: %q", got, again)
		}
	})
}

func BenchmarkExcerpt(b *testing.B) {
	for _, l := range corpus(b) {
		if l.Name != "go-test-fail" && l.Name != "maven-test" {
			continue
		}
		b.Run(l.Name, func(b *testing.B) {
			b.SetBytes(int64(len(l.output)))
			for b.Loop() {
				Excerpt(l.output, 2400, 900, 900, "obs_1")
			}
		})
	}
}
