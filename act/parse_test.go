package act

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// shellWords splits a line with a real shell grammar. ok is false for what is no
// simple command of plain words: expansions, operators, mistakes.
func shellWords(line string) (words []string, ok bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	stmt := file.Stmts[0]
	call, isCall := stmt.Cmd.(*syntax.CallExpr)
	if !isCall || stmt.Negated || stmt.Background || len(stmt.Redirs) > 0 || len(call.Assigns) > 0 {
		return nil, false
	}
	for _, w := range call.Args {
		value, ok := plainWord(w.Parts, false)
		if !ok {
			return nil, false
		}
		words = append(words, value)
	}
	return words, true
}

// plainWord is the value of a word without expansions.
func plainWord(parts []syntax.WordPart, quoted bool) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(plainLit(p.Value, quoted))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			inner, ok := plainWord(p.Parts, true)
			if p.Dollar || !ok {
				return "", false
			}
			b.WriteString(inner)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// plainLit takes the backslashes off a literal as POSIX says.
func plainLit(s string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.ContainsRune("$`\"\\\n", rune(s[i+1]))) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"read a.go", `grep "func \w+" src`, `find . -name '*.tmp'`, `write "my file.txt" Hello`, "a\\\nb", `x \n \t "\n"`,
		"read a # b", "a#b", "''", `a''"b"`, `"a'b"`, `'a"b'`, "read a;b", "a&&b", "x 2>&1", "2>x", "a\tb", "{a,b}", "~", "é ü",
		`\`, `"`, "$(x)", "`x`", "$'a'", "a=b", "a\\ b", "! a", `"a\`, "a\n\nb", "<<EOF\nx\nEOF", "x >", "(a)", "a(b)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := Words(line)
		if err != nil || len(got) == 0 {
			return // refused: that is always allowed
		}
		line = clean(line)
		if strings.ContainsAny(line, "$`") || isReservedWord(got[0]) {
			return // expansions stay as they are typed, by design
		}
		want, ok := shellWords(line)
		if !ok {
			if isShellOnly(line) {
				return
			}
			t.Fatalf("act reads %q as %q, a shell as no simple command", line, got)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("act reads %q as %q, a shell as %q", line, got, want)
		}
	})
}

// isReservedWord reports whether a line that begins so is no simple command.
func isReservedWord(word string) bool {
	return slices.Contains(keywords, word) || slices.Contains([]string{
		"declare", "export", "local", "readonly", "typeset", "nameref", "let", "eval", "done", "in", "[", "]]", "]",
	}, word)
}

// isShellOnly reports whether a line has a form that bash takes apart before it
// looks at words: assignments, subscripts, extended patterns.
func isShellOnly(line string) bool {
	return strings.ContainsAny(line, "=[]") || strings.ContainsAny(line, "\x00\r") || strings.ContainsAny(line, "(){}!")
}

func TestQuoteComesBack(t *testing.T) {
	for _, w := range []string{"a", "", "a b", "it's", `"`, `\`, "a\nb", "$x", "é", "#", "*", "-n", "~"} {
		got, err := Words("x " + Quote(w))
		if err != nil || len(got) != 2 || got[1] != w {
			t.Errorf("Quote(%q) = %s comes back as %q, %v", w, Quote(w), got, err)
		}
	}
}

func TestWordsRefuse(t *testing.T) {
	for _, line := range []string{"a | b", "a; b", "a > b", "a\nb", `a "b`, "a 'b", "$'x'", "a & b", "(a)"} {
		if got, err := Words(line); err == nil {
			t.Errorf("Words(%q) = %q, want an error", line, got)
		}
	}
	if _, err := Words(`a "b`); !errors.Is(err, errWords) {
		t.Errorf("an open quote is %v", err)
	}
}

func TestRoutes(t *testing.T) {
	s := NewShell(Env{Box: newBox(t, t.TempDir(), 0)}, Builtins())
	for _, c := range []struct{ line, name, head, op, rest, text, into string }{
		{"read a.go", "read", "read a.go", "", "", "", ""},
		{"grep foo src | head -5", "grep", "grep foo src", "|", "head -5", "", ""},
		{"grep 'a | b' src", "grep", "grep 'a | b' src", "", "", "", ""},
		{"read a > b", "read", "read a > b", "", "", "", "> b"},
		{"read a 2>/dev/null | wc", "read", "read a 2>/dev/null", "|", "wc", "", ""},
		{"ls | wc -l", "", "ls | wc -l", "", "", "", ""},
		{"sort a | write b", "", "sort a", "|", "write b", "", ""},
		{"cd x && grep a b", "", "cd x && grep a b", "", "", "", ""},
		{"cd x && read b; ls", "", "cd x", "&&", "read b; ls", "", ""},
		{"for f in *; do cat $f; done", "", "for f in *; do cat $f; done", "", "", "", ""},
		{"while read x; do echo $x; done < f", "", "while read x; do echo $x; done < f", "", "", "", ""},
		{"write a.html <p>x</p>", "write", "write a.html <p>x</p>", "", "", "<p>x</p>", ""},
		{"write a.txt a && b", "write", "write a.txt a && b", "", "", "a && b", ""},
		{"write a.txt a && cat a.txt", "write", "write a.txt a ", "&&", "cat a.txt", "a", ""},
		{"done all; fine", "done", "done all; fine", "", "", "all; fine", ""},
		{"echo done", "", "echo done", "", "", "", ""},
		{"(cd x; read y)", "", "(cd x; read y)", "", "", "", ""},
		{"cat <<EOF\ndone\nEOF", "", "cat <<EOF\ndone\nEOF", "", "", "", ""},
		{"grep x > b src 2>&1", "grep", "grep x > b src 2>&1", "", "", "", "> b"},
		{"grep x src >> b && read b", "grep", "grep x src >> b", "&&", "read b", "", ">> b"},
		{"grep x src >&2", "grep", "grep x src >&2", "", "", "", ""},
		{"read a 2> e | wc", "read", "read a 2> e", "|", "wc", "", "2> e"},
		{"echo a && echo b | write c", "", "echo a", "&&", "echo b | write c", "", ""},
		{"x=1; echo $x | write c", "", "x=1; echo $x", "|", "write c", "", ""},
		{"write a.py 'x = 1' && python3 a.py", "write", "write a.py 'x = 1' ", "&&", "python3 a.py", "'x = 1'", ""},
		{"write a.py x = 1 && python3 a.py", "write", "write a.py x = 1 && python3 a.py", "", "", "x = 1 && python3 a.py", ""},
		{"write a.txt <<< 'x y'; ls", "write", "write a.txt ", ";", "ls", "", ""},
		{"write a.sh <<EOF && sh a.sh\necho\nEOF\nls", "write", "write a.sh ", "&&", "sh a.sh\nls", "", ""},
		{"write a <<'EOF' | cat > b\nx\nEOF", "write", "write a ", "|", "cat > b", "", ""},
	} {
		p, err := s.route(c.line, "")
		name := ""
		if p.cmd != nil {
			name = p.cmd.Name
		}
		if err != nil || name != c.name || p.head != c.head || p.op != c.op || p.rest != c.rest || p.text != c.text || p.into != c.into {
			t.Errorf("%q: got %q %q %q %q %q %q %v", c.line, name, p.head, p.op, p.rest, p.text, p.into, err)
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	s := NewShell(Env{Box: newBox(b, b.TempDir(), 0)}, Builtins())
	for b.Loop() {
		if _, err := s.route("grep -n 'func main' src | head -5", ""); err != nil {
			b.Fatal(err)
		}
	}
}
