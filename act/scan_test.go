package act

import (
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// flatScan writes a line as act takes it apart: the words of each simple command,
// its redirections, and the operators between commands.
func flatScan(line string) ([]string, bool) {
	pieces, err := scan(line)
	if err != nil || len(pieces) == 0 {
		return nil, false
	}
	var flat []string
	for i := 0; i < len(pieces); i++ {
		p := pieces[i]
		text := line[p.start:p.end]
		switch {
		case p.op == "":
			word, err := unquote(text)
			if err != nil {
				return nil, false
			}
			flat = append(flat, "word "+word)
		case p.op == "\n" || p.op == ";":
			if n := len(flat); n > 0 && flat[n-1] != ";" {
				flat = append(flat, ";")
			}
		case slices.Contains([]string{"&&", "||", "|", "|&"}, p.op):
			flat = append(flat, p.op)
		case slices.Contains([]string{">", ">>", "<", ">&", "&>", "&>>", ">|", "<<<"}, p.op) && i+1 < len(pieces) && pieces[i+1].op == "":
			i++
			word, err := unquote(line[pieces[i].start:pieces[i].end])
			if err != nil {
				return nil, false
			}
			flat = append(flat, "redirect "+text+" "+word)
		default:
			return nil, false
		}
	}
	if flat != nil && flat[len(flat)-1] == ";" {
		flat = flat[:len(flat)-1]
	}
	return flat, true
}

// flatShell does the same with a real shell grammar. Redirections come where they
// stand among the words.
func flatShell(line string) ([]string, bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, false
	}
	var flat []string
	for i, s := range file.Stmts {
		if i > 0 {
			flat = append(flat, ";")
		}
		one, ok := flatStmt(s)
		if !ok {
			return nil, false
		}
		flat = append(flat, one...)
	}
	return flat, true
}

func flatStmt(s *syntax.Stmt) ([]string, bool) {
	if s.Negated || s.Background || s.Coprocess {
		return nil, false
	}
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok {
		x, okX := flatStmt(b.X)
		y, okY := flatStmt(b.Y)
		return append(append(x, b.Op.String()), y...), okX && okY && len(s.Redirs) == 0
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if s.Cmd != nil && (!ok || len(call.Assigns) > 0) {
		return nil, false
	}
	type placed struct {
		at   uint
		text string
	}
	var all []placed
	if call != nil {
		for _, w := range call.Args {
			value, ok := plainWord(w.Parts, false)
			if !ok {
				return nil, false
			}
			all = append(all, placed{w.Pos().Offset(), "word " + value})
		}
	}
	for _, r := range s.Redirs {
		value, ok := plainWord(r.Word.Parts, false)
		if !ok || r.Hdoc != nil {
			return nil, false
		}
		n := ""
		if r.N != nil {
			n = r.N.Value
		}
		all = append(all, placed{r.Pos().Offset(), "redirect " + n + r.Op.String() + " " + value})
	}
	slices.SortFunc(all, func(a, b placed) int { return int(a.at) - int(b.at) })
	var flat []string
	for _, p := range all {
		flat = append(flat, p.text)
	}
	return flat, true
}

// FuzzScan: a line of simple commands, redirections, lists and pipes that act takes
// apart is taken apart by a shell in the same way.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"grep x src > out.txt", "grep x > out src 2>&1", "a && b || c; d", "a | b |& c", "a>b", "a 2>b", "a2>b", "a &>b", "a >|b", "a <<< 'x y'",
		"cd sub && read a.go", "write x && sh y", "a;b\nc", "a\n\nb", "a # b; c\nd", `a "b;c" 'd|e'`, "a \\; b", "a && \\\nb", "a >\"b c\"", "12>x", "a 12>x 1 >y",
		"a &&\nb", "a;", ";a", "a >", "> a", "a >& 2", "a >&2", "a<b>c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = clean(line)
		got, ok := flatScan(line)
		if !ok || strings.ContainsAny(line, "$`") || isShellOnly(line) {
			return // refused, or expanded by a shell only
		}
		want, ok := flatShell(line)
		if !ok {
			return // no list of simple commands: bash says what is wrong with it
		}
		// A line end behind && or | is none.
		got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
		for i := len(got) - 1; i > 0; i-- {
			if got[i] == ";" && slices.Contains([]string{"&&", "||", "|", "|&"}, got[i-1]) {
				got = slices.Delete(got, i, i+1)
			}
		}
		for len(got) > 0 && got[0] == ";" {
			got = got[1:]
		}
		if len(got) > 0 && !slices.Equal(got, want) && !slices.ContainsFunc(got, func(s string) bool { return isReservedWord(strings.TrimPrefix(s, "word ")) }) {
			t.Fatalf("act reads %q as %q, a shell as %q", line, got, want)
		}
	})
}
