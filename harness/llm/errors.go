package llm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ErrNoTokenizer is returned by Model.Tokens where the server has no
// tokenizer to ask; the caller then estimates.
var ErrNoTokenizer = errors.New("this model server does not count tokens")

// An UnreachableError says that no server answers at URL, after one attempt
// and one retry. Repair is the one command that most likely mends it.
type UnreachableError struct {
	URL    string
	Cause  error
	Repair string
}

// Error names the address, the cause and the command that mends it.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no model server at %s: %v\nstart one: %s", e.URL, e.Cause, e.Repair)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// A MissingModelError says that the model that was asked for is not there.
// Installed lists what is, in the form that a model is named; Repair says in
// one or two lines how to get one.
type MissingModelError struct {
	Model     string // as asked for; empty if none was named and none was found
	Installed []string
	Repair    string
}

// Error lists what is installed and, on lines of its own, how to get a model.
func (e *MissingModelError) Error() string {
	var b strings.Builder
	if e.Model == "" {
		b.WriteString("no model found")
	} else {
		fmt.Fprintf(&b, "no model %q", e.Model)
	}
	if len(e.Installed) > 0 {
		fmt.Fprintf(&b, "; installed: %s", strings.Join(e.Installed, ", "))
	}
	if e.Repair != "" {
		b.WriteString("\n" + e.Repair)
	}
	return b.String()
}

// A ConfigError says that a setting cannot be used: Setting is its name as the
// user wrote it, Problem what is wrong and what would be right.
type ConfigError struct {
	Setting string
	Problem string
}

// Error names the setting and what is wrong with it.
func (e *ConfigError) Error() string { return e.Setting + ": " + e.Problem }

// A Class says what a server's error is about: each class has its own remedy,
// and only Loading is answered by sending the same again.
type Class string

// The classes of server errors.
const (
	Overflow Class = "overflow" // the prompt does not fit: fold, then send again
	Loading  Class = "loading"  // the model is being loaded: wait
	Format   Class = "format"   // the server could not read what its model wrote: a bad turn
	Tools    Class = "tools"    // this model takes no tools: use the schema
	Refused  Class = "refused"  // the key or the account is not accepted
	Other    Class = "other"
)

// A ServerError is an error that a model server reported.
type ServerError struct {
	Status int // of HTTP; 0 or 200 if it came inside a stream
	Text   string
	Class  Class
	Limit  int // tokens that fit, if Class is Overflow and the server said it
	// Retry is how long to wait before the same is sent again, if Class is Loading
	// and the server said it.
	Retry time.Duration
}

// Error gives the status and the words of the server.
func (e *ServerError) Error() string {
	if e.Status >= 400 {
		return fmt.Sprintf("the model server answered %d: %s", e.Status, e.Text)
	}
	return "the model server reported: " + e.Text
}

// A CutError says that a reply ended without the frame that ends replies: the
// server died, the connection broke, or nothing came for too long. Nothing of
// such a reply is run.
type CutError struct{ Cause error }

// Error says why the reply broke off.
func (e *CutError) Error() string {
	return fmt.Sprintf("the model's reply broke off: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *CutError) Unwrap() error { return e.Cause }

// causes of a CutError
var (
	errNoEnd   = errors.New("the stream ended without a last frame")
	errMused   = errors.New("the model did nothing but think")
	errStalled = errors.New("the server sent nothing for too long")
	errTooLong = errors.New("the server sent more than a reply may hold")
)

// kinds are the words by which errors of each class are known. Servers reuse
// the status codes freely (an overflow is 400, 413, 422 or 500), so the text
// decides; the first match counts.
var kinds = []struct {
	class Class
	words *regexp.Regexp
}{
	{Overflow, regexp.MustCompile(`(?i)exceed_context_size|context_length_exceeded|context.{0,10}(size|length|window|limit)` + // llama.cpp, OpenAI, LM Studio, sglang
		`|prompt (is )?too long|input length exceeds|input (is|was) too long` + // Anthropic, Ollama
		`|maximum model length|maximum allowed length` + // vLLM, sglang
		`|tokens. must be <= \d|must be <= \d+\. given|must have less than \d+ tokens` + // TGI
		`|n_keep.{0,20}n_ctx`)}, // LM Studio
	{Tools, regexp.MustCompile(`(?i)does not support tools|requires --jinja`)},
	{Loading, regexp.MustCompile(`(?i)loading model|model is loading`)},
	{Format, regexp.MustCompile(`(?i)peg-native|parsing tool call|invalid diff|failed to parse (the )?(input|tool)|invalid tool call|unexpected end of json|cannot unmarshal`)},
}

// limits find the size of the window in the text of an overflow; the first match
// counts. What a prompt was, or is too much by, must not be taken for it.
var limits = []*regexp.Regexp{
	regexp.MustCompile(`"n_ctx":\s*(\d+)`),
	regexp.MustCompile(`n_ctx \((\d+)\)`),
	regexp.MustCompile(`> (\d+)(?: maximum|, decrease)`), // Anthropic names what was asked first
	regexp.MustCompile(`(?i)(?:context (?:size|length|window|limit)|model length|allowed length)(?:[\s(:=]|of|is|only)*(\d+)`),
	regexp.MustCompile(`must be <= (\d+)`),
	regexp.MustCompile(`less than (\d+) tokens`),
}

// minWindow is the least that is believed to be a window, in tokens: no server
// holds less, and another number of its message may have been read.
const minWindow = 64

// limitIn is the size of the window that text names, else 0.
func limitIn(text string) int {
	for _, re := range limits {
		m := re.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil && n >= minWindow {
			return n
		}
	}
	return 0
}

// serverError gives an error's text its class. The text is shortened to what
// fits a terminal: some servers answer with a page.
func serverError(status int, text string) *ServerError {
	e := &ServerError{Status: status, Text: text, Class: Other}
	for _, k := range kinds {
		if k.words.MatchString(text) {
			e.Class = k.class
			break
		}
	}
	switch {
	case e.Class == Overflow:
		e.Limit = limitIn(text)
	case e.Class == Other && status == 503:
		e.Class = Loading
	case e.Class == Other && (status == 401 || status == 403):
		e.Class = Refused
	}
	if page.MatchString(text) {
		e.Text = "a web page, not a model's reply: is this the address of a model server?"
	}
	e.Text = clip(e.Text, 300)
	return e
}

// page tells HTML from an error text.
var page = regexp.MustCompile(`(?i)^\s*(<!doctype html|<html)`)

// clip shortens s to about n bytes, at a character's edge.
func clip(s string, n int) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "?"))
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}
