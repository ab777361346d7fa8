package llm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	window "tether/context"
)

// A form is a way in which calls are asked for.
type form string

const (
	native      form = "native"      // the tool act is offered; calls come as tool calls
	constrained form = "constrained" // no tool; the reply is decoded under the schema
	plain       form = "plain"       // neither: calls are read from text
	fenced      form = "fenced"      // no tool; the reply is one fenced block of shell, where the server can under a grammar
	prose       form = "prose"       // neither, and no call is asked for
)

// proseTokens bounds a reply of prose: a summary of 1,200 characters takes some
// 400 tokens, and a model that thinks before it writes as many again.
const proseTokens = 1024

// freshTemperature is high enough that a model which would repeat itself does
// not, and low enough that it still writes calls.
const freshTemperature = 1.0

// freshTokens bounds a reply that is sampled anew: it stands in the place of one that
// was repeated, and at that temperature a small model does not always find an end. Some
// 80 lines of a file.
const freshTokens = 768

// wiring is all that decides the bytes of a request, the request itself and
// the form of its calls excepted. It is kept in the log of a session.
type wiring struct {
	Server      string      `json:"server"` // as in Info
	Model       string      `json:"model"`  // as the server knows it
	Window      int         `json:"window"` // tokens; Ollama's num_ctx, the same in every request: another value reloads the model
	Commands    []string    `json:"commands"`
	Result      window.Role `json:"result"` // who speaks a result that answers no tool call
	Temperature float64     `json:"temperature"`
	Seed        int         `json:"seed"`
	MaxTokens   int         `json:"max_tokens"`
	FreshTokens int         `json:"fresh_tokens,omitempty"` // the longest reply that is sampled anew; 0: as MaxTokens
	IDs         string      `json:"ids,omitempty"`          // as in Family
	Think       string      `json:"think,omitempty"`        // "on", "off", "low", "high"; "" is as the server does
}

// A prompt is a request with all that decides its bytes.
type prompt struct {
	wiring
	messages []window.Message
	form     form
	fresh    bool
	without  []string // first words that the schema leaves out
	stream   bool
	quiet    bool     // with as little thought as the model can do
	drop     []string // fields that the server has refused (refused.go)
}

// prompt settles how r is sent in the form f.
func (w wiring) prompt(r window.Request, f form) prompt {
	p := prompt{wiring: w, messages: r.Messages, form: f, fresh: r.Fresh, without: r.Without, stream: true}
	if r.Prose {
		p.form, p.MaxTokens = prose, min(p.MaxTokens, proseTokens)
		if p.Think != "" {
			p = p.quieter() // the bound is of the text, and a thought would use it up
		}
	}
	if r.Fresh {
		p.Temperature = max(freshTemperature, p.Temperature)
		if p.FreshTokens > 0 {
			p.MaxTokens = min(p.FreshTokens, p.MaxTokens)
		}
		p.Seed += 1 + len(r.Messages) // another one at each turn, the same one in each repetition
	}
	return p
}

// shape is what Encode must know of p beside the wiring and the request.
func (p prompt) shape() string {
	words := []string{string(p.form)}
	if p.fresh {
		words = append(words, "fresh")
	}
	if !p.stream {
		words = append(words, "whole")
	}
	if p.quiet {
		words = append(words, "quiet")
	}
	for _, name := range p.drop {
		words = append(words, "-"+name)
	}
	return strings.Join(words, " ")
}

// prompt settles how r is sent now.
func (m *Model) prompt(r window.Request) prompt {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.wire.prompt(r, m.form)
	if p.drop = m.drop; m.quiet {
		p = p.quieter()
	}
	return p
}

// build makes the request in the server's protocol.
func (p prompt) build() any {
	switch p.Server {
	case "ollama":
		return p.ollama()
	case "anthropic":
		return p.anthropic()
	}
	return p.openai()
}

// Body returns the bytes that Reply would send for r now.
func (m *Model) Body(r window.Request) ([]byte, error) {
	return json.Marshal(m.prompt(r).build())
}

// Wire returns what Encode needs to make the bytes of a request of this model
// again, without the model: it belongs into the log of a session.
func (m *Model) Wire() json.RawMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.RawMessage(compact(m.wire))
}

// Encode returns the bytes that were sent for r by a model with that Wire.
// shape is the Reply's: the form of the calls, and whether the reply was asked
// for once more. An empty shape is that of a first request with tools.
func Encode(wire json.RawMessage, shape string, r window.Request) ([]byte, error) {
	var w wiring
	if err := json.Unmarshal(wire, &w); err != nil {
		return nil, fmt.Errorf("how the session's model was asked cannot be read: %w", err)
	}
	words := strings.Fields(cmp.Or(strings.TrimSpace(shape), string(native)))
	r.Fresh = r.Fresh || has(words, "fresh")
	p := w.prompt(r, form(words[0]))
	p.stream = !has(words, "whole")
	if has(words, "quiet") {
		p = p.quieter()
	}
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "-"); ok {
			p.drop = append(p.drop, name)
		}
	}
	return json.Marshal(p.build())
}
