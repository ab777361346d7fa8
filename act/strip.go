package act

import (
	"regexp"
	"slices"
	"strings"
)

var (
	fence     = regexp.MustCompile("(?s)^```[A-Za-z]*[ \t]*\n(.*?)\n?```$")
	backticks = regexp.MustCompile("^`([^`\n]+)`$")
	shells    = []string{"sh", "bash", "shell"}
	// dangling is a backslash that ends a line behind the command of find -exec.
	// Nothing but the semicolon can be meant, which a model that writes its call
	// as JSON cannot put behind a backslash: JSON has no such escape.
	dangling = regexp.MustCompile(`(-exec [^;]*\{\}(?: [\w./-]+)*) \\+[\s$]*$`)
)

// strip takes off what models put around a command: a code fence, a prompt, and
// the name of a shell. What is left is the line that was meant.
func (s *Shell) strip(line string) string {
	line = dangling.ReplaceAllString(clean(line), "$1 ';'")
	for range 8 { // each round takes something off; nobody nests deeper
		was := line
		for _, re := range []*regexp.Regexp{fence, backticks} {
			if m := re.FindStringSubmatch(line); m != nil {
				line = strings.TrimSpace(m[1])
			}
		}
		line = s.uncased(strings.TrimSpace(strings.TrimPrefix(line, "$ ")))
		line = s.stripShell(line)
		if line == was {
			break
		}
	}
	return line
}

// stripShell takes off a leading shell, and keeps it where it is a real program
// with something to do: a script to run or options.
func (s *Shell) stripShell(line string) string {
	name, rest, found := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if !found || rest == "" || !slices.Contains(shells, name) {
		return line
	}
	if inner, ok := dashC(rest); ok {
		return inner
	}
	if name == "shell" {
		return rest
	}
	pieces, _ := scan(rest)
	if rest[0] == '-' || len(pieces) == 0 || pieces[0].op != "" {
		return line
	}
	word, err := unquote(rest[:pieces[0].end])
	switch {
	case err != nil:
		return rest
	case len(pieces) == 1 && strings.Contains(word, " ") && strings.ContainsAny(rest[:1], `'"`):
		return strings.TrimSpace(word) // sh "ls -la"
	}
	if shell := s.scriptShell(name, word); shell != "" {
		return shell + " " + rest
	}
	return rest
}

// dashC returns the command in "-c 'command'".
func dashC(rest string) (string, bool) {
	pieces, err := scan(rest)
	if err != nil || len(pieces) != 2 || pieces[1].op != "" {
		return "", false
	}
	if flag := rest[:pieces[0].end]; flag != "-c" && flag != "-lc" {
		return "", false
	}
	inner, err := unquote(rest[pieces[1].start:pieces[1].end])
	return strings.TrimSpace(inner), err == nil && strings.TrimSpace(inner) != ""
}

// scriptShell returns the shell that runs the file word, or "" if word is no
// script. A model says sh and means this tool: the script says which shell it needs.
func (s *Shell) scriptShell(name, word string) string {
	files := s.Env.Box.Files()
	rel, err := files.Rel(s.Env.Dir, word)
	if err != nil {
		return ""
	}
	info, err := files.Stat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := files.ReadFile(rel, maxShown)
	first, _, _ := strings.Cut(string(data), "\n")
	switch program := !strings.HasSuffix(rel, ".sh") && info.Mode()&0o111 != 0; {
	case err != nil || program:
		return ""
	case strings.HasPrefix(first, "#!") && strings.HasSuffix(strings.TrimSpace(first), "bash"):
		return "bash"
	}
	return name
}
