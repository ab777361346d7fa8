package act

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// How much of a file is shown.
const (
	maxEcho    = 600 // bytes of a file after a change: enough to see it, cheap enough for every change
	smallFile  = 60  // lines; up to here a file is shown without numbers and is best written whole
	maxLines   = 200 // lines of one read
	maxColumns = 400 // bytes of one line
)

// A document is a text file taken apart, so that it can be put together again with
// its line ends, its mark and its missing final newline.
type document struct {
	bom   bool
	crlf  bool
	open  bool // the last line has no newline
	lines []string
}

const bom = "\uFEFF"

func parseDocument(data []byte) document {
	text := string(data)
	var d document
	text, d.bom = strings.CutPrefix(text, bom)
	if n := strings.Count(text, "\r\n"); n > 0 && n == strings.Count(text, "\n") {
		d.crlf, text = true, strings.ReplaceAll(text, "\r\n", "\n")
	}
	if text == "" {
		return d
	}
	d.open = !strings.HasSuffix(text, "\n")
	d.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return d
}

// bytes puts the document together.
func (d document) bytes() []byte {
	text := strings.Join(d.lines, "\n")
	if len(d.lines) > 0 && !d.open {
		text += "\n"
	}
	if d.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if d.bom {
		text = bom + text
	}
	return []byte(text)
}

// text is the content with plain line ends.
func (d document) text() string { return strings.Join(d.lines, "\n") }

// splitLines returns the lines of a text, without a last empty one.
func splitLines(text string) []string {
	return parseDocument([]byte(text)).lines
}

// isBinary reports whether data is no text.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 8000)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	for cut := 0; cut < utf8.UTFMax; cut++ { // the last rune may be cut in two
		if cut <= len(head) && utf8.Valid(head[:len(head)-cut]) {
			return false
		}
		if len(head) == len(data) {
			break
		}
	}
	return true
}

// kinds of files that are not text, by extension.
var kinds = map[string][]string{
	"an image":     {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".ico", ".tiff"},
	"a PDF":        {".pdf"},
	"an archive":   {".zip", ".gz", ".tar", ".tgz", ".xz", ".bz2", ".7z", ".zst", ".whl", ".jar"},
	"a sound":      {".mp3", ".wav", ".ogg", ".flac"},
	"a video":      {".mp4", ".mkv", ".webm", ".mov"},
	"a database":   {".db", ".sqlite", ".sqlite3"},
	"a model file": {".gguf", ".safetensors", ".onnx"},
}

// kindOf names what a file without text is.
func kindOf(name string) string {
	ext := strings.ToLower(path.Ext(name))
	for kind, exts := range kinds {
		if slices.Contains(exts, ext) {
			return kind
		}
	}
	return "a binary file"
}

// clip keeps the beginning and the end of a text of more than n bytes, cut
// between lines where it can be.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	head, tail := text[:runeStart(text, n*2/3)], text[runeStart(text, len(text)-n/3):]
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
		tail = tail[i+1:]
	}
	left := len(text) - len(head) - len(tail)
	return lines([]string{head, fmt.Sprintf("(… %s are not shown here …)", size(int64(left))), tail})
}

// runeStart returns the start of the rune at or before i.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// cutLine shortens a line that would fill the window, and says so.
func cutLine(line string, n int) string {
	if len(line) <= n {
		return line
	}
	head := line[:runeStart(line, n)]
	return fmt.Sprintf("%s (… line cut, %s more)", head, size(int64(len(line)-len(head))))
}

// countLines writes a number of lines for a reader.
func countLines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

var (
	numbered  = regexp.MustCompile(`^ *(\d+): ?(.*)$`)
	fenceText = regexp.MustCompile("(?s)^\\s*```[\\w+-]*[ \t]*\n(.*?\n)```\\s*$")
)

// tidy takes off a text for the file name what a model copied into it without
// meaning it: one code fence around it all, or the numbers that read shows. It
// returns a sentence about each. old is what the file holds.
func tidy(name, text, old string) (string, []string) {
	var said []string
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	m := fenceText.FindStringSubmatch(text)
	if m != nil && !slices.Contains([]string{".md", ".markdown", ".rst"}, path.Ext(name)) && !strings.Contains(m[1], "```") {
		text = m[1]
		said = append(said, "The ``` around the text was taken off.")
	}
	if plain, ok := unnumber(text); ok && !strings.HasPrefix(path.Ext(name), ".y") {
		if _, had := unnumber(old); !had {
			text = plain
			said = append(said, "The line numbers in the text were taken off.")
		}
	}
	if plain, ok := unsaid(text); ok && !strings.Contains(old, strings.TrimPrefix(text, plain)) {
		text = plain
		said = append(said, "The last line was left out: it is none of the file.")
	}
	return text, said
}

// ourEnd is what stands below a file that was shown, or below what a program printed.
var ourEnd = regexp.MustCompile(`^(?:That is all of .+\.|The command succeeded\..*|If (?:the task is finished: done|that is all:))$`)

// unsaid takes off the sentences of tether's own at the end of text: a small model
// copies them with the file that it was shown.
func unsaid(text string) (string, bool) {
	all := splitLines(text)
	n := len(all)
	for n > 1 && ourEnd.MatchString(all[n-1]) {
		n--
	}
	if n == len(all) {
		return text, false
	}
	return strings.Join(all[:n], "\n") + "\n", true
}

// unnumber removes consecutive numbers in the form "12: text" from every line. One
// line alone may well begin with a number of its own.
func unnumber(text string) (string, bool) {
	all := splitLines(text)
	if len(all) < 2 {
		return text, false
	}
	first := 0
	for i, l := range all {
		m := numbered.FindStringSubmatch(l)
		if m == nil {
			return text, false
		}
		n, _ := strconv.Atoi(m[1])
		if i == 0 {
			first = n
		}
		if n != first+i {
			return text, false
		}
		all[i] = m[2]
	}
	return strings.Join(all, "\n") + "\n", true
}

// ended adds the final newline that a text file has.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
