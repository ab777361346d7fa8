package act

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Judge is what a line for the shell is made of beside its words, so far as it
// can be told from them: the files that decide what comes of it.
type Judge struct {
	// Scripts are files that the line itself runs: "./verify.sh", "sh ci/check.sh",
	// "python3 test_all.py". Paths are slash separated and relative to the
	// workspace.
	Scripts []string
	// Sources are patterns of what else it reads: a program that it tries and that
	// is more likely what the task is about ("python3 hello.py"), and the files of
	// a well-known runner, Makefile for make and the tests for go test.
	Sources []string
}

// Judges takes a line apart. root is the workspace, and isFile says whether a
// path relative to it is a file. A script that is not there yet is among the
// sources. What stands in a command substitution is left out: there the line
// itself judges what came of it.
func Judges(line, root string, isFile func(rel string) bool) Judge {
	w := judging{root: root, isFile: isFile, dir: "."}
	w.line(line, 0)
	return w.found
}

// judging is one Judges.
type judging struct {
	root   string
	isFile func(string) bool
	dir    string // after the cd of the line so far
	found  Judge
}

func (w *judging) line(line string, depth int) {
	const deepest = 2 // bash -c "bash -c …"
	pieces, _ := scan(line)
	var words []string
	for i := 0; i < len(pieces) && depth <= deepest; i++ {
		p := pieces[i]
		switch {
		case p.op == "":
			if word, err := unquote(line[p.start:p.end]); err == nil {
				words = append(words, word)
			}
		case strings.ContainsAny(p.op, "<>"):
			i++ // the name of a file that is read or written
		default:
			w.command(words, depth)
			words = nil
		}
	}
	w.command(words, depth)
}

var (
	assignment  = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	interpreter = regexp.MustCompile(`^(sh|bash|dash|zsh|ksh|ash|fish|python[\d.]*|pypy3?|node|deno|bun|ruby|perl|php|lua[\d.]*|Rscript|tclsh|pwsh)$`)
	shellName   = regexp.MustCompile(`^(sh|bash|dash|zsh|ksh|ash|fish)$`)
)

// A program is what a task is about as often as not; a check says in its path that
// it is one.
var (
	programs = regexp.MustCompile(`\.(py|js|mjs|cjs|ts|rb|pl|php|lua|R|tcl)$`)
	checking = regexp.MustCompile(`(?i)test|check|verify|spec|valid|gate|lint|assert|(^|/)ci(/|\.)`)
)

// wrappers run what follows them; before it they may have flags and numbers.
var wrappers = []string{"env", "exec", "command", "time", "timeout", "nice", "nohup", "stdbuf", "setsid", "xvfb-run", "unbuffer", "busybox"}

// runners are the programs of which a line that names them says little: what
// counts stands in these files.
var runners = map[string][]string{
	"make":   {"Makefile", "makefile", "GNUmakefile"},
	"just":   {"justfile", "Justfile"},
	"npm":    {"package.json"},
	"yarn":   {"package.json"},
	"pnpm":   {"package.json"},
	"go":     {"**/*_test.go"},
	"cargo":  {"tests/**"},
	"tox":    {"tox.ini"},
	"pytest": {"**/test_*.py", "**/*_test.py", "**/conftest.py", "pytest.ini"},
}

func (w *judging) command(words []string, depth int) {
	for wrapped := false; len(words) > 0; words = words[1:] {
		name := words[0]
		switch {
		case slices.Contains(keywords, name), name == "!", name == "{", assignment.MatchString(name):
			continue
		case slices.Contains(wrappers, name):
			wrapped = true
			continue
		case wrapped && (strings.HasPrefix(name, "-") || strings.Trim(name, "0123456789.smhd") == ""):
			continue
		}
		w.program(name, words[1:], depth)
		return
	}
}

// program looks at one command: its name, and what it is given.
func (w *judging) program(name string, args []string, depth int) {
	base := path.Base(name)
	if strings.Contains(name, "/") {
		w.script(name)
	}
	switch {
	case name == "cd" && len(args) > 0:
		w.dir = path.Join(w.dir, args[0])
	case (name == "." || name == "source") && len(args) > 0:
		w.script(args[0])
	case interpreter.MatchString(base):
		w.interpreted(base, args, depth)
	case runners[base] != nil:
		w.sources(base)
	}
}

// interpreted finds the file among the arguments of an interpreter.
func (w *judging) interpreted(name string, args []string, depth int) {
	for i, a := range args {
		flag := strings.HasPrefix(a, "-")
		switch {
		case flag && shellName.MatchString(name) && !strings.HasPrefix(a, "--") && strings.HasSuffix(a, "c"):
			if i+1 < len(args) {
				w.line(args[i+1], depth+1)
			}
			return
		case flag && (a == "-c" || a == "-e" || a == "-m"):
			if a == "-m" && i+1 < len(args) && (args[i+1] == "pytest" || args[i+1] == "unittest") {
				w.sources("pytest")
			}
			return
		case !flag && w.script(a):
			return
		}
	}
}

// script notes a file of the workspace, and reports whether it is one.
func (w *judging) script(name string) bool {
	rel := path.Join(w.dir, name)
	if path.IsAbs(name) {
		rel = strings.TrimPrefix(path.Clean(name), w.root+"/")
	}
	if path.IsAbs(rel) || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	list, is := &w.found.Sources, w.isFile(rel)
	switch {
	case is && (!programs.MatchString(rel) || checking.MatchString(rel)):
		list = &w.found.Scripts
	case !is && path.Ext(rel) == "":
		return false // a word like any other
	}
	if !slices.Contains(*list, rel) {
		*list = append(*list, rel)
	}
	return is
}

// sources notes what a runner reads.
func (w *judging) sources(runner string) {
	for _, p := range runners[runner] {
		if p = path.Join(w.dir, p); !slices.Contains(w.found.Sources, p) {
			w.found.Sources = append(w.found.Sources, p)
		}
	}
}
