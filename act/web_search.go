package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// A hit is one result of a SearXNG server.
type hit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Content string `json:"content"`
}

// webSearch asks the user's SearXNG server.
func webSearch(ctx context.Context, env *Env, query string) error {
	if env.Web.Search == "" {
		return &Error{Status: NotFound, Msg: "no search is set up here; fetch a page by its address"}
	}
	u, err := searchURL(env.Web.Search, query)
	if err != nil {
		return failed("", "the address of the search server is wrong (web.search in tether.toml)")
	}
	resp, err := env.Web.get(ctx, u, "application/json", only(u))
	if err != nil {
		if cause := interrupted(ctx); cause != nil {
			return cause
		}
		return failed("", "the search server (web.search in tether.toml) is not reached")
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, webBody))
	if cause := interrupted(ctx); err != nil && cause != nil {
		return cause
	}
	var found struct {
		Results []hit `json:"results"`
	}
	switch {
	case resp.StatusCode == http.StatusForbidden:
		return failed("", "the search server refuses JSON: its settings need json under search.formats")
	case resp.StatusCode != http.StatusOK:
		return failed("", "the search server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	case err != nil || json.Unmarshal(data, &found) != nil:
		return failed("", "the search server gave no list that could be read")
	}
	env.showHits(query, found.Results)
	return nil
}

// searchURL is the address of a query.
func searchURL(server, query string) (*url.URL, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	u = u.JoinPath("search")
	u.RawQuery = url.Values{"q": {clip(query, maxColumns)}, "format": {"json"}}.Encode()
	return u, nil
}

// errElsewhere refuses to follow the search server to another one.
var errElsewhere = errors.New("the search server leads elsewhere")

// only dials the server of u: the user has named it, and no other.
func only(u *url.URL) func(context.Context, string, string) (net.Conn, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	want := net.JoinHostPort(u.Hostname(), port)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != want {
			return nil, errElsewhere
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// showHits prints the first results that lead to a page, each once.
func (e *Env) showHits(query string, hits []hit) {
	seen := map[string]bool{}
	for _, h := range hits {
		u, err := url.Parse(h.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || len(h.URL) > maxColumns || seen[h.URL] {
			continue
		}
		if seen[h.URL] = true; len(seen) > webResults {
			break
		}
		fmt.Fprintf(e.Out, "%d. %s\n   %s\n", len(seen), oneLine(h.Title, 120), u)
		if text := oneLine(h.Content, 240); text != "" {
			fmt.Fprintf(e.Out, "   %s\n", text)
		}
	}
	if len(seen) == 0 {
		e.Say("Nothing was found for %s.", oneLine(query, 120))
		return
	}
	e.Say("To read one: web fetch URL")
}

// oneLine is text on a line of at most n bytes.
func oneLine(text string, n int) string {
	text = strings.Join(strings.Fields(plainText(text)), " ")
	if len(text) > n {
		text = text[:runeStart(text, n)] + "…"
	}
	return text
}
