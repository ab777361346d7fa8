package act

import (
	"context"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Web is what the command web reaches of the network.
type Web struct {
	// Dial connects to the "host:port" of a page, by the rules for commands.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Search is the address of a SearXNG server, "" if there is none. The user has
	// named it: it may be one of this machine.
	Search string
	// Wait bounds one call; 0 is 20 seconds.
	Wait time.Duration
}

// Bounds of one call.
const (
	webWait    = 20 * time.Second // a model waits meanwhile; of slow pages most answer within ten
	webBody    = 2 << 20          // bytes of a page, unpacked: the median page has 0.1 MB of HTML, long ones have 1 MB
	webHead    = 64 << 10         // bytes of the head of an answer
	webHops    = 5                // redirects: a real page has three at most (scheme, www, language)
	webPiped   = 256 << 10        // bytes of text for the next command of a pipe
	webResults = 6                // of a search: about 400 tokens
)

var webCommand = &Command{
	Name:    "web",
	Args:    "fetch URL | search QUERY",
	Summary: "look on the web",
	Detail: "fetch prints the text of a page, search prints titles and addresses of pages.\n" +
		"For a part of a page: web fetch URL | grep -i WORD\nexample: web fetch https://example.org/",
	Raw:   true,
	Quote: quoteWeb,
	Run:   runWeb,
}

// webVerbs are the words that models write for the two.
var webVerbs = map[string]func(context.Context, *Env, string) error{
	"fetch": webFetch, "get": webFetch, "open": webFetch, "read": webFetch,
	"search": webSearch, "find": webSearch, "query": webSearch,
}

func runWeb(ctx context.Context, env *Env, args []string) error {
	if env.Web == nil {
		return &Error{Status: NotFound, Msg: "there is no network here"}
	}
	ctx, cancel := context.WithTimeout(ctx, env.Web.wait())
	defer cancel()
	if len(args) == 0 {
		return misuse("web --help", "what of the web? usage: %s", env.cmd.usage())
	}
	run, rest := webVerbs[args[0]], args[1:]
	if run == nil && looksLikeURL(args[0]) {
		run, rest = webFetch, args
	}
	if run == nil {
		return misuse("web --help", "web has no %s; usage: %s", args[0], env.cmd.usage())
	}
	what := strings.TrimSpace(strings.Join(rest, " "))
	if what == "" {
		what = strings.TrimSpace(env.Stdin)
	}
	if what == "" {
		return misuse("web --help", "web %s what? usage: %s", args[0], env.cmd.usage())
	}
	return run(ctx, env, what)
}

func (w *Web) wait() time.Duration {
	if w.Wait > 0 {
		return w.Wait
	}
	return webWait
}

// looksLikeURL reports whether a word is an address and no verb.
func looksLikeURL(word string) bool {
	return strings.Contains(word, "://") || strings.Contains(word, ".")
}

// pageURL reads the address of a page as a model writes it.
func pageURL(word string) (*url.URL, *Error) {
	word = strings.Trim(word, "<>")
	if !strings.Contains(word, "://") {
		word = "https://" + word
	}
	u, err := url.Parse(word)
	switch {
	case err != nil || u.Host == "" || strings.ContainsAny(word, " \t\n"):
		return nil, misuse("web --help", "%s is no address of a page", clip(word, maxColumns))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, misuse("web --help", "web reads http and https, and no %s", u.Scheme)
	case u.User != nil:
		return nil, misuse("web --help", "an address with a user name or a password is not read")
	}
	u.Fragment = ""
	return u, nil
}

// webEnds are the words that end the query of a search, if they stand alone.
var webEnds = []string{"|", "||", "&&", ";", ">", ">>"}

// quoteWeb puts quotes around what a shell would take apart: the & of an address,
// the marks and apostrophes of a question.
func quoteWeb(line string) string {
	rest := strings.TrimLeft(strings.TrimPrefix(line, "web"), " \t")
	if verb, more, _ := strings.Cut(rest, " "); webWord.MatchString(verb) {
		rest = strings.TrimLeft(more, " \t")
	}
	if rest == "" || strings.ContainsAny(rest[:1], `'"`) || strings.Contains(line, "\n") {
		return line
	}
	words := strings.Split(rest, " ")
	n := len(words) // of what is one word
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(webEnds, w) }); i >= 0 {
		n = i
	}
	if strings.Contains(words[0], "://") {
		n = 1
	}
	what, after := strings.TrimSpace(strings.Join(words[:n], " ")), strings.Join(words[n:], " ")
	if cut := strings.TrimRight(what, ";"); cut != what && after != "" {
		what, after = cut, "; "+after
	}
	if i := strings.IndexAny(what, "|>"); i > 0 && n == 1 {
		what, after = what[:i], what[i:]+" "+after
	}
	return strings.TrimSpace(line[:len(line)-len(rest)] + Quote(what) + " " + after)
}

// webWord matches a verb of web, and what could be meant as one.
var webWord = regexp.MustCompile(`^[a-z]+$`)
