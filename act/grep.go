package act

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var grepCommand = &Command{
	Name:    "grep",
	Args:    "PATTERN [PATH...]",
	Summary: "find lines",
	Detail:  "Prints the lines that match PATTERN, in all files of the folder if no PATH\nis given.\nexample: grep -n 'func main' src",
	Flags: []Flag{
		{"i", "", "ignore case"}, {"l", "", "names of files only"}, {"n", "", "with line numbers"},
		{"r", "", ""}, {"R", "", ""}, {"E", "", ""},
	},
	Program: true,
	Run:     runGrep,
}

// Bounds of what one grep shows. A pipe gets everything.
const (
	maxMatches = 60
	maxMatch   = 200 // bytes of a line
)

// A search is one run of grep.
type search struct {
	env   *Env
	re    *regexp.Regexp
	names bool // before each line
	count int
}

func runGrep(ctx context.Context, env *Env, args []string) error {
	if len(args) == 0 {
		return misuse("grep --help", "which pattern? usage: %s", env.cmd.usage())
	}
	s := &search{env: env, re: pattern(args[0], env.Flag("i") != "")}
	if len(args) == 1 && env.Stdin != "" {
		return s.end(args, s.lines("", splitLines(env.Stdin)))
	}
	var where []string
	for _, a := range args[1:] {
		where = append(where, env.paths(a)...)
	}
	if len(where) == 0 {
		where = []string{"."}
	}
	files, err := s.files(ctx, where)
	if err != nil {
		return err
	}
	for _, rel := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.file(rel) != nil {
			break
		}
	}
	return s.end(args, nil)
}

// files returns the files to look into. Only one file, named as such, is shown
// without its name.
func (s *search) files(ctx context.Context, where []string) ([]string, error) {
	var files []string
	s.names = len(where) > 1
	for _, w := range where {
		rel, err := s.env.rel(w)
		if err != nil {
			return nil, err
		}
		if !s.env.isFolder(rel) {
			if _, err := s.env.Box.Files().Stat(rel); err != nil {
				return nil, s.env.fileError(w, err)
			}
			files = append(files, rel)
			continue
		}
		s.names = true
		found, err := s.env.searchable(ctx, rel)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// pattern compiles what the model wrote: as Go reads it, as basic grep reads it
// (\| for |), or as a plain text.
func pattern(text string, ignoreCase bool) *regexp.Regexp {
	flags := ""
	if ignoreCase {
		flags = "(?i)"
	}
	basic := strings.NewReplacer(`\|`, `|`, `\(`, `(`, `\)`, `)`, `\{`, `{`, `\}`, `}`, `\+`, `+`, `\?`, `?`, `\<`, `\b`, `\>`, `\b`)
	if strings.Contains(text, `\|`) || strings.Contains(text, `\<`) {
		text = basic.Replace(text)
	}
	if re, err := regexp.Compile(flags + text); err == nil {
		return re
	}
	return regexp.MustCompile(flags + regexp.QuoteMeta(text))
}

// errEnough stops a search at its bound.
var errEnough = fmt.Errorf("enough")

func (s *search) file(rel string) error {
	data, err := s.env.Box.Files().ReadFile(rel, maxShown)
	if err != nil || isBinary(data) {
		return nil // what cannot be read has no lines; a named file was looked at before
	}
	return s.lines(s.env.shown(rel), parseDocument(data).lines)
}

// lines prints the matching lines of one file.
func (s *search) lines(name string, all []string) error {
	for i, l := range all {
		if !s.re.MatchString(l) {
			continue
		}
		if s.count++; s.count > maxMatches && !s.env.piped {
			return errEnough
		}
		if s.env.Flag("l") != "" {
			fmt.Fprintln(s.env.Out, name)
			return nil
		}
		fmt.Fprintln(s.env.Out, s.format(name, i+1, l))
	}
	return nil
}

// format writes one line as grep does; where a model searches in many files it
// also gets the number, which it needs to read on.
func (s *search) format(name string, n int, line string) string {
	prefix := ""
	if s.names && name != "" {
		prefix = name + ":"
	}
	if s.env.Flag("n") != "" || s.names && !s.env.piped {
		prefix += fmt.Sprintf("%d:", n)
	}
	if s.env.piped {
		return prefix + line
	}
	return prefix + cutLine(line, maxMatch)
}

// end says how the search ended.
func (s *search) end(args []string, _ error) error {
	switch {
	case s.env.piped:
	case s.count == 0:
		return s.none(args)
	case s.count > maxMatches:
		s.env.Say("Those are the first %d matches; there are more. Give a folder or a longer pattern.", maxMatches)
	case s.count == 1:
		s.env.Say("That is the only match.")
	default:
		s.env.Say("Those are all matches.")
	}
	return nil
}

// none is the answer when nothing matches, with another try if it would match.
func (s *search) none(args []string) error {
	hint := ""
	if s.env.Flag("i") == "" {
		again := *s.env
		again.piped, again.flags, again.Out = true, map[string]string{"i": "on"}, &counter{}
		if runGrep(context.Background(), &again, args) == nil && again.Out.(*counter).n > 0 {
			hint = "grep -i"
			for _, a := range args {
				hint += " " + Quote(a)
			}
		}
	}
	where := "the files here"
	if len(args) > 1 {
		where = strings.Join(args[1:], ", ")
	} else if s.env.Stdin != "" {
		where = "the input"
	}
	return failed(hint, "no line matches %s in %s", args[0], path.Clean(where))
}

// A counter counts what is written to it.
type counter struct{ n int }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }
