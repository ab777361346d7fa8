// Package llm talks to the servers that run models, and reads what models
// write. There is one file for each wire protocol; everything else (the
// retries, the choice between tool calls and a decoding schema, the reading
// of calls from text) is the same for all and stands outside of them.
//
// A request's bytes are a function of the window, the settings and the form of
// the calls (native, constrained or plain text): Model.Body returns them. They
// begin alike from one request to the next, which keeps the server's prompt
// cache.
//
// Nothing incomplete is run, and nothing is completed by guess: a reply that
// was cut, by its length or by a dying server, yields no call.
package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	window "tether/context"
)

// Defaults of Config, each for a small model on the user's own machine.
const (
	DefaultWindow     = 8192             // tokens: what the common 8B models serve within 8 GB
	DefaultMaxTokens  = 2048             // a reply: a file of some 200 lines, a quarter of the window
	DefaultFirstToken = 15 * time.Minute // a processor without GPU reads a long prompt for minutes
	DefaultIdle       = 2 * time.Minute  // but once it writes, it goes on writing
)

// A Config says which model to open, and how to ask it.
type Config struct {
	// Model is one of "ollama/NAME", "llama/NAME@URL", "openai/NAME", "anthropic/NAME",
	// "gguf:PATH", "script:FILE". NAME and URL may be left out for llama. An
	// empty Model takes what is found: a running Ollama, a running
	// llama-server, a model that was fetched.
	Model     string
	Window    int       // tokens wanted; 0: DefaultWindow. Info has the real number
	Constrain string    // "auto" (also ""), "on" or "off": decode under the schema of the grant
	Thinking  string    // "auto" (also ""), "on" or "off": as the model's family needs, or as far as it can be switched
	Commands  []string  // the granted first words
	Dialects  []Dialect // of the user, beside the table of package llm
	Families  []Family  // of the user, before the table of package llm
	// Temperature and Seed of every request. 0 is the likeliest reply always,
	// and the same reply again on the same server.
	Temperature float64
	Seed        int
	MaxTokens   int // the longest reply; 0: DefaultMaxTokens

	// Addresses; empty ones are taken from OLLAMA_HOST, TETHER_LLAMA_URL and
	// OPENAI_BASE_URL and ANTHROPIC_BASE_URL, and then have each server's usual
	// value. The key for one comes from the variable that KeyFrom names, by
	// default OPENAI_API_KEY or ANTHROPIC_API_KEY, and is never shown.
	OllamaURL, LlamaURL, OpenAIURL, AnthropicURL string
	KeyFrom                                      string

	CacheDir string       // models that were fetched, and the server that tether brings
	Log      func(string) // words for the user while they wait; may be nil

	FirstToken time.Duration // longest wait for a reply to begin; 0: DefaultFirstToken
	Idle       time.Duration // longest silence within a reply; 0: DefaultIdle

	dial  func(ctx context.Context, network, addr string) (net.Conn, error) // tests count attempts
	pause time.Duration                                                     // between looks at a server that is loading
	start func(ctx context.Context, c Config, path string) (string, func() error, error)
}

// Info describes an opened model.
type Info struct {
	Name        string // the model's name, in the form of Config.Model
	Server      string // "ollama", "llama-server", "openai", "anthropic" or "script"
	Version     string // the server's; empty if it does not say
	Window      int    // tokens that a request and its reply may hold together
	Native      bool   // the model's template takes tools
	Fenced      bool   // a reply is one fenced block of shell
	Constrained bool   // calls are decoded under the schema
}

// A Model answers requests. It may be used from several goroutines.
type Model struct {
	cfg Config

	// The steps in which the protocols differ. The bytes of a request are made
	// in encode.go, from what can be kept in a log.
	send  func(ctx context.Context, req any, s *sink) (Raw, window.Usage, error)
	count func(ctx context.Context, text string) (int, error)
	close func() error
	skip  func(replies int) // of a script: those that were given already

	mu     sync.Mutex
	info   Info
	wire   wiring
	form   form
	misses int // replies in a row that held no call

	drop    []string // fields that the server has refused
	quiet   bool     // from here on with as little thought as the model can do
	musings int      // replies that were nothing but thought
}

// Open finds the model that c names and asks its server what it can. The
// error is an *UnreachableError, a *MissingModelError, a *ConfigError or a
// *ServerError; it comes within 2 s if no server answers.
func Open(ctx context.Context, c Config) (*Model, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	m, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	m.cfg = c
	m.settle()
	return m, nil
}

// filled returns c with its defaults, and checks what can be checked here.
func (c Config) filled() (Config, error) {
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.MaxTokens = cmp.Or(c.MaxTokens, DefaultMaxTokens)
	c.FirstToken = cmp.Or(c.FirstToken, DefaultFirstToken)
	c.Idle = cmp.Or(c.Idle, DefaultIdle)
	c.pause = cmp.Or(c.pause, 500*time.Millisecond)
	c.Constrain = cmp.Or(c.Constrain, "auto")
	if c.Log == nil {
		c.Log = func(string) {}
	}
	if c.start == nil {
		c.start = startServer
	}
	switch c.Constrain {
	case "auto", "on", "off":
	default:
		return c, &ConfigError{"constrain", fmt.Sprintf("%q is not one of auto, on, off", c.Constrain)}
	}
	switch c.Thinking {
	case "", "auto", "on", "off":
	default:
		return c, &ConfigError{"thinking", fmt.Sprintf("%q is not one of auto, on, off", c.Thinking)}
	}
	if c.Window < 0 || c.MaxTokens < 0 || c.Temperature < 0 {
		return c, &ConfigError{"model", "window, max tokens and temperature cannot be negative"}
	}
	var errs [3]error
	c.OllamaURL, errs[0] = address(cmp.Or(c.OllamaURL, os.Getenv("OLLAMA_HOST"), "http://127.0.0.1:11434"), "11434", "/v1", "/api")
	c.LlamaURL, errs[1] = address(cmp.Or(c.LlamaURL, os.Getenv("TETHER_LLAMA_URL"), "http://127.0.0.1:8080"), "8080", "/v1")
	c.OpenAIURL, errs[2] = address(cmp.Or(c.OpenAIURL, os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1"), "")
	for i, err := range errs {
		if err != nil {
			return c, &ConfigError{[]string{"OLLAMA_HOST", "TETHER_LLAMA_URL", "OPENAI_BASE_URL"}[i], err.Error()}
		}
	}
	return c, nil
}

// transport returns a new transport for c.
func (c Config) transport() http.RoundTripper { return newTransport(c.dial) }

// settle chooses the form of the calls, once the server is known.
func (m *Model) settle() {
	m.info.Window = min(cmp.Or(m.info.Window, m.cfg.Window), m.cfg.Window)
	f := familyOf(known(m.info.Name), m.cfg.Families)
	m.wire.Server, m.wire.Window, m.wire.Commands, m.wire.Result = m.info.Server, m.info.Window, m.cfg.Commands, f.result()
	m.wire.IDs, m.wire.Think = f.IDs, f.thinking(m.cfg.Thinking, m.info.Server)
	m.wire.Temperature, m.wire.Seed = m.cfg.Temperature, m.cfg.Seed
	m.wire.FreshTokens = freshTokens
	m.wire.MaxTokens = window.ReserveOf(m.info.Window, m.cfg.MaxTokens) // prompt and reply fit together
	if !m.info.Native || m.info.Server == "openai" || m.info.Server == "anthropic" {
		// A template without tools often knows no other role, and strict
		// endpoints refuse a result that answers no tool call.
		m.wire.Result = window.RoleUser
	}
	m.form = native
	switch {
	case m.info.Server == "script":
	case m.cfg.Constrain == "off" && !m.info.Native:
		m.unconstrain()
	case m.cfg.Constrain == "off":
	case m.cfg.Constrain == "auto" && f.Calls == "fence" && has(m.cfg.Commands, "sh"):
		m.form, m.info.Fenced = fenced, true
	case m.cfg.Constrain == "on", !m.info.Native, f.Calls == "text", f.Calls == "fence":
		m.constrain()
	}
}

// constrain turns to decoding under the schema. Without a grant there is no
// schema.
func (m *Model) constrain() {
	if len(m.cfg.Commands) == 0 {
		m.unconstrain()
		return
	}
	m.form, m.info.Constrained = constrained, true
}

// unconstrain turns to calls that the model writes as text.
func (m *Model) unconstrain() {
	m.form, m.info.Constrained = plain, false
}

// Info returns what is known of the model now. Constrained and Window may
// change while it is used: a model that cannot call is constrained, and a
// server may say late how much it holds.
func (m *Model) Info() Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info
}

// Tokens counts the tokens of text with the server's own tokenizer. Where
// there is none to ask the error is ErrNoTokenizer.
func (m *Model) Tokens(ctx context.Context, text string) (int, error) {
	if m.count == nil {
		return 0, ErrNoTokenizer
	}
	return m.count(ctx, text)
}

// Close stops the server if Open started it.
func (m *Model) Close() error {
	if m.close == nil {
		return nil
	}
	err := m.close()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
