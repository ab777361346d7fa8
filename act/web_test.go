package act

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/sandbox"
)

// TestMain lets the test binary be what the sandbox starts inside.
func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// A site is the web of a test: every name leads to an address of the outside world
// but for those in inside, and every address that is dialled to one local server.
type site struct {
	*httptest.Server
	dialled []string
	looked  int
}

// inside are names that lead where no page is.
var inside = map[string]string{"router.example": "192.168.1.1", "cloud.example": "169.254.169.254", "self.example": "127.0.0.1"}

// newSite serves the files below folder, and what servePage makes.
func newSite(t testing.TB, folder string) *site {
	s := &site{}
	files := http.FileServer(http.Dir(folder))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(filepath.Join(folder, filepath.Clean(r.URL.Path))); err == nil {
			files.ServeHTTP(w, r)
			return
		}
		servePage(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// web is a Web over the site, under a policy of a box in root.
func (s *site) web(t testing.TB, root string, network sandbox.Network, allow ...string) (*sandbox.Box, *Web) {
	box, err := sandbox.New(context.Background(), sandbox.Policy{Root: root, Network: network, Allow: allow})
	check(t, err)
	t.Cleanup(func() { box.Close() })
	way := box.Way()
	way.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		s.looked++
		text := inside[host]
		switch {
		case host == "gone.example":
			return nil, errors.New("no such host")
		case host == "rebind.example" && s.looked > 1:
			text = "127.0.0.1"
		case text == "":
			text = "93.184.216.34"
		}
		return []netip.Addr{netip.MustParseAddr(text)}, nil
	}
	way.Connect = func(ctx context.Context, network, address string) (net.Conn, error) {
		s.dialled = append(s.dialled, address)
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	return box, &Web{Dial: way.Dial}
}

// servePage makes the answers that no file can be.
func servePage(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	to := map[string]string{
		"/loop": "/loop", "/away": "http://router.example/admin", "/metadata": "http://169.254.169.254/latest/meta-data/", "/file": "file:///etc/passwd",
		"/again": "http://rebind.example/page.html", "/moved": "/page.html", "/login": "http://user:word@docs.example/",
	}[r.URL.Path]
	switch {
	case to != "":
		http.Redirect(w, r, to, http.StatusFound)
	case r.URL.Path == "/empty":
	case r.URL.Path == "/echo":
		fmt.Fprintf(w, "asked for %s", r.URL.RawQuery)
	case r.URL.Path == "/image":
		h.Set("Content-Type", "image/png")
		w.Write([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"))
	case r.URL.Path == "/zeros":
		h.Set("Content-Type", "text/html")
		w.Write(make([]byte, 3000))
	case r.URL.Path == "/latin":
		h.Set("Content-Type", "text/plain; charset=ISO-8859-1")
		w.Write([]byte("caf\xe9 \x80 5"))
	case r.URL.Path == "/unknown":
		h.Set("Content-Type", "text/plain; charset=martian")
		w.Write([]byte("caf\xe9"))
	case r.URL.Path == "/packed":
		h.Set("Content-Encoding", "br")
		w.Write([]byte("\x1b\x03\x00\x00"))
	case r.URL.Path == "/bomb":
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Type", "text/plain")
		w.Write(bomb)
	case r.URL.Path == "/broken":
		h.Set("Content-Length", "5000")
		w.Write([]byte("only the beginning"))
	case r.URL.Path == "/drip":
		h.Set("Content-Type", "text/plain")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, "drop\n"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	case r.URL.Path == "/long":
		for i := range 4000 {
			fmt.Fprintf(w, "line %d of a long text\n", i+1)
		}
	case r.URL.Path == "/silent":
		<-r.Context().Done()
	case r.URL.Path == "/search":
		serveSearch(w, r)
	default:
		http.NotFound(w, r)
	}
}

// serveSearch is a SearXNG server.
func serveSearch(w http.ResponseWriter, r *http.Request) {
	switch q := r.URL.Query().Get("q"); {
	case r.URL.Query().Get("format") != "json", q == "forbidden":
		http.Error(w, "no", http.StatusForbidden)
	case q == "page":
		io.WriteString(w, "<html>not JSON</html>")
	case q == "elsewhere":
		http.Redirect(w, r, "http://127.0.0.1:1/search", http.StatusFound)
	case q == "nothing":
		io.WriteString(w, `{"results":[]}`)
	default:
		fmt.Fprintf(w, `{"query":%q,"results":[{"title":"Slices  in\nGo","url":"https://docs.example/slices","content":"What a <b>slice</b> is &amp; does."},
{"title":"the same","url":"https://docs.example/slices"},{"title":"a trap","url":"javascript:alert(1)"},{"title":"Maps","url":"https://docs.example/maps","content":""}]}`, q)
	}
}

// bomb is 64 MB of zeros, packed into 64 KB.
var bomb = func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 1024 {
		z.Write(bytes.Repeat([]byte("0"), 64<<10))
	}
	z.Close()
	return b.Bytes()
}()

// A page without an end, and a server that says nothing, are cut off when their time
// is over, which is 300 ms here; an end of the run is not taken for that.
func TestWebTime(t *testing.T) {
	s := newSite(t, t.TempDir())
	box, web := s.web(t, t.TempDir(), sandbox.NetHost)
	web.Wait = 300 * time.Millisecond
	shell := NewShell(Env{Box: box, Web: web}, Builtins())
	for path, want := range map[string]int{"silent": TimedOut, "drip": OK} {
		r := shell.Do(context.Background(), "web fetch http://docs.example/"+path, "")
		if r.Status != want {
			t.Errorf("%s: status %d:\n%s", path, r.Status, clip(r.Output, maxEcho))
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("the user ends it")
	cancel(cause)
	if r := shell.Do(ctx, "web fetch http://docs.example/silent", ""); !errors.Is(r.Err, cause) {
		t.Errorf("%+v", r)
	}
}

// A bomb is read as far as a page is, and a pipe gets what a pipe gets.
func TestWebSize(t *testing.T) {
	s := newSite(t, t.TempDir())
	box, web := s.web(t, t.TempDir(), sandbox.NetHost)
	shell := NewShell(Env{Box: box, Web: web}, Builtins())
	before := residentMB(t)
	r := shell.Do(context.Background(), "web fetch http://docs.example/bomb", "")
	if grown := residentMB(t) - before; r.Status != OK || len(r.Output) > maxSaid+300 || grown > 64 {
		t.Errorf("status %d, %d bytes, grown by %d MB", r.Status, len(r.Output), grown)
	}
	if r := shell.Do(context.Background(), "web fetch http://docs.example/bomb | wc -c", ""); !strings.Contains(r.Output, fmt.Sprint(webPiped+1)) {
		t.Errorf("%s", clip(r.Output, maxEcho))
	}
}

// No page is asked for at an address that is not public.
func TestWebDialsOnlyThePublic(t *testing.T) {
	s := newSite(t, t.TempDir())
	box, web := s.web(t, t.TempDir(), sandbox.NetHost)
	shell := NewShell(Env{Box: box, Web: web}, Builtins())
	for _, page := range []string{"docs.example/away", "docs.example/metadata", "docs.example/again", "rebind.example/again", "self.example", "[::1]/", "127.0.0.1:8080", "0x7f.1"} {
		s.looked = 0
		if r := shell.Do(context.Background(), "web fetch http://"+page, ""); r.Status != Denied {
			t.Errorf("%s: status %d:\n%s", page, r.Status, clip(r.Output, maxEcho))
		}
	}
	for _, address := range s.dialled {
		if address != "93.184.216.34:80" {
			t.Errorf("%s was dialled", address)
		}
	}
}

// A server that is not who it says is not read.
func TestWebCertificate(t *testing.T) {
	s := &site{Server: httptest.NewUnstartedServer(http.NotFoundHandler())}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	box, web := s.web(t, t.TempDir(), sandbox.NetHost)
	r := NewShell(Env{Box: box, Web: web}, Builtins()).Do(context.Background(), "web docs.example", "")
	if r.Status != Failed || !strings.Contains(r.Output, "certificate of docs.example") {
		t.Errorf("status %d: %s", r.Status, r.Output)
	}
}

// TestHTMLText: what becomes of the forms that pages have.
func TestHTMLText(t *testing.T) {
	base, _ := url.Parse("https://docs.example/a/b.html")
	for page, want := range map[string]string{
		"<title>T</title>text":                                "# T\n\ntext\n",
		"<title>T</title><h1>H</h1>text":                      "# H\n\ntext\n",
		"menu<main>text</main>imprint":                        "text\n\nimprint\n",
		"<main></main>":                                       "",
		"before<nav>menu<p>text":                              "before\n\nmenu\n\ntext\n", // nav has no end: all is shown
		"<nav>menu</nav>":                                     "menu\n",                   // there is nothing else
		"<div hidden><div>x</div>y</div>z":                    "z\n",
		"<body style='visibility: hidden'>z":                  "z\n",
		"a<br>b<br/>c":                                        "a\nb\nc\n",
		"<b>a</b>b <i>c</i> d\n\n e":                          "ab c d e\n",
		"<ul><li>a<ul><li>b</ul><li>c</ul>d":                  "- a\n  - b\n- c\n\nd\n",
		"<ol start=9><li>a<li>b</ol>":                         "9. a\n10. b\n",
		"<ol start=-3 ><li>a</ol>":                            "1. a\n",
		"<li>alone":                                           "- alone\n",
		"<table><tr><td>a<td>b<br>c</tr><tr><th><th>d":        "a | b c\nd\n",
		"<table><tr><td><table><tr><td>a<td>b</table><td>c":   "a | b\n\nc\n",
		"<pre>\na\n  b</pre>c":                                "a\n  b\n\nc\n",
		"<a href='/x?a=1&amp;b'>y</a>":                        "y (https://docs.example/x?a=1&b)\n",
		"<a href='javascript:x()'>y</a> <a href=mailto:z>z":   "y z\n",
		"<a href='#top'>y</a><a href=''>z</a>":                "yz\n",
		"<a href=x><img></a>z":                                "z\n",
		"<a href=x>y<a href=w>z</a>":                          "y (https://docs.example/a/x)z (https://docs.example/a/w)\n",
		"<a href='https://a.example/'>https://a.example/</a>": "https://a.example/\n",
		"<p>a <a href=x><p>b</a>":                             "a\n\nb (https://docs.example/a/x)\n",
		"&lt;b&gt; &amp;amp; &#8364;&nbsp;5 &unknown;":        "<b> &amp; € 5 &unknown;\n",
		"a\u200bb\u202ec\u00add \U000e0041":                   "abcd\n",
		"<|im_start|>system":                                  "<|im_start|>system\n",
		"<script>x</script><style>y</style><!-- z -->a":       "a\n",
		"<svg><title>x</title></svg><noscript>y</noscript>a":  "a\n",
		"<h2>a</h2><h2></h2><p>b":                             "## a\n\nb\n",
	} {
		if got := htmlText(page, base, webPiped); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", page, got, want)
		}
	}
}

// FuzzHTMLText: any bytes become text that is not much longer, and has nothing in it
// that is not to be seen.
func FuzzHTMLText(f *testing.F) {
	for _, seed := range []string{
		"<title>a</title><h1>b</h1><ul><li>c<ol><li>d</ol></ul>", "<table><tr><td>a<td>b<tr><td><ul><li>c</table>", "<a href=/x>y</a><pre>\n a\n</pre>",
		"<nav>a", "<div hidden>a</div>b", "&lt;script&gt;&#x200b;", "<p>a<p>b<br>c", "\xff\xfe<\x00",
	} {
		f.Add([]byte(seed), "text/html")
	}
	f.Add([]byte("caf\xe9"), "text/html; charset=latin1")
	base, _ := url.Parse("https://docs.example/a/")
	f.Fuzz(func(t *testing.T, data []byte, header string) {
		text := htmlText(decoded(data, header), base, 4096)
		if len(text) > 4096+20*len(data)+maxLink*maxLinks || strings.ContainsAny(text, "\x00\x1b\u200b\u202e") {
			t.Errorf("%q", clip(text, maxEcho))
		}
	})
}

// What a line of web means, whatever marks are in it.
func TestQuoteWeb(t *testing.T) {
	for line, want := range map[string]string{
		"web fetch https://a.example/?q=1&n=2":            "web fetch 'https://a.example/?q=1&n=2'",
		"web fetch https://a.example/b | head -3":         "web fetch https://a.example/b | head -3",
		"web fetch https://a.example/b; ls":               "web fetch https://a.example/b ; ls",
		"web fetch https://a.example/b > page.txt":        "web fetch https://a.example/b > page.txt",
		"web https://a.example/(b)":                       "web 'https://a.example/(b)'",
		"web fetch 'https://a.example/?q=1&n=2' | wc":     "web fetch 'https://a.example/?q=1&n=2' | wc",
		"web search what's new (in go)?":                  `web search 'what'\''s new (in go)?'`,
		"web search what's new | head -3":                 `web search 'what'\''s new' | head -3`,
		`web search "a b" | head -3`:                      `web search "a b" | head -3`,
		"web search a & b":                                "web search 'a & b'",
		"web":                                             "web",
		"web search":                                      "web search",
		"web fetch https://a.example/|grep b":             "web fetch https://a.example/ |grep b",
		"web fetch https://a.example/ && web search c; d": "web fetch https://a.example/ && web search c; d",
	} {
		if got := quoteWeb(line); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}
}
