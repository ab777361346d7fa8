package act

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A block says that old lines become new ones.
type block struct{ old, new []string }

// A match is where a block was applied.
type match struct {
	from, to int    // the new lines
	shift    int    // by how many lines what follows moved
	how      string // what had to be overlooked; empty for an exact match
}

const searchMark = "<<<<<<< SEARCH"

var (
	blockStart  = regexp.MustCompile(`^\s*<{5,9} ?(SEARCH|ORIGINAL|OLD|HEAD)?:?\s*$`)
	blockMiddle = regexp.MustCompile(`^\s*={5,9}\s*$`)
	blockEnd    = regexp.MustCompile(`^\s*>{5,9} ?(REPLACE|UPDATED|NEW)?:?\s*$`)
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

// apply replaces the one place in doc that the block means. It tries what is
// exactly the same, then the same but for blanks at line ends, then the same but
// for indentation, then a part of one line; the first way that finds anything
// decides, and must find one place only.
func (b block) apply(doc *document) (match, error) {
	switch line := placeholder(strings.Join(b.new, "\n"), strings.Join(b.old, "\n")); {
	case len(b.old) == 0 || strings.TrimSpace(strings.Join(b.old, "")) == "":
		return match{}, errors.New("the SEARCH part is empty, so the place is not clear")
	case line != "":
		return match{}, fmt.Errorf("%q stands for code that would be lost", line)
	case slices.Equal(b.old, b.new):
		return match{}, errors.New("the old and the new text are the same")
	}
	for _, way := range ways {
		at := find(doc.lines, b.old, way.same)
		if len(at) > 1 {
			return match{}, fmt.Errorf("the old text is there %d times, at lines %s; add lines around it", len(at), lineList(at))
		}
		if len(at) == 1 {
			return b.put(doc, at[0], way.how), nil
		}
	}
	return b.applyInside(doc)
}

// ways are the ways in which a line of the block can be one of the file.
var ways = []struct {
	same func(file, search string) bool
	how  string
}{
	{func(a, b string) bool { return a == b }, ""},
	{func(a, b string) bool { return strings.TrimRight(a, " \t\r") == strings.TrimRight(b, " \t\r") }, "when blanks at line ends were ignored"},
	{func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }, "when indentation was ignored"},
}

// find returns the indexes at which the lines of search stand in all.
func find(all, search []string, same func(a, b string) bool) []int {
	var at []int
	for i := 0; i+len(search) <= len(all); i++ {
		if slices.EqualFunc(all[i:i+len(search)], search, same) {
			at = append(at, i)
		}
	}
	return at
}

// put replaces the lines at index i, with the indentation and the line ends that
// the file has there.
func (b block) put(doc *document, i int, how string) match {
	fresh := b.new
	if how != "" {
		fresh = reindent(doc.lines[i:i+len(b.old)], b.old, b.new)
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
		for range strings.Count(l, old) {
			at = append(at, i)
		}
	}
	switch {
	case len(at) == 0:
		return match{}, errNotFound
	case len(at) > 1:
		return match{}, fmt.Errorf("the old text is there %d times, at lines %s; add lines around it", len(at), lineList(at))
	}
	doc.lines = slices.Clone(doc.lines)
	doc.lines[at[0]] = strings.Replace(doc.lines[at[0]], old, fresh, 1)
	return match{at[0] + 1, at[0] + 1, 0, ""}, nil
}

var errNotFound = errors.New("the old text is not in the file")

// lineList writes indexes as line numbers.
func lineList(at []int) string {
	const most = 5
	var words []string
	for _, i := range at[:min(most, len(at))] {
		words = append(words, fmt.Sprint(i+1))
	}
	return few(words, most)
}

// reindent gives the new lines the indentation of the file: where the block has
// an indentation that the file writes in another way, the file's is taken.
func reindent(file, old, fresh []string) []string {
	inFile := map[string]string{}
	longest := func(indent string) string {
		best := ""
		for known := range inFile {
			if strings.HasPrefix(indent, known) && len(known) > len(best) {
				best = known
			}
		}
		return best
	}
	for i := range old {
		if _, known := inFile[indentOf(old[i])]; !known && strings.TrimSpace(old[i]) != "" {
			inFile[indentOf(old[i])] = indentOf(file[i])
		}
	}
	tabs := strings.Contains(strings.Join(file, ""), "\t")
	out := make([]string, len(fresh))
	for i, l := range fresh {
		indent := indentOf(l)
		known := longest(indent)
		more := strings.TrimPrefix(indent, known)
		if tabs {
			more = strings.ReplaceAll(more, "    ", "\t")
		}
		out[i] = inFile[known] + more + strings.TrimPrefix(l, indent)
		if strings.TrimSpace(l) == "" {
			out[i] = ""
		}
	}
	return out
}

func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// placeholders match lines that stand for code which the model did not repeat.
var placeholders = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^\s*(#|//|/\*|<!--|--|;|\{/\*)\s*(\.\.\.|…)?\s*\(?(the )?(rest|remainder|existing|remaining|previous|other|same)\b.*\b(code|file|function|functions|content|contents|lines?|methods?|unchanged|as before|here|class|implementation|stays|remains)\b`),
	regexp.MustCompile(`(?i)^\s*(#|//|/\*|<!--|--|;|\{/\*)?\s*(\.\.\.|…)\s*\(?(rest|existing|remaining|unchanged|same|keep|previous|other)\b`),
	regexp.MustCompile(`(?i)^\s*(#|//|/\*|<!--|--|;)\s*(\.\.\.|…)\s*(\*/|-->)?\s*$`),
	regexp.MustCompile(`^\s*[(\[]… .*(not shown here|left out).*[)\]]\s*$`), // what stands for it where a text is shown
	regexp.MustCompile(`\(… line cut, [^()]* more\)\s*$`),
}

// placeholder returns the first line of fresh that stands for code, unless the old
// text has that line as well.
func placeholder(fresh, old string) string {
	had := strings.Split(old, "\n")
	for _, l := range strings.Split(fresh, "\n") {
		for _, re := range placeholders {
			if re.MatchString(l) && !slices.Contains(had, l) {
				return strings.TrimSpace(l)
			}
		}
	}
	return ""
}

// closest returns the index at which the lines of all are most like search.
func closest(all, search []string) int {
	best, at := -1.0, 0
	for i := range all {
		score := 0.0
		for j, want := range search {
			if i+j < len(all) {
				score += likeness(strings.TrimSpace(all[i+j]), strings.TrimSpace(want))
			}
		}
		if score > best {
			best, at = score, i
		}
	}
	return at
}

// likeness is the share of two lines that is the same at their beginning and end.
func likeness(a, b string) float64 {
	n := min(len(a), len(b))
	head, tail := 0, 0
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if n == 0 {
		return 0
	}
	return float64(head+tail) / float64(max(len(a), len(b)))
}
