package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"syscall"

	window "tether/context"
)

// openai is the protocol of /v1/chat/completions, as OpenAI and many others
// serve it, llama-server among them.
type openai struct {
	url    string // with the path up to /chat/completions
	key    string // sent to the server, and nowhere else
	rt     http.RoundTripper
	name   string // of the model, for the server
	repair string // the command that starts such a server
}

// openOpenAI opens the model called name of the endpoint that c names.
func openOpenAI(ctx context.Context, c Config, name string) (*Model, error) {
	o := &openai{
		url: versioned(c.OpenAIURL), key: os.Getenv(cmp.Or(c.KeyFrom, "OPENAI_API_KEY")), rt: c.transport(), name: name,
		repair: "export OPENAI_BASE_URL=http://HOST:PORT/v1",
	}
	status, body, err := probe(ctx, o.rt, o.url+"/models", o.key)
	if err != nil {
		return nil, o.failed(err)
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return nil, &ConfigError{cmp.Or(c.KeyFrom, "OPENAI_API_KEY"), "the key was refused; export the key of " + o.url}
	}
	info := Info{Name: "openai/" + name, Server: "openai", Native: true, Window: listed(body, name)}
	return &Model{send: o.send, wire: wiring{Model: name}, info: info}, nil
}

// versioned adds the version to an address that has no path.
func versioned(url string) string {
	if bytes.Count([]byte(url), []byte("/")) == 2 {
		return url + "/v1"
	}
	return url
}

// listed is the window of the model called name, where the list of models
// tells it; else 0.
func listed(models []byte, name string) int {
	var list struct {
		Data []struct {
			ID  string `json:"id"`
			Max int    `json:"max_model_len"`
		} `json:"data"`
	}
	if json.Unmarshal(models, &list) != nil {
		return 0
	}
	for _, m := range list.Data {
		if m.ID == name {
			return m.Max
		}
	}
	return 0
}

// The request. Model and messages come before everything that may change.
type (
	chatRequest struct {
		Model          string          `json:"model"`
		Messages       []chatMessage   `json:"messages"`
		Tools          json.RawMessage `json:"tools,omitempty"`
		ResponseFormat json.RawMessage `json:"response_format,omitempty"`
		Grammar        string          `json:"grammar,omitempty"` // of llama-server
		MaxTokens      int             `json:"max_tokens,omitempty"`
		MaxCompletion  int             `json:"max_completion_tokens,omitempty"` // what OpenAI's thinking models call it
		Temperature    *float64        `json:"temperature,omitempty"`
		Seed           *int            `json:"seed,omitempty"`
		Effort         string          `json:"reasoning_effort,omitempty"`
		TemplateArgs   *templateArgs   `json:"chat_template_kwargs,omitempty"`
		Stream         bool            `json:"stream"`
		StreamOptions  *streamOptions  `json:"stream_options,omitempty"`
		CachePrompt    bool            `json:"cache_prompt,omitempty"`
	}
	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	chatMessage struct {
		Role       string     `json:"role"`
		Content    string     `json:"content"`
		ToolCalls  []chatCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	chatCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

// chatTools is the list of tools: one.
const chatTools = `[{"type":"function","function":{"name":"` + toolName + `","description":"` + toolAbout + `","parameters":` + parameters + `}}]`

// openai makes the request.
func (p prompt) openai() *chatRequest {
	req := &chatRequest{
		Model: p.Model, MaxTokens: p.MaxTokens, Temperature: &p.Temperature, Seed: &p.Seed,
		Effort: p.effort(), TemplateArgs: p.templateArgs(),
		Stream: p.stream, CachePrompt: p.Server == "llama-server",
	}
	if p.dropped("temperature") {
		req.Temperature = nil
	}
	if p.dropped("seed") {
		req.Seed = nil
	}
	if p.dropped("max_tokens") {
		req.MaxTokens, req.MaxCompletion = 0, p.MaxTokens
	}
	if p.stream && !p.dropped("stream_options") {
		req.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	for _, s := range p.speak() {
		req.Messages = append(req.Messages, chatMessageOf(s))
	}
	switch p.form {
	case native:
		req.Tools = json.RawMessage(chatTools)
	case fenced:
		if p.Server == "llama-server" {
			req.Grammar = fenceGrammar(p.without)
		}
	case constrained:
		req.ResponseFormat = json.RawMessage(`{"type":"json_schema","json_schema":{"name":"` + toolName + `","strict":true,"schema":` + string(schema(p.words())) + `}}`)
	}
	return req
}

func chatMessageOf(s spoken) chatMessage {
	m := chatMessage{Role: string(s.role), Content: s.content}
	if s.role == window.RoleTool {
		m.ToolCallID = s.id
	}
	if s.call != nil {
		m.ToolCalls = []chatCall{{ID: s.id, Type: "function", Function: chatFunction{Name: toolName, Arguments: compact(s.call)}}}
	}
	return m
}

// send sends the request and collects the reply.
func (o *openai) send(ctx context.Context, req any, s *sink) (Raw, window.Usage, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return Raw{}, window.Usage{}, err
	}
	wire := &tap{base: o.rt, beat: s.beat}
	var resp *http.Response
	err = twice(ctx, func(ctx context.Context) error {
		resp, err = o.post(ctx, wire, body)
		return err
	})
	if err != nil {
		return Raw{}, window.Usage{}, o.failed(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		return Raw{}, window.Usage{}, o.refused(resp)
	}
	usage, err := collect(resp.Body, s)
	switch {
	case err == nil && s.finish != "":
		return s.raw(), usage, nil
	case err == nil:
		err = &CutError{errNoEnd}
	case brokeOff(err):
		err = &CutError{why(err)}
	}
	return Raw{}, usage, err
}

// post sends body and returns the reply with its body still to be read.
func (o *openai) post(ctx context.Context, rt http.RoundTripper, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	if o.key != "" {
		req.Header.Set("Authorization", "Bearer "+o.key)
	}
	return (&http.Client{Transport: rt}).Do(req)
}

// refused reads the error of a reply that is one.
func (o *openai) refused(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil && len(body) == 0 {
		return &CutError{why(err)}
	}
	text := errorText(body)
	if resp.StatusCode == http.StatusNotFound && bytes.Contains(body, []byte("model")) {
		return &MissingModelError{Model: o.name, Repair: "the server says: " + clip(text, 200)}
	}
	if text == "" {
		text = http.StatusText(resp.StatusCode)
	}
	return busy(serverError(resp.StatusCode, text), resp.Header)
}

// failed gives an error from before the reply its type.
func (o *openai) failed(err error) error {
	switch {
	case isDial(err):
		return noServer(o.url, err, o.repair)
	case brokeOff(err):
		return &CutError{why(err)}
	}
	return err
}

// brokeOff reports whether err means that the other side went away.
func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errTooLong) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// errorText is the text of an error object in one of the shapes in use, with
// the numbers that the object has beside it; else the body itself.
func errorText(body []byte) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || len(e.Error) == 0 {
		return string(body)
	}
	var o struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	var s string
	switch {
	case json.Unmarshal(e.Error, &s) == nil:
		return s
	case json.Unmarshal(e.Error, &o) == nil && o.Message != "":
		return o.Message
	}
	return string(e.Error)
}
