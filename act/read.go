package act

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tether/sandbox"
)

var readCommand = &Command{
	Name:    "read",
	Args:    "FILE [A:B]",
	Summary: "show a file or a folder",
	Detail: "Shows FILE, or the lines A to B of it, or what is in a folder. Lines of a\n" +
		"long file come after their numbers, which are not part of it. At most 200\n" +
		"lines at once.\nexample: read main.go 40:80",
	Flags: []Flag{{"n", "N", "the first N lines"}},
	Run:   runRead,
}

func runRead(_ context.Context, env *Env, args []string) error {
	if len(args) == 0 && env.fed {
		env.Say("That is what the command before it printed.")
		_, err := io.WriteString(env.Out, env.Stdin)
		return err
	}
	names, part, err := readArgs(env, env.unranged(env.unquoted(args)))
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(env.Flag("n")); err == nil && n > 0 && part == nil {
		part = &span{1, n}
	}
	for _, name := range names {
		if len(names) > 1 && !env.piped {
			fmt.Fprintf(env.Out, "== %s\n", name)
		}
		if err := readOne(env, name, part); err != nil {
			return err
		}
	}
	if len(names) > 1 {
		env.said = append(slices.DeleteFunc(env.said, isWhole), "Those are all of them.")
	}
	return nil
}

// isWhole reports whether a sentence says that a file was shown whole, which is
// said once for several files.
func isWhole(sentence string) bool { return strings.HasPrefix(sentence, allOf) }

const allOf = "That is all of "

var (
	spanForm   = regexp.MustCompile(`^L?(\d+)(?:[:,-]L?(\d+|\$|end)?)?$`)
	namedRange = regexp.MustCompile(`^(.+?):(\d+)(?:[:-](\d+))?$`)
)

// A span is a range of lines, both ends included. To 0 is the end of the file.
type span struct{ from, to int }

// String names the lines for a reader.
func (s span) String() string {
	if s.from == s.to {
		return fmt.Sprintf("line %d", s.from)
	}
	return fmt.Sprintf("lines %d to %d", s.from, s.to)
}

// parseSpan reads "A:B", "A-B", "A,B", "A:" and "A".
func parseSpan(word string) (span, bool) {
	m := spanForm.FindStringSubmatch(word)
	if m == nil {
		return span{}, false
	}
	from, _ := strconv.Atoi(m[1])
	to, err := strconv.Atoi(m[2])
	switch {
	case m[2] == "" && m[0] == m[1]:
		to = from
	case err != nil:
		to = 0
	case to < from:
		return span{}, false
	}
	return span{max(from, 1), to}, true
}

// readArgs tells files from ranges: "FILE A:B", "FILE A B", "A:B FILE", "F1 F2".
func readArgs(env *Env, args []string) (names []string, s *span, err error) {
	for _, a := range args {
		r, isSpan := parseSpan(a)
		if m := spanForm.FindStringSubmatch(a); m != nil && !isSpan {
			r, isSpan = parseSpan(m[2] + ":" + m[1]) // from the end to the beginning
		}
		switch {
		case isSpan && s == nil && (len(names) > 0 || len(args) > 1 && !env.there(a)):
			s = &r
		case isSpan && s != nil && s.to == s.from && r.to >= s.from:
			s.to = r.to
		default:
			names = append(names, env.paths(a)...)
		}
	}
	if name := env.fileName(strings.TrimSpace(env.Stdin)); len(names) == 0 && name != "" {
		names = []string{name}
	}
	if len(names) == 0 {
		return nil, nil, misuse(env.can("read ."), "which file? usage: %s", env.cmd.usage())
	}
	return names, s, nil
}

func readOne(env *Env, name string, s *span) error {
	rel, err := env.rel(name)
	if err != nil {
		return err
	}
	name = env.shown(rel)
	data, err := env.Box.Files().ReadFile(rel, maxShown)
	var odd *sandbox.NotRegularError
	switch {
	case errors.As(err, &odd) && odd.Kind == "folder", err != nil && env.isFolder(rel):
		return listFolder(env, rel)
	case err != nil:
		return env.fileError(name, err)
	case env.piped:
		_, err := env.Out.Write(data)
		return err
	case isBinary(data):
		return failed("", "%s is %s (%s), not text; there is nothing to read in it", name, kindOf(name), size(int64(len(data))))
	case len(data) == 0:
		env.saw(rel, data)
		env.Say("%s is empty.", name)
		return nil
	}
	return showFile(env, name, rel, data, s)
}

// isFolder reports whether rel is a folder.
func (e *Env) isFolder(rel string) bool {
	info, err := e.Box.Files().Stat(rel)
	return err == nil && info.IsDir()
}

// showFile prints lines of a file, with numbers if it is long.
func showFile(env *Env, name, rel string, data []byte, s *span) error {
	doc := parseDocument(data)
	total := len(doc.lines)
	want := span{1, total}
	if s != nil {
		want = *s
	}
	if want.to == 0 || want.to > total {
		want.to = total
	}
	if want.from > total {
		return failed(env.can("read "+Quote(name)), "%s has only %s", name, countLines(total))
	}
	last, cut := printLines(env.Out, doc.lines, want, total > smallFile)
	switch whole := want.from == 1 && last == total && !cut; {
	case whole:
		env.saw(rel, data)
		env.Say(allOf+"%s.", name)
	case last < want.to:
		env.Say("That is %s, %s of %d. For more: read %s %d:%d", name, span{want.from, last}, total, Quote(name), last+1, min(last+maxLines, total))
	default:
		env.Say("That is %s, %s of %d.", name, span{want.from, last}, total)
	}
	return nil
}

// printLines prints a range until a bound is reached; last is the last line
// printed, and cut says that a line was shortened.
func printLines(w io.Writer, all []string, s span, numbers bool) (last int, cut bool) {
	used := 0
	for n := s.from; n <= s.to; n++ {
		line := cutLine(all[n-1], maxColumns)
		if used += len(line) + 1; n > s.from && (used > maxSaid || n-s.from >= maxLines) {
			break
		}
		cut = cut || len(line) != len(all[n-1])
		if numbers {
			line = fmt.Sprintf("%d: %s", n, line)
		}
		fmt.Fprintln(w, line)
		last = n
	}
	return last, cut
}

// listFolder prints the names in a folder, folders with a slash.
func listFolder(env *Env, rel string) error {
	entries, err := env.Box.Files().ReadDir(rel)
	if err != nil {
		return env.fileError(rel, err)
	}
	name := "the folder " + env.shown(rel)
	if rel == "." {
		name = "the workspace"
	}
	shown := 0
	for _, e := range entries {
		switch {
		case isHidden(e.Name()):
		case shown < maxLines:
			fmt.Fprintln(env.Out, inLine(entryName(e)))
			fallthrough
		default:
			shown++
		}
	}
	switch {
	case env.piped:
	case shown == 0:
		env.Say("There is nothing in %s.", name)
	case shown > maxLines:
		env.Say("Those are the first %d of %d names in %s.", maxLines, shown, name)
	default:
		env.Say("That is all there is in %s.", name)
	}
	return nil
}

func entryName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// isHidden reports whether a name is the business of git or of tether alone.
func isHidden(name string) bool {
	base := path.Base(name)
	return base == ".git" || base == ".tether" || strings.HasPrefix(base, ".tether-")
}
