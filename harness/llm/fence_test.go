package llm

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	window "tether/context"
)

// A reply in the fenced form, and the calls that it is.
func TestFenced(t *testing.T) {
	for _, c := range []struct{ name, reply, want string }{
		{"a line", "```bash\nls -l\n```", "ls -l"},
		{"with words behind it", "```sh\nls\n```\nThis lists the files.", "ls"},
		{"a here-document", "```bash\ncat > a.txt <<'EOF'\none\n\ntwo\nEOF\n```", "cat > a.txt <<'EOF'\none\n\ntwo\nEOF"},
		{"one without its end", "```bash\ncat > a.txt <<'EOF'\none\n```", "cat > a.txt <<'EOF'\none"},
		{"an end without a beginning", "```bash\nwc -l a.txt\nEOF\n```", "wc -l a.txt"},
		{"done behind a command", "```bash\nmkdir a\nmv *.png a\ndone\n```", "mkdir a\nmv *.png a|done"},
		{"the done of a loop", "```bash\nfor f in *; do\n  cat $f\ndone\n```", "for f in *; do\n  cat $f\ndone"},
		{"a loop, and done", "```bash\nfor f in *; do\n  cat $f\ndone\ndone all read\n```", "for f in *; do\n  cat $f\ndone|done all read"},
		{"two blocks are the first", "```bash\nls\n```\n```bash\nrm -r x\n```", "ls"},
		{"a block within a text in Markdown", "```bash\ncat > a.md <<'EOF'\n```go\nx := 1\n```\nEOF\n```", "cat > a.md <<'EOF'\n```go\nx := 1\n```\nEOF"},
		{"a block within another text ends it", "```bash\ncat > a.txt <<'EOF'\n```go\nx\n```", "cat > a.txt <<'EOF'"},
		{"without a fence", "sort -u a.txt", ""},
		{"without a fence, a program", "cat a.txt | sort > b.txt", "cat a.txt | sort > b.txt"},
		{"a number", "15", ""},
		{"a sentence", "cat is the program for that.", ""},
		{"not closed", "```bash\nls -l\n", ""},
		{"of another language", "```python\nprint(1)\n```", ""},
		{"nothing within", "```bash\n\n```", ""},
		{"blanks at the ends of lines", "```bash\ncat > a.txt <<'EOF'\none  \ntwo\t\nEOF\n```", "cat > a.txt <<'EOF'\none  \ntwo\t\nEOF"},
		{"carriage returns", "```bash\r\nls\r\n```\r\n", "ls"},
	} {
		var got []string
		for _, call := range findFenced(c.reply) {
			got = append(got, call.Cmd)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A reply that is sampled anew is bound; a session of before has the bound that it had.
func TestFreshTokens(t *testing.T) {
	for _, c := range []struct{ bound, want int }{{0, 2048}, {freshTokens, freshTokens}, {4096, 2048}} {
		w := wiring{MaxTokens: 2048, FreshTokens: c.bound}
		if got := w.prompt(window.Request{Fresh: true}, fenced).MaxTokens; got != c.want {
			t.Errorf("bound to %d: %d tokens, want %d", c.bound, got, c.want)
		}
		if got := w.prompt(window.Request{}, fenced).MaxTokens; got != 2048 {
			t.Errorf("a first reply has %d tokens, want 2048", got)
		}
	}
}

// What the history shows is read as the call that it was.
func FuzzFenced(f *testing.F) {
	f.Add("write a.txt", "one\nEOF\ntwo\n")
	f.Add("cat > a.txt <<'EOF'\nx\nEOF", "")
	f.Add("for f in *; do cat $f; done", "")
	f.Fuzz(func(t *testing.T, cmd, stdin string) {
		for _, call := range findFenced(cmd + "\n" + stdin) {
			if strings.TrimSpace(call.Cmd) == "" {
				t.Errorf("%q holds an empty call", cmd+"\n"+stdin)
			}
		}
		plain := cmd != "" && cmd == strings.Join(strings.Fields(cmd), " ") && !strings.ContainsAny(cmd, "`<") && firstWord(cmd) != "EOF"
		if !plain || strings.Contains(stdin, "```") || strings.Contains(stdin, "\r") || stdin != strings.TrimRight(stdin, " \n") {
			return
		}
		text := asFence(window.Call{Cmd: cmd, Stdin: stdin})
		got := findFenced(text)
		if len(got) != 1 || "```bash\n"+got[0].Cmd+"\n```" != text {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}

// The rule for the first line of a block lets every line through that begins with none
// of the words, and no other: it is tried as the pattern that it is, on lines around
// the words.
func TestBeginning(t *testing.T) {
	words := []string{"done", "do", "python3 a.py", "cat >", "é"}
	for _, line := range []string{"d", "don", "done", "done all", "dose", "doe", "python", "python3 b.py", "python3 a.py -v", "python3 a.p", "cat a", "cat > a", "cat", "été", "ete", "ls", "x"} {
		barred := slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(line, w) })
		if got := fits(t, beginning(words, false), line); got == barred {
			t.Errorf("%q: the rule takes it: %v, barred: %v", line, got, barred)
		}
	}
	for line, want := range map[string]bool{"cat > a": true, "cat a": true, "cat": true, "ca": true, "cat ": false, "cat < a": false} {
		if got := fits(t, beginning([]string{"cat <"}, false), line); got != want {
			t.Errorf("with a cat of a text barred, the rule takes %q: %v", line, got)
		}
	}
	for word, want := range map[string]bool{"done": true, "cat <": true, "cat": false, "cat >": false, "cat > a.txt": false} {
		if got := strings.HasSuffix(fenceGrammar([]string{word}), "| marked\n"); got != want {
			t.Errorf("with %q barred, a file of Markdown may begin a reply: %v", word, got)
		}
	}
	if !fits(t, beginning(nil, false), "ls") {
		t.Error("with no word barred, ls is")
	}
}

// fits reports whether a rule of beginning takes line. Such a rule is a regular
// expression but for its quotes and blanks, and for rest.
func fits(t *testing.T, rule, line string) bool {
	t.Helper()
	return pattern(t, rule).MatchString(line)
}

// pattern is rule as a regular expression.
func pattern(t *testing.T, rule string) *regexp.Regexp {
	t.Helper()
	rule = strings.NewReplacer(` | `, "|", ` rest`, ".*", `" (`, "(", `"`, "").Replace(rule)
	re, err := regexp.Compile("^(?:" + rule + ")$")
	if err != nil {
		t.Fatal(err)
	}
	return re
}
