package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"strings"

	"github.com/BurntSushi/toml"

	"tether/sandbox"
)

// checkSyntax says what is wrong with a file of a kind that it knows, with the
// line, or returns "". A model that hears of a broken line at once mends it; one
// that hears of it from a failing test looks elsewhere.
func checkSyntax(ctx context.Context, env *Env, name, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return checkJSON(text)
	case ".go":
		return checkGo(text)
	case ".toml":
		return checkTOML(text)
	case ".py":
		return checkPython(ctx, env, text)
	}
	return ""
}

func checkJSON(text string) string {
	var v any
	err := json.Unmarshal([]byte(text), &v)
	var bad *json.SyntaxError
	if !errors.As(err, &bad) {
		return ""
	}
	at := min(int(bad.Offset), len(text))
	return fmt.Sprintf("line %d: %v", 1+strings.Count(text[:max(at-1, 0)], "\n"), bad)
}

func checkGo(text string) string {
	_, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	var bad scanner.ErrorList
	if !errors.As(err, &bad) || len(bad) == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: %s", bad[0].Pos.Line, bad[0].Msg)
}

func checkTOML(text string) string {
	var v map[string]any
	_, err := toml.Decode(text, &v)
	var bad toml.ParseError
	if !errors.As(err, &bad) {
		return ""
	}
	return fmt.Sprintf("line %d: %s", bad.Position.Line, bad.Message)
}

// pythonCheck prints one line if its input does not parse, and nothing where
// there is no Python.
const pythonCheck = `command -v python3 >/dev/null || exit 0
exec python3 -I -S -c 'import ast, sys
try: ast.parse(sys.stdin.buffer.read())
except SyntaxError as e: print("line %s: %s" % (e.lineno, e.msg))'`

func checkPython(ctx context.Context, env *Env, text string) string {
	got, err := env.Box.Run(ctx, sandbox.Cmd{Shell: pythonCheck, Stdin: strings.NewReader(text)})
	if err != nil || got.Status != OK || !strings.HasPrefix(got.Output, "line ") {
		return "" // only a help: what is really wrong shows when the file is run
	}
	return strings.TrimSpace(got.Output)
}
