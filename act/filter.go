package act

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// filters are programs that read the files on their line, or else their input.
var filters = []string{"awk", "cat", "cut", "grep", "head", "sed", "sort", "tail", "tr", "uniq", "wc"}

// names reports whether a file or a folder stands on a line.
func (s *Shell) names(pieces []piece, line string) bool {
	return slices.ContainsFunc(pieces[1:], func(p piece) bool {
		rel, err := s.Env.Box.Files().Rel(s.Env.Dir, strings.Trim(line[p.start:p.end], "'\""))
		if err == nil {
			_, err = s.Env.Box.Files().Stat(rel)
		}
		return err == nil && p.op == ""
	})
}

// fed is what a program reads. A filter that was given the name of a file, and
// nothing else, as its text was meant to read the file: its name is named.
func (s *Shell) fed(line, stdin string) (text, named string) {
	name := s.Env.fileName(strings.TrimSpace(stdin))
	if pieces, _ := scan(line); name == "" || !slices.Contains(filters, firstWord(line)) || strings.ContainsAny(line, "|<>&;") || s.names(pieces, line) {
		return stdin, ""
	}
	data, err := s.Env.Box.Files().ReadFile(name, maxShown)
	if err != nil {
		return stdin, ""
	}
	return string(data), name
}

// deaf reports whether a file is a program that does not read its input: text
// given to it was meant for the file.
func deaf(rel string, source []byte) bool {
	return slices.Contains([]string{".py", ".js", ".sh", ".rb", ".pl", ".go"}, path.Ext(rel)) && !hears.Match(source)
}

// hears finds what a program says that reads its input, in the common languages.
var hears = regexp.MustCompile(`(?i)stdin|input|read|<>|cat\b|/dev/fd/0`)
