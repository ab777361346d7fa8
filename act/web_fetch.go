package act

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tether/sandbox"
)

// webFetch prints the text of a page.
func webFetch(ctx context.Context, env *Env, word string) error {
	u, bad := pageURL(word)
	if bad != nil {
		return bad
	}
	resp, err := env.Web.get(ctx, u, "text/html, text/plain, application/json;q=0.9, */*;q=0.5", env.Web.Dial)
	if err != nil {
		return env.webError(ctx, u, err)
	}
	defer resp.Body.Close()
	p := page{url: resp.Request.URL, kind: mimeType(resp.Header), label: resp.Header.Get("Content-Type")}
	p.data, err = io.ReadAll(io.LimitReader(resp.Body, webBody+1))
	if p.more = len(p.data) > webBody; p.more {
		p.data = p.data[:webBody]
	}
	if err != nil && (len(p.data) == 0 || interrupted(ctx) != nil) {
		return env.webError(ctx, u, err)
	}
	p.broken = err != nil
	if packed := resp.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return failed("", "%s comes packed as %s, which is not read here", shortURL(p.url), inLine(clip(packed, 20)))
	}
	if resp.StatusCode != http.StatusOK {
		return p.refused(resp)
	}
	return env.showPage(p)
}

// get asks for a page, and follows where it leads. Each address on the way is
// judged by dial.
func (w *Web) get(ctx context.Context, u *url.URL, accept string, dial func(context.Context, string, string) (net.Conn, error)) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "tether")
	client := &http.Client{CheckRedirect: followed, Transport: &http.Transport{
		DialContext: dial, DisableKeepAlives: true, TLSHandshakeTimeout: w.wait(), MaxResponseHeaderBytes: webHead,
	}}
	return client.Do(req)
}

// errHops and errScheme end a chain of redirects.
var (
	errHops   = fmt.Errorf("the page leads on and on, more than %d times", webHops)
	errScheme = errors.New("the page leads to an address that is none of a page")
)

// followed judges a redirect before it is followed.
func followed(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer") // nobody's business
	switch {
	case len(via) > webHops:
		return errHops
	case req.URL.Scheme != "http" && req.URL.Scheme != "https", req.URL.User != nil:
		return errScheme
	}
	return nil
}

// webError says what the model can do about a page that did not come. An end of
// the run is that.
func (e *Env) webError(ctx context.Context, u *url.URL, err error) error {
	if cause := interrupted(ctx); cause != nil {
		return cause
	}
	host := inLine(clip(u.Host, maxColumns))
	if moved, ok := errors.AsType[*url.Error](err); ok {
		if to, parsed := url.Parse(moved.URL); parsed == nil && to.Host != "" {
			host = inLine(clip(to.Host, maxColumns))
		}
	}
	var way *sandbox.WayError
	var slow net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &way) && !way.Allowed:
		return e.notReached(way)
	case errors.As(err, &way):
		return failed("", "%s", way.Why)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return &Error{Status: TimedOut, Msg: fmt.Sprintf("%s did not answer within %s", host, e.Web.wait().Round(100*time.Millisecond))}
	case errors.As(err, &cert):
		return failed("", "the certificate of %s is not valid", host)
	case errors.Is(err, errHops):
		return failed("", "%s", errHops)
	case errors.Is(err, errScheme):
		return failed("", "%s", errScheme)
	}
	return failed("", "%s gave no answer that could be read", host)
}

// interrupted is why the run ends, nil if only the time for one page is up.
func interrupted(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}

// notReached is the refusal of an address, with the hosts that there are.
func (e *Env) notReached(way *sandbox.WayError) *Error {
	msg := cmp.Or(way.Why, "that host is not reached")
	if p := e.Box.Policy(); p.Network == sandbox.NetProxy {
		msg += ". " + onlyHosts(p.Allow)
	}
	return &Error{Status: Denied, Msg: msg}
}

// A page is what a server sent.
type page struct {
	url    *url.URL // after redirects
	kind   string   // media type, without parameters; "" unknown
	label  string   // the whole header
	data   []byte
	more   bool // it goes on behind data
	broken bool // the rest did not come
}

// refused says which answer came instead of a page, with the beginning of its text.
func (p page) refused(resp *http.Response) *Error {
	said := ""
	if text, kind := p.text(webPiped); kind == "" {
		said = strings.Join(strings.Fields(clip(text, 200)), " ")
	}
	word := http.StatusText(resp.StatusCode)
	msg := strings.TrimSpace(fmt.Sprintf("the server answered %d %s", resp.StatusCode, word))
	if said != "" && said != word {
		msg += ": " + said
	}
	return failed("", "%s", msg)
}

// text is the page for reading, at most n bytes of it and a little more. kind
// names what it is if it is no text.
func (p page) text(n int) (text, kind string) {
	data := p.data
	switch {
	case len(data) == 0:
		return "", ""
	case notText(p.kind, data):
		return "", webKind(p.kind, p.url.Path)
	}
	text = decoded(data, p.label)
	switch {
	case isHTML(p.kind, data):
		return htmlText(text, p.url, n), ""
	case strings.HasSuffix(p.kind, "json"):
		var b bytes.Buffer
		if !strings.Contains(strings.TrimSpace(text), "\n") && len(text) > maxColumns && json.Indent(&b, []byte(text), "", " ") == nil {
			text = b.String()
		}
	}
	return plainText(text), ""
}

// showPage prints a page, and says how much of it that is.
func (e *Env) showPage(p page) error {
	limit := maxSaid
	if e.piped {
		limit = webPiped
	}
	text, kind := p.text(webPiped)
	name := shortURL(p.url)
	switch {
	case kind != "":
		e.Say("%s is %s (%s), not text; nothing of it is shown.", name, kind, size(int64(len(p.data))))
		return nil
	case strings.TrimSpace(text) == "":
		e.Say("%s has no text.", name)
		return nil
	}
	shown := beginning(text, limit)
	fmt.Fprint(e.Out, lines([]string{shown}))
	switch {
	case p.broken:
		e.Say("The rest of %s did not come.", name)
	case len(shown) < len(text) || p.more:
		e.Say("That is the beginning of %s. For a part of it: web fetch %s | grep -i WORD", name, Quote(p.url.String()))
	default:
		e.Say("That is all of %s, %s.", name, countLines(len(splitLines(text))))
	}
	return nil
}

// beginning is the lines of a text that fit into n bytes, or as much of the first.
func beginning(text string, n int) string {
	if len(text) <= n {
		return text
	}
	head := text[:runeStart(text, n)]
	if i := strings.LastIndexByte(head, '\n'); i > n/2 {
		head = head[:i+1]
	}
	return head
}

// shortURL is an address for a sentence.
func shortURL(u *url.URL) string {
	text := u.String()
	if len(text) > 100 { // bytes: a longer one says no more
		text = text[:runeStart(text, 100)] + "…"
	}
	return inLine(text)
}

// mimeType is the media type of an answer in lower case, without its parameters.
func mimeType(h http.Header) string {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		kind, _, _ = strings.Cut(h.Get("Content-Type"), ";")
	}
	return strings.ToLower(strings.TrimSpace(kind))
}

// textual are the media types besides text/* that are text.
var textual = []string{"json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-sh", "x-httpd-php", "sql", "x-ndjson"}

// notText reports whether a page is binary: by its bytes, or by its type if the
// bytes leave it open.
func notText(kind string, data []byte) bool {
	utf16 := bytes.HasPrefix(data, []byte{0xfe, 0xff}) || bytes.HasPrefix(data, []byte{0xff, 0xfe})
	if strings.HasPrefix(kind, "text/") || utf16 {
		return !utf16 && bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 && !strings.Contains(kind, "utf-16")
	}
	for _, t := range textual {
		if strings.HasSuffix(kind, t) {
			return false
		}
	}
	group, _, _ := strings.Cut(kind, "/")
	return webGroups[group] != "" && kind != "image/svg+xml" || isBinary(data)
}

// webGroups names what is not text, by the first half of a media type.
var webGroups = map[string]string{"image": "an image", "audio": "a sound", "video": "a video", "font": "a font", "model": "a 3D model"}

// webKind names a page that is not text.
func webKind(kind, path string) string {
	group, rest, _ := strings.Cut(kind, "/")
	switch {
	case webGroups[group] != "":
		return webGroups[group]
	case rest == "pdf":
		return "a PDF"
	case strings.Contains(rest, "zip") || strings.Contains(rest, "tar") || strings.Contains(rest, "compressed"):
		return "an archive"
	}
	return kindOf(path)
}

// isHTML reports whether a page has markup.
func isHTML(kind string, data []byte) bool {
	switch kind {
	case "text/html", "application/xhtml+xml":
		return true
	case "", "application/octet-stream", "text/plain":
		return kind != "text/plain" && strings.HasPrefix(http.DetectContentType(data), "text/html")
	}
	return false
}
