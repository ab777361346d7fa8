package act

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A block says that old lines become new ones. What else it knows of the place
// chooses among several that have the old lines, and never stands for them.
type block struct {
	old, new []string

	within   span   // of edit FILE A:B; from 0: not given
	at       int    // the line at which a patch says that the old lines begin; 0: it does not
	heading  string // of a hunk: the text behind @@
	atTheEnd bool   // of a hunk: at the end of the file
	oldOpen  bool   // of a hunk: the old last line has no newline
	newOpen  bool   // of a hunk: the new last line has none
	loose    *block // of a hunk: the same if kept lines came without their mark
}

// A match is where a block was applied.
type match struct {
	from, to int    // the new lines
	shift    int    // by how many lines what follows moved
	how      string // what had to be overlooked; empty for an exact match
}

var (
	blockStart  = regexp.MustCompile(`^\s*(<{5,9} ?(SEARCH|ORIGINAL|OLD|HEAD)?:?|-{5,9} ?SEARCH)\s*$`)
	blockMiddle = regexp.MustCompile(`^\s*={5,9}\s*$`)
	blockEnd    = regexp.MustCompile(`^\s*(>{5,9} ?(REPLACE|UPDATED|NEW)?:?|\+{5,9} ?REPLACE)\s*$`)
	// blockLine is what some models were taught to put in front of the old lines.
	blockLine = regexp.MustCompile(`^(:start_line: *(\d+)|:end_line: *\d+|-{5,9})\s*$`)
)

// hasBlock reports whether a text has a line that begins a block and one that
// ends one.
func hasBlock(text string) bool {
	all := splitLines(text)
	return slices.ContainsFunc(all, blockStart.MatchString) && slices.ContainsFunc(all, blockEnd.MatchString)
}

// parseBlocks reads SEARCH/REPLACE blocks. Text between them is ignored: models
// name the file there.
func parseBlocks(text string) ([]block, error) {
	var blocks []block
	var b block
	const outside, inOld, inNew = 0, 1, 2
	state := outside
	for _, l := range splitLines(text) {
		switch {
		case state == outside && blockStart.MatchString(l):
			state, b = inOld, block{}
		case state == inOld && blockMiddle.MatchString(l):
			state = inNew
		case state == inNew && blockEnd.MatchString(l):
			state, blocks = outside, append(blocks, b)
		case state == inOld && len(b.old) == 0 && blockLine.MatchString(l) && (b.at > 0 || l[0] == ':'):
			if n, err := strconv.Atoi(blockLine.FindStringSubmatch(l)[2]); err == nil {
				b.at = n
			}
		case state == inOld:
			b.old = append(b.old, l)
		case state == inNew:
			b.new = append(b.new, l)
		}
	}
	switch {
	case state != outside:
		return nil, errors.New("a block is not complete: it needs <<<<<<< SEARCH, =======, >>>>>>> REPLACE")
	case len(blocks) == 0 && strings.TrimSpace(text) == "":
		return nil, errors.New("there is nothing in stdin")
	case len(blocks) == 0:
		return nil, errors.New("stdin has no <<<<<<< SEARCH block")
	}
	return blocks, nil
}

// apply replaces the one place in doc that the block means; name is the file. It
// tries what is exactly the same, then the same but for blanks at line ends, then
// the same but for indentation, then a part of one line; the first way that finds
// anything decides, and must find one place only.
func (b block) apply(doc *document, name string) (match, error) {
	switch line := placeholder(name, strings.Join(b.new, "\n"), strings.Join(b.old, "\n")); {
	case len(doc.lines) == 0 && len(b.old) == 0 && len(b.new) > 0:
		return b.put(doc, 0, ""), nil
	case strings.TrimSpace(strings.Join(b.old, "")) == "":
		return match{}, errNoOld
	case line != "":
		return match{}, fmt.Errorf("%q stands for code that would be lost", line)
	case slices.Equal(b.old, b.new) && b.oldOpen == b.newOpen:
		return match{}, errors.New("the old and the new text are the same")
	}
	for _, way := range ways {
		for _, v := range b.readings() {
			at := v.choose(doc, find(doc.lines, v.old, way.same))
			if len(at) > 1 {
				return match{}, &ambiguity{at, len(v.old)}
			}
			if len(at) == 1 {
				return v.put(doc, at[0], way.how), nil
			}
		}
	}
	return b.applyInside(doc)
}

// readings are the ways to understand a block: as it stands, with kept lines that
// lack their mark, and without the numbers that read shows.
func (b block) readings() []block {
	all := []block{b}
	if b.loose != nil {
		v := b
		v.old, v.new = b.loose.old, b.loose.new
		all = append(all, v)
	}
	if m := numbered.FindStringSubmatch(b.old[0]); m != nil {
		v := b
		v.at, _ = strconv.Atoi(m[1])
		v.old, v.new = unnumberEach(b.old), unnumberEach(b.new)
		all = append(all, v)
	}
	return all
}

// unnumberEach takes the number off each line that has one.
func unnumberEach(lines []string) []string {
	out := slices.Clone(lines)
	for i, l := range out {
		if m := numbered.FindStringSubmatch(l); m != nil {
			out[i] = m[2]
		}
	}
	return out
}

// put replaces the lines at index i, with the indentation and the line ends that
// the file has there.
func (b block) put(doc *document, i int, how string) match {
	fresh := b.new
	if how != "" {
		fresh = reindent(doc.lines[i:i+len(b.old)], b.old, b.new)
		if strings.HasSuffix(doc.lines[i], "\r") { // in a file with line ends of both kinds
			for j := range fresh {
				fresh[j] = strings.TrimSuffix(fresh[j], "\r") + "\r"
			}
		}
	}
	if i+len(b.old) == len(doc.lines) && b.oldOpen != b.newOpen {
		doc.open = b.newOpen
	}
	doc.lines = splice(doc.lines, i, i+len(b.old), fresh)
	return match{i + 1, i + max(1, len(fresh)), len(fresh) - len(b.old), how}
}

// applyInside replaces a part of one line, if there is only one such part.
func (b block) applyInside(doc *document) (match, error) {
	if len(b.old) != 1 || len(b.new) > 1 {
		return match{}, errNotFound
	}
	old, fresh := b.old[0], strings.Join(b.new, "")
	var at []int
	for i, l := range doc.lines {
		for range parts(l, old) {
			at = append(at, i)
		}
	}
	if at = b.choose(doc, at); len(at) != 1 {
		if len(at) == 0 {
			return match{}, errNotFound
		}
		return match{}, &ambiguity{at, 1}
	}
	l := doc.lines[at[0]]
	column := parts(l, old)[0]
	doc.lines = slices.Clone(doc.lines)
	doc.lines[at[0]] = l[:column] + fresh + l[column+len(old):]
	return match{at[0] + 1, at[0] + 1, 0, ""}, nil
}

// parts are the offsets in line at which text stands between ends of words: x is
// no part of max.
func parts(line, text string) []int {
	var at []int
	for from := 0; from+len(text) <= len(line); from++ {
		if strings.HasPrefix(line[from:], text) && !joins(line, from) && !joins(line, from+len(text)) {
			at = append(at, from)
		}
	}
	return at
}

// joins reports whether there is no end of a word between the bytes before and at i.
func joins(line string, i int) bool {
	return i > 0 && i < len(line) && isWordByte(line[i-1]) && isWordByte(line[i])
}

func isWordByte(c byte) bool {
	return c == '_' || c >= utf8.RuneSelf || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

var (
	errNotFound = errors.New("the old text is not in the file")
	errNoOld    = errors.New("there are no old lines that tell the place")
)
