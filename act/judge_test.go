package act

import (
	"fmt"
	"slices"
	"testing"
)

// TestJudges: which files decide what comes of a gate.
func TestJudges(t *testing.T) {
	files := []string{"verify.sh", "test.py", "ci/check.sh", "sub/run.sh", "hello.py", "ci/all.py", "src/city.js", "go", "test.js", ".venv/bin/pytest"}
	const python = "**/test_*.py **/*_test.py **/conftest.py pytest.ini"
	cases := []struct{ line, scripts, sources string }{
		{"./verify.sh", "verify.sh", ""},
		{"/ws/verify.sh --all", "verify.sh", ""},
		{"sh verify.sh", "verify.sh", ""},
		{"bash -eu ./verify.sh arg", "verify.sh", ""},
		{"bash -c './verify.sh && true'", "verify.sh", ""},
		{"bash -ec 'sh ci/check.sh'", "ci/check.sh", ""},
		{". ./verify.sh", "verify.sh", ""},
		{"source verify.sh; ./ci/check.sh", "verify.sh ci/check.sh", ""},
		{"cd sub && ./run.sh", "sub/run.sh", ""},
		{"cd sub && ../verify.sh", "verify.sh", ""},
		{"true && ! ./verify.sh || false", "verify.sh", ""},
		{"if ./verify.sh; then exit 0; else exit 1; fi", "verify.sh", ""},
		{"(sh verify.sh)", "verify.sh", ""},
		{"env -i A=b timeout 10s ./verify.sh", "verify.sh", ""},
		{"A=b python3 -W ignore test.py", "test.py", ""},
		{"timeout -k 5 60 python3.11 test.py >out.txt 2>&1", "test.py", ""},
		{"node --test test.js", "test.js", ""},
		{"python3 hello.py", "", "hello.py"},
		{"./hello.py && python3 test.py", "test.py", "hello.py"},
		{"python3 ci/all.py; node src/city.js", "ci/all.py", "src/city.js"},
		{"cat x | sh verify.sh", "verify.sh", ""},
		{"'./verify.sh'", "verify.sh", ""},
		{"make test && ./verify.sh", "verify.sh", "Makefile makefile GNUmakefile"},
		{"go test ./...", "", "**/*_test.go"},
		{"cd sub && go vet ./...", "", "sub/**/*_test.go"},
		{"python3 -m pytest -q", "", python},
		{"pytest tests", "", python},
		{".venv/bin/pytest tests", ".venv/bin/pytest", python},
		{"venv/bin/python -m pytest", "", python},
		{"bash -o pipefail verify.sh", "verify.sh", ""},
		{"./made-later.sh", "", "made-later.sh"},
		{"sh made-later.sh", "", "made-later.sh"},

		{`python3 -c "import test"`, "", ""},
		{`[ "$(python3 hello.py)" = hello ]`, "", ""},
		{`[ -x verify.sh ] && [ "$(./verify.sh abc)" = ABC ]`, "", ""},
		{"test -f verify.sh", "", ""},
		{"grep -q x verify.sh", "", ""},
		{"cmp - verify.sh < test.py", "", ""},
		{"go", "", "**/*_test.go"}, // the one of PATH: no folder of the workspace is on it
		{"../verify.sh", "", ""},
		{"/etc/verify.sh", "", ""},
		{"'unclosed", "", ""},
		{"", "", ""},
	}
	for _, c := range cases {
		got := Judges(c.line, "/ws", func(rel string) bool { return slices.Contains(files, rel) })
		if s := fmt.Sprint(got.Scripts); s != "["+c.scripts+"]" {
			t.Errorf("%s: scripts %s, want [%s]", c.line, s, c.scripts)
		}
		if s := fmt.Sprint(got.Sources); s != "["+c.sources+"]" {
			t.Errorf("%s: sources %s, want [%s]", c.line, s, c.sources)
		}
	}
}
