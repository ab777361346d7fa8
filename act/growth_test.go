//go:build linux

package act

import (
	"net/url"
	"strings"
	"testing"

	"tether/harness/growth"
)

// hostile are pages of some size that are made to be slow or deep.
func hostile(size int) []string {
	var pages []string
	for _, unit := range []string{
		"<div>", "<ul>", "<ul><li>", "<ol><li>a", "<table>", "<table><tr><td>", "<td>", "<a href=x>", "<a href='/", "<b ", "<", "</", "<!--", "<![CDATA[", "&", "&amp", "&#",
		"<pre>\n", "<script>", "<svg>", "<nav>", "<nav></div>", "<title>", "<plaintext>", "<p hidden>", "<h1>", "\x00", "\xff", "<br>", "<a b=c b=c ", "<x y='", "\u202e", "<li><p>a",
	} {
		pages = append(pages, strings.Repeat(unit, size/len(unit)))
	}
	return append(pages, "<p "+strings.Repeat("a=b ", size/4)+">x", "<a href='"+strings.Repeat("y", size)+"'>x</a>")
}

// TestHostilePages: the work that a page makes keeps pace with its size, and what comes
// of it is bounded.
func TestHostilePages(t *testing.T) {
	const size = 64 << 10
	base, _ := url.Parse("https://docs.example/")
	small, large := hostile(size), hostile(4*size)
	for i, page := range small {
		most := 0
		times := growth.Of(func(n int) {
			if n > size {
				most = len(htmlText(large[i], base, webPiped))
			} else {
				htmlText(page, base, webPiped)
			}
		}, size)
		if times >= growth.Steep || most > 5<<20 {
			t.Errorf("four times %.12q without an end are %.1f times the work, and %d bytes", page, times, most)
		}
	}
}
