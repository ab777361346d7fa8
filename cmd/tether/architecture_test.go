package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports is the drawing: what each package may import of this module.
var imports = map[string][]string{
	"tether/cmd/tether":  {"tether/act", "tether/context", "tether/harness", "tether/harness/llm", "tether/memory", "tether/sandbox", "tether/skills"},
	"tether/harness":     {"tether/act", "tether/context", "tether/memory", "tether/memory/failpoint"},
	"tether/harness/llm": {"tether/context"},

	"tether/harness/growth": {},

	"tether/act":     {"tether/memory", "tether/sandbox", "tether/skills"},
	"tether/context": {},
	"tether/memory":  {"tether/memory/failpoint"},

	"tether/memory/failpoint": {},
	"tether/sandbox":          {},
	"tether/skills":           {},
}

// TestImports compares the imports with the drawing. A package that is not in
// the map is a failure too. It stands in this package because this one depends
// on all others: the test cache then notices every change.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "tether/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		words := strings.Fields(line)
		may, ok := imports[words[0]]
		if !ok {
			t.Errorf("package %s is not in the drawing", words[0])
		}
		seen++
		for _, imp := range words[1:] {
			if strings.HasPrefix(imp, "tether/") && !slices.Contains(may, imp) {
				t.Errorf("%s imports %s", words[0], imp)
			}
		}
	}
	if seen != len(imports) {
		t.Errorf("%d packages, %d in the drawing", seen, len(imports))
	}
}

// TestPackageComments: every package says what it is for, once, and every
// exported name has a comment.
func TestPackageComments(t *testing.T) {
	for path := range imports {
		dir := filepath.Join("../..", strings.TrimPrefix(path, "tether/"))
		comments := 0
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d files", dir, err, len(files))
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				comments++
			}
			for _, d := range f.Decls {
				if name := undocumented(d); name != "" {
					t.Errorf("%s: %s has no comment", file, name)
				}
			}
		}
		if comments != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, comments)
		}
	}
}

// undocumented is the exported name that d declares without a comment.
func undocumented(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil {
			return d.Name.Name
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if t, ok := s.(*ast.TypeSpec); ok && t.Name.IsExported() && d.Doc == nil && t.Doc == nil {
				return t.Name.Name
			}
		}
	}
	return ""
}

// TestLoopFitsOneScreen holds the size of the loop's file.
func TestLoopFitsOneScreen(t *testing.T) {
	text, err := os.ReadFile("../../harness/agent.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 120 {
		t.Errorf("harness/agent.go has %d lines, want at most 120", n)
	}
}

// TestTopLevel: nothing else at the top of the repository.
func TestTopLevel(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	may := strings.Fields("cmd harness act context memory sandbox skills docs go.mod go.sum Makefile tether.toml README.md LICENSE .gitignore .ci")
	for _, file := range strings.Fields(string(out)) {
		if top, _, _ := strings.Cut(file, "/"); !slices.Contains(may, top) {
			t.Errorf("%s is at the top level", top)
		}
	}
}
