package act

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ways are the ways in which a line of a block can be one of the file.
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

// An ambiguity says that the old text is in the file more than once and that
// nothing tells which one is meant.
type ambiguity struct {
	at []int // indexes of lines
	n  int   // how many lines each has
}

// Error names the lines.
func (a *ambiguity) Error() string {
	return fmt.Sprintf("the old text is there %d times, at lines %s", len(a.at), lineList(a.at))
}

// lineList writes indexes as line numbers.
func lineList(at []int) string {
	const most = 5
	var words []string
	for _, i := range at[:min(most, len(at))] {
		words = append(words, fmt.Sprint(i+1))
	}
	if len(at) > most {
		words = append(words, fmt.Sprintf("and %d more", len(at)-most))
	}
	return strings.Join(words, ", ")
}

// choose keeps of several places the one that the call names beside the text: the
// lines A:B, the line number of a hunk, its end of the file, the function or the
// section behind its @@. Each can only choose among places that have the text.
func (b block) choose(doc *document, at []int) []int {
	keep := func(test func(i int) bool) bool {
		left := slices.DeleteFunc(slices.Clone(at), func(i int) bool { return !test(i) })
		if len(left) > 0 {
			at = left
		}
		return len(at) == 1
	}
	switch n := len(b.old); {
	case len(at) < 2:
	case b.within.from > 0 && keep(func(i int) bool { return i+1 >= b.within.from && i < b.within.to }):
	case b.at > 0 && keep(func(i int) bool { return i+1 == b.at }):
	case b.atTheEnd && keep(func(i int) bool { return i+n == len(doc.lines) }):
	case b.heading != "":
		b.underHeading(doc, keep)
	}
	return at
}

// underHeading keeps what stands below the one line that a hunk names behind @@:
// in what is indented below it, or else anywhere behind it.
func (b block) underHeading(doc *document, keep func(func(int) bool) bool) {
	from := find(doc.lines, []string{b.heading}, ways[2].same)
	if len(from) == 0 {
		from = find(doc.lines, []string{b.heading}, func(file, part string) bool { return strings.Contains(file, part) })
	}
	if len(from) != 1 {
		return
	}
	to := from[0] + 1
	for to < len(doc.lines) && (strings.TrimSpace(doc.lines[to]) == "" || len(indentOf(doc.lines[to])) > len(indentOf(doc.lines[from[0]]))) {
		to++
	}
	if !keep(func(i int) bool { return i >= from[0] && i < to }) {
		keep(func(i int) bool { return i >= from[0] })
	}
}

// reindent gives new lines the indentation of the file. A line that the block
// keeps is the file's own; where the block has an indentation that the file writes
// in another way, the file's is taken.
func reindent(file, old, fresh []string) []string {
	kept, inFile := map[string]string{}, map[string]string{}
	for i, l := range old {
		if other, known := kept[l]; known && other != file[i] {
			kept[l] = l // in two ways: neither is the one
		} else {
			kept[l] = file[i]
		}
		if _, known := inFile[indentOf(l)]; !known && strings.TrimSpace(l) != "" {
			inFile[indentOf(l)] = indentOf(file[i])
		}
	}
	tabs := strings.Contains(strings.Join(file, ""), "\t")
	out := make([]string, len(fresh))
	for i, l := range fresh {
		same, isKept := kept[l]
		switch {
		case isKept && same != l:
			out[i] = same
		case strings.TrimSpace(l) != "":
			out[i] = indentLike(inFile, indentOf(l), tabs) + strings.TrimPrefix(l, indentOf(l))
		}
	}
	return out
}

// indentLike is an indentation of the block as the file has it. inFile are those
// that stand in both.
func indentLike(inFile map[string]string, indent string, tabs bool) string {
	best, found := "", false
	for known := range inFile {
		if strings.HasPrefix(indent, known) && len(known) >= len(best) {
			best, found = known, true
		}
	}
	if !found { // less than all that the block has: what the file has more, it has here, too
		for known, real := range inFile {
			if more, ok := strings.CutSuffix(real, known); ok {
				return more + indent
			}
		}
		return indent
	}
	more := strings.TrimPrefix(indent, best)
	if tabs {
		more = strings.ReplaceAll(more, "    ", "\t")
	}
	return inFile[best] + more
}

func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// comment is how a line begins that is one, in the languages that models write.
const comment = `^\s*(#|//|/\*|<!--|--|;|\{/\*)\s*`

// placeholders match lines that stand for code which the model did not repeat. A
// comment that goes on behind such a word says something.
var placeholders = []*regexp.Regexp{
	regexp.MustCompile(`(?i)` + comment + `(\.\.\.|…)?\s*[(\[]?(keep )?(the |all )?(rest|remainder|existing|remaining|previous|other|same|unchanged)\b.*?` +
		`(\b(code|file|functions?|contents?|lines?|methods?|imports?|unchanged|as before|as is|here|class|implementation|stays|remains|same|omitted)\b|\.\.\.|…)[\s.…)\]*/>}-]*$`),
	regexp.MustCompile(`(?i)` + comment + `(\.\.\.|…)?\s*[(\[]?((keep )?(the )?(rest|remainder)|unchanged)[\s.…)\]*/>}-]*$`),
	regexp.MustCompile(`(?i)^\s*(#|//|/\*|<!--|--|;|\{/\*)?\s*(\.\.\.|…)\s*\(?(rest|existing|remaining|unchanged|same|keep|previous|other)\b`),
	regexp.MustCompile(`(?i)` + comment + `\[?(\.\.\.|…)\]?\s*(\*/\}?|-->)?\s*$`),
	regexp.MustCompile(`(?i)^\s*[\[<(](the )?(rest of|(existing|remaining|unchanged) code)\b.*[\])>]\s*$`),
	regexp.MustCompile(`^\s*[(\[]… .*(not shown here|left out).*[)\]]\s*$`), // what stands for it where a text is shown
	regexp.MustCompile(`\(… line cut, [^()]* more\)\s*$`),
}

// placeholder returns the first line of fresh that stands for code, unless the old
// text has that line as well. name is the file that it is for.
func placeholder(name, fresh, old string) string {
	had, all := strings.Split(old, "\n"), strings.Split(fresh, "\n")
	for i, l := range all {
		stands := isDots(name, all, i) || slices.ContainsFunc(placeholders, func(re *regexp.Regexp) bool { return re.MatchString(l) })
		if stands && !slices.Contains(had, l) {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

// prose are the kinds of files in which three dots alone on a line may be text.
var prose = []string{"", ".md", ".markdown", ".txt", ".rst", ".tex", ".html", ".yml", ".yaml"}

// isDots reports whether line i is nothing but three dots that stand for code. In
// Python they are a body as well, right behind a colon.
func isDots(name string, all []string, i int) bool {
	ext := strings.ToLower(path.Ext(name))
	if dots := strings.TrimSpace(all[i]); dots != "..." && dots != "…" || slices.Contains(prose, ext) {
		return false
	}
	for i--; i >= 0 && strings.TrimSpace(all[i]) == ""; i-- {
	}
	before := ""
	if i >= 0 {
		before = strings.TrimRight(all[i], " \t")
	}
	return !strings.HasPrefix(ext, ".py") || before != "" && !strings.HasSuffix(before, ":") && !strings.HasSuffix(before, `"""`)
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
