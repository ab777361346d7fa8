package act

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A section is what a patch says about one file.
type section struct {
	name   string // as the patch has it, without a/ and b/; empty if it does not say
	kind   string // patchUpdate and the others
	blocks []block
	lines  []string // of a new file
}

const (
	patchUpdate = "change"
	patchAdd    = "make"
	patchDelete = "delete"
	patchMove   = "rename"
)

var (
	patchStart = regexp.MustCompile(`^(\*\*\* (Begin Patch|(Update|Add|Delete) File: )|diff --git |@@( .*[-+@,\w]|$))`)
	fileLine   = regexp.MustCompile(`^\*\*\* (Update|Add|Delete) File: *(.+?)\s*$`)
	gitLine    = regexp.MustCompile(`^diff --git a/(.+) b/(.+)$`)
	gitNote    = regexp.MustCompile(`^(index [0-9a-f]+\.\.|(old|new|new file|deleted file) mode |(dis)?similarity index |rename (from|to) )`)
	hunkLine   = regexp.MustCompile(`^@@+(?: *-(\d+)(?:,\d+)? +\+\d+(?:,\d+)?)? *(?:@@+)? ?(.*?)(?: @@)?\s*$`)
)

// isPatch reports whether a text is a unified diff or in the form of apply_patch.
func isPatch(text string) bool {
	all := splitLines(text)
	for i, l := range all {
		if patchStart.MatchString(l) || isFileHeader(all[i:]) {
			return true
		}
	}
	return isBare(all)
}

// isFileHeader reports whether lines begin with the two that name a file in a diff.
func isFileHeader(lines []string) bool {
	return len(lines) > 1 && strings.HasPrefix(lines[0], "--- ") && strings.HasPrefix(lines[1], "+++ ")
}

// isBare reports whether lines are those of a hunk and nothing else.
func isBare(lines []string) bool {
	marks := ""
	for _, l := range lines {
		if l == "" {
			continue
		}
		if !strings.Contains("+- ", l[:1]) {
			return false
		}
		marks += l[:1]
	}
	return strings.Contains(marks, "-") && strings.Contains(marks, "+")
}

// marks reports whether lines are those of the file with marks of a diff on the
// changed ones only.
func marks(file, lines []string) bool {
	had := func(l string) bool {
		return slices.ContainsFunc(file, func(f string) bool { return strings.TrimSpace(f) == strings.TrimSpace(l) })
	}
	gone, fresh := 0, 0
	for _, l := range lines {
		switch {
		case strings.HasPrefix(l, "-") && had(l[1:]):
			gone++
		case strings.HasPrefix(l, "+"):
			fresh++
		case !had(l):
			return false
		}
	}
	return gone > 0 && fresh > 0
}

// A patchReader reads a patch as models write it: with wrong counts and line
// numbers, with blank lines that lack their mark, in both forms.
type patchReader struct {
	sections []section
	hunk     *hunk
}

// A hunk is a change that is being read.
type hunk struct {
	at       int // the line at which it says that it begins; 0 if it does not
	heading  string
	lines    []string
	atTheEnd bool // it says that it is at the end of the file
}

// parsePatch reads the sections of a patch. What stands around it is ignored.
func parsePatch(text string) ([]section, error) {
	r := patchReader{}
	all := splitLines(text)
	if isBare(all) {
		r.hunk = &hunk{}
	}
	for i := 0; i < len(all); i++ {
		if isFileHeader(all[i:]) {
			r.header(all[i][4:], all[i+1][4:])
			i++
			continue
		}
		r.line(all[i])
	}
	r.close()
	if len(r.sections) == 0 {
		return nil, errors.New("the patch has no line that begins with + or -")
	}
	return r.sections, nil
}

// header takes up the two lines that name a file in a diff.
func (r *patchReader) header(from, to string) {
	r.close()
	from, to = patchName(from), patchName(to)
	switch {
	case from == "/dev/null":
		r.open(to, patchAdd)
	case to == "/dev/null":
		r.open(from, patchDelete)
	default:
		r.open(to, patchUpdate)
	}
}

// open begins a section, or completes the one that a line before it began.
func (r *patchReader) open(name, kind string) {
	if n := len(r.sections); n > 0 && len(r.sections[n-1].blocks) == 0 && len(r.sections[n-1].lines) == 0 && r.sections[n-1].name == name {
		if kind != patchUpdate {
			r.sections[n-1].kind = kind
		}
		return
	}
	r.sections = append(r.sections, section{name: name, kind: kind})
}

// line takes up any other line.
func (r *patchReader) line(l string) {
	m, git := fileLine.FindStringSubmatch(l), gitLine.FindStringSubmatch(l)
	switch {
	case m != nil:
		r.close()
		r.open(patchName(m[2]), map[string]string{"Update": patchUpdate, "Add": patchAdd, "Delete": patchDelete}[m[1]])
	case git != nil:
		r.close()
		r.open(git[2], patchUpdate)
	case strings.HasPrefix(l, "*** Move to:"):
		r.last().kind = patchMove
	case l == "*** End of File" && r.hunk != nil:
		r.hunk.atTheEnd = true
	case strings.HasPrefix(l, "*** "), l == "```":
		r.close()
	case hunkLine.MatchString(l):
		r.close()
		h := hunkLine.FindStringSubmatch(l)
		at, _ := strconv.Atoi(h[1])
		r.hunk = &hunk{at: at, heading: strings.Trim(h[2], ". ")}
	case r.hunk == nil && gitNote.MatchString(l):
		if strings.HasPrefix(l, "rename ") {
			r.last().kind = patchMove
		}
	case r.hunk != nil:
		r.hunk.lines = append(r.hunk.lines, l)
	case len(r.sections) > 0 && l != "" && strings.Contains("+- ", l[:1]):
		r.hunk = &hunk{lines: []string{l}}
	}
}

// last is the section that is being read.
func (r *patchReader) last() *section {
	if len(r.sections) == 0 {
		r.sections = append(r.sections, section{kind: patchUpdate})
	}
	return &r.sections[len(r.sections)-1]
}

// close ends a hunk.
func (r *patchReader) close() {
	h := r.hunk
	r.hunk = nil
	if h == nil || !slices.ContainsFunc(h.lines, func(l string) bool { return l != "" && (l[0] == '+' || l[0] == '-') }) {
		return
	}
	s := r.last()
	b := h.block()
	if s.kind == patchAdd {
		s.lines = append(s.lines, b.new...)
		return
	}
	s.blocks = append(s.blocks, b)
}

// block is the change without its marks. Blank lines at its ends that lack the
// mark of one are no part of it.
func (h *hunk) block() block {
	lines := h.lines
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	b := block{at: h.at, heading: h.heading, atTheEnd: h.atTheEnd}
	loose := block{}
	last := byte(0)
	for _, l := range lines {
		mark, text := byte(' '), l
		if l != "" && strings.Contains("+- ", l[:1]) || strings.HasPrefix(l, `\ `) {
			mark, text = l[0], l[1:]
		}
		switch mark {
		case '\\':
			b.oldOpen = b.oldOpen || last != '+'
			b.newOpen = b.newOpen || last != '-'
			continue
		case '-':
			b.old, loose.old = append(b.old, text), append(loose.old, text)
		case '+':
			b.new, loose.new = append(b.new, text), append(loose.new, text)
		default:
			b.old, loose.old = append(b.old, text), append(loose.old, l)
			b.new, loose.new = append(b.new, text), append(loose.new, l)
		}
		last = mark
	}
	if !slices.Equal(b.old, loose.old) {
		b.loose = &loose
	}
	return b
}

// patchName is the name of a file in the head of a diff, without the prefix of
// git and a time behind a tab.
func patchName(name string) string {
	name, _, _ = strings.Cut(name, "\t")
	name = strings.Trim(strings.TrimSpace(name), `"`)
	for _, prefix := range []string{"a/", "b/", "./"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

// sameFile reports whether two paths name one file although they may be relative
// to different folders.
func sameFile(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

// beginsPatch reports whether a text is a patch and nothing else, and not for a
// file that holds one.
func beginsPatch(name, text string) bool {
	all := splitLines(strings.TrimLeft(text, " \n"))
	if len(all) == 0 || holdsPatch(name) {
		return false
	}
	return patchStart.MatchString(all[0]) || isFileHeader(all)
}

// holdsPatch reports whether a file of that name has a patch for its text.
func holdsPatch(name string) bool {
	return slices.Contains([]string{".patch", ".diff"}, path.Ext(name))
}

// newFile is the text of a file that a patch makes.
func newFile(t target, text string) (string, error) {
	sections, err := parsePatch(text)
	switch {
	case err != nil:
		return "", err
	case len(sections) == 1 && sections[0].kind == patchAdd:
		return ended(strings.Join(sections[0].lines, "\n")), nil
	}
	return "", fmt.Errorf("%s is not there, and the text is a patch that changes a file", t.name)
}
