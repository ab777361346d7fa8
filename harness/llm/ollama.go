package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"

	window "tether/context"
)

// keepAlive keeps the model loaded between turns: a test run of ten minutes
// must not cost the loading of the model again.
const keepAlive = 30 * time.Minute

// ollama is the protocol of an Ollama server.
type ollama struct {
	url     string
	base    *url.URL
	rt      http.RoundTripper
	name    string
	version string
	loaded  atomic.Bool // with how large a window was asked
}

// newOllama returns the protocol if a server answers.
func newOllama(ctx context.Context, c Config) (*ollama, error) {
	base, err := url.Parse(c.OllamaURL)
	if err != nil {
		return nil, &ConfigError{"OLLAMA_HOST", err.Error()}
	}
	o := &ollama{url: c.OllamaURL, base: base, rt: c.transport()}
	status, body, err := probe(ctx, o.rt, o.url+"/api/version", "")
	if err != nil {
		return nil, o.failed(err)
	}
	var v struct{ Version string }
	if json.Unmarshal(body, &v) != nil || status != http.StatusOK {
		return nil, serverError(status, string(body))
	}
	o.version = v.Version
	return o, nil
}

// client returns a client of Ollama's own package on the transport rt.
func (o *ollama) client(rt http.RoundTripper) *api.Client {
	return api.NewClient(o.base, &http.Client{Transport: rt})
}

// names lists the models that the server has, newest first.
func (o *ollama) names(ctx context.Context) []string {
	list, err := o.client(o.rt).List(ctx)
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Models))
	for i, m := range list.Models {
		names[i] = cmp.Or(m.Name, m.Model)
	}
	return names
}

// openOllama opens the model called name.
func openOllama(ctx context.Context, c Config, name string) (*Model, error) {
	o, err := newOllama(ctx, c)
	if err != nil {
		return nil, err
	}
	return o.open(ctx, c, name)
}

// open asks the server about the model called name.
func (o *ollama) open(ctx context.Context, c Config, name string) (*Model, error) {
	show, err := o.client(o.rt).Show(ctx, &api.ShowRequest{Model: name})
	if missing(err) {
		return nil, &MissingModelError{Model: "ollama/" + name, Installed: installed(ctx, c), Repair: "get it: ollama pull " + name}
	}
	if err != nil {
		return nil, o.failed(err)
	}
	if err := templated(name, show.Template); err != nil {
		return nil, err
	}
	o.name = name
	return &Model{
		send: o.send, wire: wiring{Model: name},
		info: Info{
			Name: "ollama/" + name, Server: "ollama", Version: o.version, Window: trained(show.ModelInfo),
			Native: slices.Contains(show.Capabilities, model.CapabilityTools),
		},
	}, nil
}

// missing reports whether err says that there is no such model.
func missing(err error) bool {
	var se api.StatusError
	return errors.As(err, &se) && se.StatusCode == http.StatusNotFound
}

// trained is the window that a model was trained for; 0 if it is not told.
func trained(info map[string]any) int {
	for key, v := range info {
		if n, ok := v.(float64); ok && strings.HasSuffix(key, ".context_length") {
			return int(n)
		}
	}
	return 0
}

// ollama makes the request. The messages come before everything that may
// change, so that two requests of a session begin alike.
func (p prompt) ollama() *api.ChatRequest {
	no := false
	req := &api.ChatRequest{
		Model: p.Model, Stream: &p.stream, KeepAlive: &api.Duration{Duration: keepAlive},
		Truncate: &no, Shift: &no, // the window is ours: an overflow is an error, never a silent cut
		Options: map[string]any{
			"num_ctx": p.Window, "num_predict": p.MaxTokens, "temperature": p.Temperature, "seed": p.Seed,
		},
	}
	req.Think = p.ollamaThink()
	for _, s := range p.speak() {
		req.Messages = append(req.Messages, ollamaMessage(s))
	}
	switch p.form {
	case native:
		req.Tools = api.Tools{ollamaTool()}
	case constrained:
		req.Format = schema(p.words())
	}
	return req
}

func ollamaTool() api.Tool {
	t := api.Tool{Type: "function", Function: api.ToolFunction{Name: toolName, Description: toolAbout}}
	if err := json.Unmarshal([]byte(parameters), &t.Function.Parameters); err != nil {
		panic("llm: " + err.Error()) // a constant of this package
	}
	return t
}

func ollamaMessage(s spoken) api.Message {
	m := api.Message{Role: string(s.role), Content: s.content}
	if s.role == window.RoleTool {
		m.ToolName, m.ToolCallID = toolName, s.id
	}
	if s.call != nil {
		args := api.NewToolCallFunctionArguments()
		args.Set("cmd", s.call.Cmd)
		if s.call.Stdin != "" {
			args.Set("stdin", s.call.Stdin)
		}
		m.ToolCalls = []api.ToolCall{{ID: s.id, Function: api.ToolCallFunction{Name: toolName, Arguments: args}}}
	}
	return m
}

// send sends the request and collects the reply. Ollama's client takes a
// stream that ends early, or that cannot be read, for a finished one: the last
// frame is looked for here.
func (o *ollama) send(ctx context.Context, req any, s *sink) (Raw, window.Usage, error) {
	var usage window.Usage
	wire := &tap{base: o.rt, beat: s.beat}
	err := twice(ctx, func(ctx context.Context) error {
		return o.client(wire).Chat(ctx, req.(*api.ChatRequest), func(r api.ChatResponse) error {
			s.model = cmp.Or(r.Model, s.model)
			s.frame(r.Message)
			if r.Done || r.DoneReason != "" {
				s.finish = cmp.Or(r.DoneReason, "stop")
				usage.Prompt, usage.Output = r.PromptEvalCount, r.EvalCount
			}
			return nil
		})
	})
	switch {
	case err == nil && s.finish != "":
		usage.Cached, usage.CacheTold = cached(wire.last)
		s.holds = o.holds(ctx, req.(*api.ChatRequest))
		return s.raw(), usage, nil
	case wire.err != nil:
		return Raw{}, usage, &CutError{wire.err}
	case err != nil && !half(wire.last):
		return Raw{}, usage, o.failed(err)
	case wire.status >= 400:
		return Raw{}, usage, serverError(wire.status, http.StatusText(wire.status))
	}
	return Raw{}, usage, &CutError{errNoEnd}
}

// holds is the window in tokens with which the server has loaded the model, if
// that is less than req asked for, else 0. A server takes less where the memory
// of its machine is short, and then cuts what is longer. It is asked once, after
// a reply, when the model is loaded for certain.
func (o *ollama) holds(ctx context.Context, req *api.ChatRequest) int {
	if o.loaded.Swap(true) {
		return 0
	}
	status, body, err := probe(ctx, o.rt, o.url+"/api/ps", "")
	var ps api.ProcessResponse
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &ps) != nil {
		return 0 // an older server does not say
	}
	asked, _ := req.Options["num_ctx"].(int)
	for _, m := range ps.Models {
		if (m.Name == o.name || m.Model == o.name || m.Name == o.name+":latest") && m.ContextLength >= minWindow && m.ContextLength < asked {
			return m.ContextLength
		}
	}
	return 0
}

// frame takes one frame of a reply.
func (s *sink) frame(m api.Message) {
	s.text(m.Content)
	s.think(m.Thinking)
	for _, c := range m.ToolCalls {
		s.mark()
		s.calls = append(s.calls, RawCall{Name: c.Function.Name, Arguments: c.Function.Arguments.String()})
	}
}

// half reports whether line is the beginning of a frame: its sender died.
func half(line []byte) bool {
	return len(line) > 0 && line[0] == '{' && !json.Valid(line)
}

// cached reads the count of cached tokens, which the types of Ollama's client
// lack, from the last frame. Versions before 0.30 do not tell it: then there is none.
func cached(frame []byte) (n int, told bool) {
	var f struct {
		N *int `json:"prompt_eval_cached_count"`
	}
	if json.Unmarshal(frame, &f) != nil || f.N == nil {
		return 0, false
	}
	return *f.N, true
}

// failed gives an error of the client its type.
func (o *ollama) failed(err error) error {
	var se api.StatusError
	var auth api.AuthorizationError
	switch {
	case isDial(err):
		return noServer(o.url, err, "ollama serve")
	case missing(err):
		return &MissingModelError{Model: "ollama/" + o.name, Repair: "get it: ollama pull " + o.name}
	case errors.As(err, &auth):
		return serverError(auth.StatusCode, "sign in first: ollama signin")
	case errors.As(err, &se):
		return serverError(se.StatusCode, cmp.Or(se.ErrorMessage, se.Status))
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case brokeOff(err):
		return &CutError{why(err)}
	}
	return serverError(0, err.Error())
}
