package act

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of what a page becomes.
const (
	maxLinks  = 100 // links with their address: lists of more are for people with a mouse
	maxLink   = 200 // bytes of an address
	maxNested = 6   // lists in lists; deeper ones are shown as these
)

// htmlText is the text of a page: headings with #, items with -, rows of a table
// on a line with | between, links as text (address). It reads the page as a
// stream, keeps no tree, and stops after n bytes: neither depth nor size of a
// hostile page costs more than reading it.
func htmlText(source string, base *url.URL, n int) string {
	for _, frame := range []bool{false, true} {
		w := &pageWriter{base: base, frame: frame, most: n}
		if w.read(source) && strings.TrimSpace(w.out.String()) != "" {
			return w.result()
		}
		if frame {
			return w.result()
		}
	}
	return ""
}

// A pageWriter turns tokens into text.
type pageWriter struct {
	out   strings.Builder
	base  *url.URL
	frame bool // what is around the content of a page is wanted, too
	most  int

	title  strings.Builder
	within atom.Atom // the element whose text is not shown; 0
	nested int       // how many of its kind are open
	inHead bool      // title is open
	pre    int       // open pre elements
	lists  []int     // the next number of each open list; 0: no numbers
	deeper int       // lists that are open beyond maxNested
	item   string    // the mark before the next text
	due    int       // line ends before the next text
	blank  bool      // a blank before it
	row    bool      // in a cell of a table
	cells  int       // of the row
	href   string    // of the open link
	from   int       // where its text begins
	links  int
	main   bool // the main part of the page has begun
}

// unseen are elements that no reader sees; around are those around the content.
var (
	unseen = []atom.Atom{atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Math, atom.Iframe, atom.Object,
		atom.Canvas, atom.Audio, atom.Video, atom.Select, atom.Datalist, atom.Noembed, atom.Noframes}
	framing = []atom.Atom{atom.Nav, atom.Footer, atom.Aside, atom.Button, atom.Dialog}
)

// endless are elements without an end, and those that are the whole page.
var endless = []atom.Atom{atom.Br, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Col, atom.Area, atom.Base, atom.Embed,
	atom.Source, atom.Track, atom.Wbr, atom.Body, atom.Html}

// blocks are elements that begin on a line of their own, and how many line ends
// come before them.
var blocks = map[atom.Atom]int{
	atom.P: 2, atom.Div: 1, atom.Section: 2, atom.Article: 2, atom.Main: 2, atom.Header: 2, atom.Footer: 2, atom.Nav: 2, atom.Aside: 2,
	atom.Blockquote: 2, atom.Pre: 2, atom.Ul: 1, atom.Ol: 1, atom.Dl: 2, atom.Dt: 1, atom.Dd: 1, atom.Li: 1, atom.Table: 2, atom.Tr: 1,
	atom.Caption: 1, atom.Form: 1, atom.Fieldset: 1, atom.Figure: 2, atom.Figcaption: 1, atom.Hr: 2, atom.Details: 1, atom.Summary: 1,
	atom.Address: 1, atom.Center: 1, atom.Body: 1, atom.Option: 1, atom.Textarea: 1,
	atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2,
}

// read writes the page. It returns false if it ended in what is not shown.
func (w *pageWriter) read(source string) bool {
	z := html.NewTokenizer(strings.NewReader(source))
	for w.out.Len() < w.most {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return w.within == 0
		case html.TextToken:
			w.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			a := atom.Lookup(name)
			attrs := attributes(z, more)
			w.start(a, attrs, kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := z.TagName()
			w.end(atom.Lookup(name))
		}
	}
	return true
}

// attributes are those of a tag that mean something here.
func attributes(z *html.Tokenizer, more bool) map[string]string {
	var attrs map[string]string
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "href", "start", "hidden", "style", "aria-hidden":
			if attrs == nil {
				attrs = map[string]string{}
			}
			attrs[string(key)] = string(value[:min(len(value), 2000)])
		}
	}
	return attrs
}

// start takes the beginning of an element.
func (w *pageWriter) start(a atom.Atom, attrs map[string]string, closed bool) {
	switch {
	case w.within != 0:
		if a == w.within && !closed {
			w.nested++
		}
		return
	case !closed && w.skips(a, attrs):
		w.within, w.nested = a, 1
		return
	}
	w.block(a)
	switch a {
	case atom.Title:
		w.inHead = w.title.Len() == 0 && !closed
	case atom.Br:
		w.breakLine(1)
	case atom.Main:
		w.content()
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.item = strings.Repeat("#", int(a.String()[1]-'0')) + " "
	case atom.Pre:
		w.pre++
	case atom.Ul, atom.Ol, atom.Menu:
		w.list(a, attrs)
	case atom.Li:
		w.item = w.mark()
	case atom.Tr:
		w.row, w.cells = false, 0
	case atom.Td, atom.Th:
		w.cell()
	case atom.A:
		w.link()
		w.href, w.from = attrs["href"], w.out.Len()
	}
}

// content begins the page anew where its main part begins: before it are menus.
func (w *pageWriter) content() {
	if w.frame || w.main {
		return
	}
	w.out.Reset()
	w.main, w.links, w.from, w.href, w.item, w.lists, w.deeper, w.row = true, 0, 0, "", "", nil, 0, false
}

// skips reports whether nothing of an element is shown.
func (w *pageWriter) skips(a atom.Atom, attrs map[string]string) bool {
	_, hidden := attrs["hidden"]
	style := strings.ReplaceAll(strings.ToLower(attrs["style"]), " ", "")
	hidden = hidden || attrs["aria-hidden"] == "true" || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
	switch {
	case slices.Contains(unseen, a):
		return true
	case w.frame || a == 0:
		return false
	}
	return slices.Contains(framing, a) || hidden && !slices.Contains(endless, a)
}

// end takes the end of an element.
func (w *pageWriter) end(a atom.Atom) {
	if w.within != 0 {
		if a == w.within {
			if w.nested--; w.nested == 0 {
				w.within = 0
			}
		}
		return
	}
	switch a {
	case atom.Title:
		w.inHead = false
	case atom.A:
		w.link()
	case atom.Pre:
		w.pre = max(0, w.pre-1)
	case atom.Ul, atom.Ol, atom.Menu:
		if w.deeper > 0 {
			w.deeper--
		} else if n := len(w.lists); n > 0 {
			w.lists = w.lists[:n-1]
		}
		if len(w.lists) == 0 {
			w.due = max(w.due, 2)
		}
	case atom.Table, atom.Tr:
		w.row = false
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.item = ""
	}
	w.block(a)
}

// block ends the line before and behind an element that has lines of its own.
func (w *pageWriter) block(a atom.Atom) {
	n, ok := blocks[a]
	if !ok {
		return
	}
	switch a {
	case atom.Li, atom.Table, atom.Tr, atom.Pre, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.row = false
	}
	if len(w.lists) > 0 {
		n = 1 // a list stays together
	}
	w.breakLine(n)
}

// breakLine ends the line; in a row of a table it is a blank.
func (w *pageWriter) breakLine(n int) {
	if w.row {
		w.blank = true
		return
	}
	w.due = max(w.due, n)
}

// list opens a list.
func (w *pageWriter) list(a atom.Atom, attrs map[string]string) {
	if len(w.lists) == maxNested {
		w.deeper++
		return
	}
	first := 0
	if a == atom.Ol {
		first = 1
		if n, err := strconv.Atoi(attrs["start"]); err == nil && n > 0 && n < 1e6 {
			first = n
		}
	}
	w.lists = append(w.lists, first)
}

// mark is what stands before an item.
func (w *pageWriter) mark() string {
	n := len(w.lists)
	if n == 0 {
		return "- "
	}
	indent := strings.Repeat("  ", n-1)
	if next := w.lists[n-1]; next != 0 {
		w.lists[n-1]++
		return fmt.Sprintf("%s%d. ", indent, next)
	}
	return indent + "- "
}

// cell begins a cell: all but the first of a row follow a mark.
func (w *pageWriter) cell() {
	if w.cells > 0 && w.due == 0 {
		w.out.WriteString(" |")
		w.blank = true
	}
	w.row = true
	w.cells++
}

// text writes text as it is shown: blanks and line ends are one blank, but in pre.
func (w *pageWriter) text(text string) {
	text = plainText(text)
	switch {
	case w.within != 0:
		return
	case w.inHead:
		w.title.WriteString(text)
		return
	case w.pre > 0:
		w.verbatim(text)
		return
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		w.blank = w.blank || text != ""
		return
	}
	w.blank = w.blank || strings.TrimLeft(text, " \t\n\f\v") != text
	w.space()
	w.out.WriteString(strings.Join(words, " "))
	w.blank = strings.TrimRight(text, " \t\n\f\v") != text
}

// verbatim writes text of a pre element.
func (w *pageWriter) verbatim(text string) {
	if w.due > 0 {
		text = strings.TrimPrefix(text, "\n")
	}
	if text == "" {
		return
	}
	w.blank = false
	w.space()
	w.out.WriteString(text)
}

// space writes the line ends, the mark or the blank that is due.
func (w *pageWriter) space() {
	at := w.out.Len()
	switch so := w.out.String(); {
	case at == 0:
	case w.due > 0:
		have := len(so) - len(strings.TrimRight(so, "\n"))
		w.out.WriteString(strings.Repeat("\n", max(0, min(w.due, 2)-have)))
	case w.blank && so[at-1] != ' ' && so[at-1] != '\n':
		w.out.WriteByte(' ')
	}
	w.out.WriteString(w.item)
	w.item = ""
	if w.href != "" && w.from == at { // nothing of the link was written yet
		w.from = w.out.Len()
	}
	w.due, w.blank = 0, false
}

// link ends a link: its address follows its text.
func (w *pageWriter) link() {
	href := w.href
	w.href = ""
	if href == "" || strings.HasPrefix(href, "#") || w.links >= maxLinks || len(href) > maxLink || w.out.Len() <= w.from {
		return
	}
	u, err := w.base.Parse(strings.TrimSpace(href))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	said := w.out.String()[w.from:]
	if address := u.String(); len(address) <= maxLink && strings.TrimSpace(said) != address {
		w.links++
		w.out.WriteString(" (" + address + ")")
	}
}

// result is the text below the title of the page.
func (w *pageWriter) result() string {
	title := strings.Join(strings.Fields(w.title.String()), " ")
	title = title[:runeStart(title, min(len(title), maxLink))]
	var b bytes.Buffer
	if text := w.out.String(); title != "" && !strings.HasPrefix(text, "# ") {
		b.WriteString("# " + title + "\n\n")
	}
	for l := range strings.Lines(w.out.String()) {
		b.WriteString(strings.TrimRight(l, " \t\n") + "\n")
	}
	return b.String()
}
