package harness_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestExamples: every exported function and method of the package is called in an
// example that is run.
func TestExamples(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "example_test.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Example") && f.Recv == nil {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				called[s.Sel.Name] = true
			}
			return true
		})
		output := slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
			return c.Pos() > f.Pos() && c.End() < f.End() && strings.HasPrefix(c.Text(), "Output:")
		})
		if f.Recv == nil && !output {
			t.Errorf("%s is not run: it has no output", f.Name.Name)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Name.Name == "Error" || f.Name.Name == "String" {
				continue // those two are what printing calls
			}
			if seen++; !called[f.Name.Name] {
				t.Errorf("%s: %s is in no example", name, f.Name.Name)
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d exported functions", seen)
	}
}
