package memory

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// opens are the functions of this package that open a file other than through
// SQLite, and why that drops no lock: SQLite's locks are gone as soon as the
// process closes any descriptor of the file that they are on.
var opens = map[string]string{
	"prepare":      "makes the database, only if it is not there",
	"makeBallast":  "its own file",
	"flock":        "a lock's own file",
	"lockHolder":   "/proc",
	"busy":         "a lock's own file",
	"holder":       "/proc",
	"bootID":       "/proc",
	"Holder":       "/proc",
	"readHead":     "the head's own file",
	"replaceFile":  "the head's own file",
	"syncDir":      "a folder",
	"copyFile":     "called by setAside and connectCopy, which hold opened and refuse an open store",
	"setAside":     "copyFile, with opened held",
	"connectCopy":  "copyFile, with opened held",
	"openPages":    "a copy in a folder of its own",
	"salvage":      "openPages of the copy aside",
	"exclude":      "flock",
	"register":     "flock",
	"Lock":         "flock",
	"alone":        "flock",
	"vacuumInto":   "makes the file of the copy, closed before SQLite's is looked at again",
	"newestSchema": "embedded",
	"migrate":      "embedded",
	"Rebuild":      "embedded",
}

// TestNothingOpensTheDatabase: fault 11, in the source. Who opens a file in this
// package says above why it is none of SQLite's, and nobody else knows their
// names but the two that make the path.
func TestNothingOpensTheDatabase(t *testing.T) {
	may := map[string]bool{"cmd/tether/wire.go": true, "cmd/tether/doc.go": true}
	seen := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		seen++
		if rel, _ := filepath.Rel("..", path); filepath.Dir(rel) == "memory" {
			opensHere(t, path, file)
		} else if !may[rel] {
			namesHere(t, path, file)
		}
		return nil
	})
	if err != nil || seen < 50 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// opensHere looks for calls that open files, in functions that are not listed.
func opensHere(t *testing.T, path string, file *ast.File) {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || opens[f.Name.Name] != "" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			name := ""
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && (x.Name == "os" || x.Name == "unix" || x.Name == "syscall" || x.Name == "ioutil") {
					name = n.Sel.Name
				}
			case *ast.Ident:
				name = n.Name
			}
			switch name {
			case "Open", "OpenFile", "ReadFile", "Create", "WriteFile", "Openat", "Openat2", "CopyFS", "DirFS", "OpenRoot", "copyFile", "openPages", "flock":
				if _, method := n.(*ast.Ident); !method || name[0] >= 'a' {
					t.Errorf("%s: %s opens a file (%s); if it is none of the database's, say so in opens", path, f.Name.Name, name)
				}
			}
			return true
		})
	}
}

// namesHere looks for the names of SQLite's files.
func namesHere(t *testing.T, path string, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.BasicLit)
		if !ok || s.Kind != token.STRING {
			return true
		}
		for _, name := range []string{"tether.db", "-wal", "-shm"} {
			if strings.Contains(s.Value, name) {
				t.Errorf("%s names a file of the database: %s; only package memory opens those", path, s.Value)
			}
		}
		return true
	})
}
