package act

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tether/sandbox"
)

// shReach is what a program has where no network is granted; see Shell.help.
const shReach = "No network, no terminal"

var shCommand = &Command{
	Name:    "sh",
	Args:    "LINE",
	Summary: "run programs (ls, wc, sort, python3)",
	Detail: "Runs LINE with bash in the workspace. " + shReach + "; cd is kept.\n" +
		"Any line that begins with a program works without sh. Start a server with\n" +
		"& and send its output to a file.\nexample: python3 test.py | tail -5",
	Raw: true,
	Run: func(context.Context, *Env, []string) error { return errProgram },
}

// program runs a line with bash in the sandbox, if sh was granted.
func (s *Shell) program(ctx context.Context, line, stdin string) part {
	sh, name := s.command("sh"), firstWord(line)
	if sh == nil || isReserved(name) && s.command(name) == nil && name != "sh" {
		return s.notGranted(name)
	}
	if pieces, _ := scan(line); sh != nil && (line == "sh" || strings.HasSuffix(line, "--help") && len(pieces) == 2 && name == "sh") {
		return part{content: s.help(sh)}
	}
	if refused := s.keys(line, stdin); refused != nil {
		return refusal(refused)
	}
	if refused := s.nameless(line); refused != nil {
		p := refusal(refused)
		p.nameless = true
		return p
	}
	return s.execute(ctx, line, stdin)
}

// Program runs a line as a program and as nothing else: no built-in is looked
// for, and what bash makes of a word that is a command of tether elsewhere is
// what counts. Gates are such lines: they are a person's, not a model's.
func (s *Shell) Program(ctx context.Context, line string) Result {
	return s.execute(ctx, line, "").result()
}

// execute runs a line with bash in the sandbox.
func (s *Shell) execute(ctx context.Context, line, stdin string) part {
	if err := s.approve(ctx, shCommand, []string{line}); err != nil {
		return refusal(err)
	}
	w := watched(line)
	return s.runs(ctx, sandbox.Cmd{Shell: w.line, Dir: s.startIn(line)}, w, line, stdin)
}

// runs runs cmd in the sandbox and says what came of it. line is how the model
// wrote it.
func (s *Shell) runs(ctx context.Context, cmd sandbox.Cmd, w watch, line, stdin string) part {
	text, named := s.fed(line, stdin)
	if text != "" {
		cmd.Stdin = strings.NewReader(text)
	}
	files := s.Env.Box.Files()
	before, modes := files.Snapshot(ctx), s.modes()
	got, err := s.Env.Box.Run(ctx, cmd)
	if err != nil {
		return part{err: err}
	}
	var statuses []int
	got.Output, statuses = w.statuses(got.Output)
	changed := slices.DeleteFunc(before.Changed(files.Snapshot(ctx)), func(rel string) bool { return isCache(rel) || s.isAsSeen(rel, modes) })
	moved := got.Dir != s.Env.Dir && !(inRoot(got.Dir) && inRoot(s.Env.Dir))
	if s.Env.Dir = got.Dir; got.Status != OK {
		got.Output = s.Env.near(got.Output)
	}
	p := part{status: got.Status, content: elided(got)}
	p.changed = len(changed) > 0
	for _, f := range got.Planted {
		p.found = append(p.found, f.Path+": "+f.Why)
	}
	s.glance(line, got.Output)
	p.said = append(p.said, s.changes(changed, got.Output)...)
	p.said = append(p.said, s.ending(line, got, len(changed) > 0))
	if faults := s.faults(ctx, changed); faults != nil {
		p.broken, p.said = true, append(p.said, faults...)
	}
	word := w.masked(statuses)
	if got.Status != OK {
		word = withheld(line)
	}
	if word != "" {
		p.said = append(p.said, word)
	}
	if named != "" {
		p.said = append(p.said, fmt.Sprintf("It read %s, the file that stdin named.", named))
	}
	if name := s.misplaced(line, stdin, changed); name != "" && s.command("write") != nil {
		p.said = append(p.said, fmt.Sprintf("The program read the text in stdin; %s was not changed by it. To change it: write %s", name, Quote(name)))
	}
	if word := unreachable(s.Env.Box.Policy(), got); word != "" {
		p.said = append(p.said, word)
	}
	if moved || got.Status != OK && !inRoot(s.Env.Dir) {
		p.said = append(p.said, fmt.Sprintf("The working directory is %s.", s.place()))
	}
	return p
}

// modes are the modes of the files that the model has seen.
func (s *Shell) modes() map[string]fs.FileMode {
	modes := map[string]fs.FileMode{}
	for rel := range s.Env.seen {
		if info, err := s.Env.Box.Files().Stat(rel); err == nil {
			modes[rel] = info.Mode()
		}
	}
	return modes
}

// isAsSeen reports whether a file holds what the model saw last, in the mode that
// it had: then it was written again, and nothing has changed.
func (s *Shell) isAsSeen(rel string, modes map[string]fs.FileMode) bool {
	mode, seen := modes[rel]
	if info, err := s.Env.Box.Files().Stat(rel); !seen || err != nil || info.Mode() != mode {
		return false
	}
	data, err := s.Env.Box.Files().ReadFile(rel, maxShown)
	return err == nil && s.Env.knows(rel, data)
}

// cdLine matches a line that goes to a folder first.
var cdLine = regexp.MustCompile(`^cd +([\w.+@-][\w.+@/-]*)( *(&&|;)|$)`)

// startIn is the folder in which a line begins: the working directory, or the top
// of the workspace for a line that goes to a folder which is only there. A model
// writes "cd sub && make" each time, although it is in sub.
func (s *Shell) startIn(line string) string {
	m := cdLine.FindStringSubmatch(line)
	if m == nil || inRoot(s.Env.Dir) || s.Env.isFolder(path.Join(s.Env.Dir, m[1])) || !s.Env.isFolder(path.Clean(m[1])) {
		return s.Env.Dir
	}
	return ""
}

// misplaced names the file on the line of which stdin is another state: the text
// was meant for the file, and the program has read it instead.
func (s *Shell) misplaced(line, stdin string, changed []string) string {
	pieces, _ := scan(line)
	for _, p := range pieces {
		word, err := unquote(line[p.start:p.end])
		if p.op != "" || err != nil || stdin == "" {
			continue
		}
		rel, err := s.Env.Box.Files().Rel(s.Env.Dir, word)
		if err != nil || slices.Contains(changed, rel) {
			continue
		}
		old, err := s.Env.Box.Files().ReadFile(rel, maxSaid)
		if err == nil && string(old) != stdin && (deaf(rel, old) || rewrites(parseDocument(old).lines, splitLines(stdin))) {
			return s.Env.shown(rel)
		}
	}
	return ""
}

func inRoot(dir string) bool { return dir == "" || dir == "." }

// place names the working directory for the model.
func (s *Shell) place() string {
	if inRoot(s.Env.Dir) {
		return "the top of the workspace"
	}
	return s.Env.Dir
}

// elided is the output of a program, with a word about what the sandbox left out.
func elided(o sandbox.Outcome) string {
	if o.Left == 0 {
		return o.Output
	}
	return lines([]string{o.Output, fmt.Sprintf("(%s were left out of the middle.)", size(o.Left))})
}

// isCache reports whether a changed file is a by-product that is no progress.
func isCache(rel string) bool {
	return strings.Contains(rel, "__pycache__/") || strings.HasSuffix(rel, ".pyc") || strings.Contains(rel, ".pytest_cache/")
}

// firstWord returns the name of the program that a line begins with.
func firstWord(line string) string {
	pieces, _ := scan(line)
	if len(pieces) == 0 || pieces[0].op != "" {
		name, _, _ := strings.Cut(line, " ")
		return name
	}
	return line[pieces[0].start:pieces[0].end]
}

// glance notes the files that a program such as cat has shown whole.
func (s *Shell) glance(line, output string) {
	const few = 8 // words looked at: more are not a request to see a file
	pieces, _ := scan(line)
	for _, p := range pieces[:min(few, len(pieces))] {
		word, err := unquote(line[p.start:p.end])
		if p.op != "" || err != nil {
			continue
		}
		rel, err := s.Env.Box.Files().Rel(s.Env.Dir, word)
		if err != nil {
			continue
		}
		data, err := s.Env.Box.Files().ReadFile(rel, maxSaid)
		if err == nil && len(data) > 0 && strings.Contains(output, strings.TrimRight(string(data), "\n")) {
			s.Env.saw(rel, data)
		}
	}
}

// changes names the files that a program changed, and shows the only one.
func (s *Shell) changes(changed []string, output string) []string {
	const most = 6 // names; a build changes hundreds and the model needs none
	if len(changed) == 0 {
		return nil
	}
	var names, gone []string
	for _, rel := range changed {
		rel, folder := strings.CutSuffix(rel, "/")
		name := inLine(s.Env.shown(rel))
		if folder {
			name += "/"
		}
		if !s.Env.listed(rel) {
			gone = append(gone, name)
		} else {
			names = append(names, name)
		}
	}
	var said []string
	if len(gone) > 0 {
		said = append(said, "It deleted "+few(gone, most)+".")
	}
	if len(names) == 1 && len(gone) == 0 {
		return s.showChanged(changed[0], names[0], output)
	}
	if len(names) > 0 {
		said = append(said, "It changed "+few(names, most)+".")
	}
	return said
}

// showChanged shows what a redirection wrote: a model that sees no text believes
// that nothing happened.
func (s *Shell) showChanged(rel, name, output string) []string {
	data, err := s.Env.Box.Files().ReadFile(rel, maxSaid)
	switch {
	case strings.HasSuffix(rel, "/"):
		return []string{fmt.Sprintf("The folder %s is there now.", name)}
	case err != nil || isBinary(data) || strings.TrimSpace(output) == strings.TrimSpace(string(data)) && len(data) > 0:
		return []string{fmt.Sprintf("It changed %s.", name)}
	case len(data) == 0:
		return []string{fmt.Sprintf("%s is an empty file now.", name)}
	}
	if len(data) <= maxEcho {
		s.Env.saw(rel, data)
	}
	return []string{fmt.Sprintf("%s now holds:", name), clip(strings.TrimPrefix(string(data), bom), maxEcho)}
}

// inLine writes a name that has a line break or another control character in it
// so that it cannot pass for a line of its own.
func inLine(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// few joins at most n names and says how many more there are.
func few(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// ending says in a sentence how a program ended: an output without one is read
// as a failure, and a bare number is copied into the next file.
func (s *Shell) ending(line string, o sandbox.Outcome, changed bool) string {
	pieces, _ := scan(line)
	pipe := slices.ContainsFunc(pieces, func(p piece) bool { return p.op == "|" || p.op == "|&" })
	silent := strings.TrimSpace(o.Output) == ""
	switch {
	case o.TimedOut:
		return fmt.Sprintf("error: stopped, because it did not end within %s; start a server with & and send its output to a file",
			s.Env.Box.Policy().Timeout.Round(100*time.Millisecond))
	case o.Killed != "":
		return fmt.Sprintf("error: the command was stopped: %s", o.Killed)
	case o.Status != 0:
		if strings.Contains(o.Output, noSemicolon) {
			return failure(line, o.Status, silent) + "\ntry: " + unended.ReplaceAllString(line, "{}$1 ';'")
		}
		if name := s.buried(pieces, line); name != "" && o.Status == NotFound {
			return fmt.Sprintf("error: %s is no program; it can begin a line or stand behind &&, ;, ||, |\ntry: %s --help", name, name)
		}
		if m := bashRead.FindStringSubmatch(o.Output); m != nil && s.Env.fileName(m[1]) != "" {
			return "error: in a loop, behind if or a variable, read is a word of the shell; cat shows a file there\ntry: " + shellRead.ReplaceAllString(line, "cat ")
		}
		return failure(line, o.Status, silent)
	case pipe && silent:
		return "The last command of the pipe succeeded; nothing was printed."
	case pipe:
		return "The last command of the pipe succeeded."
	case silent && !changed && len(pieces) > 0 && slices.Contains(filters, firstWord(line)) && !strings.Contains(line, "<<") && !s.names(pieces, line):
		return succeeded + " and printed nothing: it was given no file to read."
	case silent && !changed:
		return succeeded + " and printed nothing."
	case !changed:
		return succeeded + ". It changed no file."
	}
	return succeeded + "."
}

// buried is the built-in that begins a command in a place that only a shell can
// take apart: in parentheses, in a loop.
func (s *Shell) buried(pieces []piece, line string) string {
	begins := true
	for _, p := range pieces {
		word := line[p.start:p.end]
		if begins && p.op == "" && s.ours(word) && word != "read" && word != "done" {
			return word
		}
		begins = p.op != "" && !strings.ContainsAny(p.op, "<>") || begins && slices.Contains(keywords, word)
	}
	return ""
}

// succeeded begins the sentence on a program that did.
const succeeded = "The command succeeded"

// noSemicolon is what find says of an -exec without its end; unended is how
// such a line ends.
const noSemicolon = "missing argument to `-exec'"

var unended = regexp.MustCompile(`\{\}((?: [\w./-]+)*)[;\s]*$`)

// python begins a line that is source text, sent as if it were a command.
var python = []string{"def", "import", "from", "class", "print", "elif", "except"}

func failure(line string, status int, silent bool) string {
	name := firstWord(line)
	base, _, _ := strings.Cut(name, "(")
	switch {
	case slices.Contains(python, base):
		return "error: that is Python, not a command; put it in the stdin of python3\ntry: python3 -"
	case status == NotFound:
		return "The command failed: a program in it is not installed here (exit status 127)."
	case status == Denied:
		return fmt.Sprintf("The command failed: %s may not be executed (exit status 126).", path.Base(name))
	case status > 128 && status <= 128+64: // git and others say 255 for any failure
		return fmt.Sprintf("The command failed: signal %d ended it.", status-128)
	case silent:
		return fmt.Sprintf("The command printed nothing and failed with exit status %d.", status)
	}
	return fmt.Sprintf("The command failed with exit status %d.", status)
}
