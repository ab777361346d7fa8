package act

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
	"gopkg.in/yaml.v3"

	"tether/sandbox"
)

// checkSyntax says what is wrong with a file of a kind that it knows, with the
// line, or returns "". A model that hears of a broken line at once mends it; one
// that hears of it from a failing test looks elsewhere.
func checkSyntax(ctx context.Context, env *Env, name, text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	switch kind := strings.ToLower(path.Ext(name)); cmp.Or(kind, shebang(text)) {
	case ".json":
		return checkJSON(text)
	case ".go":
		return checkGo(text)
	case ".toml":
		return checkTOML(text)
	case ".yaml", ".yml":
		return checkYAML(text)
	case ".py", ".pyi":
		return checkBy(ctx, env, pythonCheck, text)
	case ".sh", ".bash":
		return checkBy(ctx, env, shellCheck, text)
	}
	return ""
}

var interpreted = regexp.MustCompile(`^#!\S*/(?:env +)?(?:(python)[\d.]*|bash|sh|dash)\b`)

// shebang is the extension that a script without one would have.
func shebang(text string) string {
	switch m := interpreted.FindStringSubmatch(text); {
	case m == nil:
		return ""
	case m[1] != "":
		return ".py"
	}
	return ".sh"
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

var yamlFault = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// checkYAML reads all documents of a file. One with the marks of a template is none
// until it has been through the program that it is for.
func checkYAML(text string) string {
	if strings.Contains(text, "{{") || strings.Contains(text, "{%") {
		return ""
	}
	m := yamlFault.FindStringSubmatch(parseYAML(text))
	if m == nil {
		return ""
	}
	all := splitLines(text)
	if len(all) > maxLines {
		return fmt.Sprintf("near line %s: %s", cmp.Or(m[1], "1"), m[2])
	}
	// The parser names the line at which what is broken began. The one that breaks it
	// is behind the longest beginning that is right.
	n := len(all) - 1
	for n > 0 && parseYAML(strings.Join(all[:n], "\n")) != "" {
		n--
	}
	return fmt.Sprintf("line %d: %s", n+1, m[2])
}

// parseYAML is what is wrong with a text, in the words of the parser.
func parseYAML(text string) string {
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var v yaml.Node
		switch err := d.Decode(&v); {
		case err == io.EOF:
			return ""
		case err != nil:
			return err.Error()
		}
	}
}

// The checks of the tools themselves print one line if their input does not parse,
// and nothing where the tool is not there.
const (
	pythonCheck = `command -v python3 >/dev/null || exit 0
exec python3 -I -S -c 'import ast, sys
try: ast.parse(sys.stdin.buffer.read())
except SyntaxError as e: print("line %s: %s" % (e.lineno, e.msg))'`
	shellCheck = `command -v bash >/dev/null || exit 0
bash -n 2>&1 | sed -n '1s/^bash: //p'`
)

func checkBy(ctx context.Context, env *Env, check, text string) string {
	got, err := env.Box.Run(ctx, sandbox.Cmd{Shell: check, Stdin: strings.NewReader(text)})
	if err != nil || got.Status != OK || !strings.HasPrefix(got.Output, "line ") {
		return "" // only a help: what is really wrong shows when the file is run
	}
	return strings.TrimSpace(got.Output)
}

// faults are sentences on the files that a program has changed and that are not
// right now. Many changed files are the work of a tool, which knows what it does.
func (s *Shell) faults(ctx context.Context, changed []string) []string {
	const most = 3 // files: each may cost a run of a checker
	if len(changed) > most {
		return nil
	}
	var said []string
	for _, rel := range changed {
		data, err := s.Env.Box.Files().ReadFile(rel, maxShown)
		if err != nil || isBinary(data) {
			continue
		}
		if fault := checkSyntax(ctx, &s.Env, rel, parseDocument(data).text()+"\n"); fault != "" {
			said = append(said, fmt.Sprintf("But %s is not right yet: %s", inLine(s.Env.shown(rel)), fault))
		}
	}
	return said
}
