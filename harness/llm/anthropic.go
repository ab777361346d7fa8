package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	window "tether/context"
)

// anthropicVersion is the version of the protocol that this file speaks.
const anthropicVersion = "2023-06-01"

// thoughtBudget is what a model may think, in tokens, where it wants a budget:
// the least that the protocol allows.
const thoughtBudget = 1024

// anthropic is the protocol of /v1/messages, as Anthropic and others serve it.
type anthropic struct {
	url  string // with the version
	key  string // sent to the server, and nowhere else
	rt   http.RoundTripper
	name string // of the model, for the server
}

// openAnthropic opens the model called name of the endpoint that c names.
func openAnthropic(ctx context.Context, c Config, name string) (*Model, error) {
	url, err := address(cmp.Or(c.AnthropicURL, os.Getenv("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"), "", "/v1")
	if err != nil {
		return nil, &ConfigError{"ANTHROPIC_BASE_URL", err.Error()}
	}
	variable := cmp.Or(c.KeyFrom, "ANTHROPIC_API_KEY")
	a := &anthropic{url: url + "/v1", key: os.Getenv(variable), rt: c.transport(), name: name}
	if a.key == "" && strings.HasPrefix(url, "https:") {
		return nil, &ConfigError{variable, "it is not set; export the key of " + url}
	}
	var status int
	var body []byte
	patience := probeTimeout
	if strings.HasPrefix(url, "https:") {
		patience *= 3 // it is far away
	}
	err = twice(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
		defer cancel()
		if status, body, err = a.about(ctx); err != nil && context.Cause(ctx) == errSilent {
			return errSilent
		}
		return err
	})
	switch {
	case err != nil:
		return nil, a.failed(err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return nil, &ConfigError{variable, "the key was refused; export the key of " + a.url}
	case status == http.StatusNotFound && bytes.Contains(body, []byte("not_found_error")):
		return nil, &MissingModelError{Model: "anthropic/" + name, Repair: "the server says: " + clip(errorText(body), 200)}
	}
	var about struct {
		Window int `json:"max_input_tokens"`
	}
	_ = json.Unmarshal(body, &about) // servers that do not tell are asked for as much as was configured
	return &Model{
		send: a.send, wire: wiring{Model: name},
		info: Info{Name: "anthropic/" + name, Server: "anthropic", Native: true, Window: about.Window},
	}, nil
}

// about asks the server about the model.
func (a *anthropic) about(ctx context.Context) (int, []byte, error) {
	resp, err := a.do(ctx, a.rt, http.MethodGet, "/models/"+a.name, nil)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxLine))
	return resp.StatusCode, body, err
}

// do sends a request and returns the reply with its body still to be read.
func (a *anthropic) do(ctx context.Context, rt http.RoundTripper, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("anthropic-version", anthropicVersion)
	req.Header.Set("Content-Type", "application/json")
	if a.key != "" {
		req.Header.Set("x-api-key", a.key)
	}
	return (&http.Client{Transport: rt}).Do(req)
}

// The request. What never changes comes first.
type (
	messagesRequest struct {
		Model        string            `json:"model"`
		Tools        json.RawMessage   `json:"tools,omitempty"`
		ToolChoice   json.RawMessage   `json:"tool_choice,omitempty"`
		System       []contentBlock    `json:"system,omitempty"`
		Messages     []messagesMessage `json:"messages"`
		MaxTokens    int               `json:"max_tokens"`
		Temperature  *float64          `json:"temperature,omitempty"`
		Thinking     json.RawMessage   `json:"thinking,omitempty"`
		Output       json.RawMessage   `json:"output_config,omitempty"`
		CacheControl json.RawMessage   `json:"cache_control,omitempty"`
		Stream       bool              `json:"stream"`
	}
	messagesMessage struct {
		Role    window.Role       `json:"role"`
		Content []json.RawMessage `json:"content"`
	}
	contentBlock struct {
		Type         string          `json:"type"`
		Text         string          `json:"text,omitempty"`
		ID           string          `json:"id,omitempty"`
		Name         string          `json:"name,omitempty"`
		Input        *window.Call    `json:"input,omitempty"`
		Answers      string          `json:"tool_use_id,omitempty"`
		Content      string          `json:"content,omitempty"`
		CacheControl json.RawMessage `json:"cache_control,omitempty"`
	}
)

// Parts of a request that are always the same. The cache is marked where the
// system message ends, where the task ends, and by the server itself at the end
// of the newest message: that mark must not stand in the message, or the next
// request would not begin with this one.
const (
	anthropicTools = `[{"name":"` + toolName + `","description":"` + toolAbout + `","input_schema":` + parameters + `}]`
	oneCall        = `{"type":"auto","disable_parallel_tool_use":true}` // a thought belongs to one call
	ephemeral      = `{"type":"ephemeral"}`
)

// anthropic makes the request.
func (p prompt) anthropic() *messagesRequest {
	req := &messagesRequest{Model: p.Model, MaxTokens: p.MaxTokens, Temperature: &p.Temperature, Stream: p.stream}
	for i, s := range p.speak() {
		switch {
		case s.role == window.RoleSystem:
			req.System = []contentBlock{p.cached(contentBlock{Type: "text", Text: s.content}, true)}
		case s.role == window.RoleAssistant && s.call == nil && strings.TrimSpace(s.content) == "":
			// it said nothing, and a text may not be empty
		default:
			req.Messages = append(req.Messages, p.block(s, i == 1))
		}
	}
	if !p.dropped("cache_control") {
		req.CacheControl = json.RawMessage(ephemeral)
	}
	switch p.form {
	case native:
		req.Tools, req.ToolChoice = json.RawMessage(anthropicTools), json.RawMessage(oneCall)
	case constrained:
		req.Output = json.RawMessage(`{"format":{"type":"json_schema","schema":` + string(schema(p.words())) + `}}`)
	}
	if p.thinksAloud() {
		// A thinking model takes no temperature, and its thought is part of the reply.
		req.Temperature, req.Thinking = nil, json.RawMessage(`{"type":"adaptive"}`)
		if !p.adaptive() {
			req.Thinking = json.RawMessage(fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, thoughtBudget))
			req.MaxTokens += thoughtBudget
		}
	}
	if p.dropped("temperature") {
		req.Temperature = nil
	}
	return req
}

// thinksAloud reports whether a model of Anthropic is told to think.
func (p prompt) thinksAloud() bool {
	return p.Server == "anthropic" && p.Think == "on" && !p.dropped("thinking")
}

// cached is b with a mark of the cache, if it is where one belongs.
func (p prompt) cached(b contentBlock, here bool) contentBlock {
	if here && !p.dropped("cache_control") {
		b.CacheControl = json.RawMessage(ephemeral)
	}
	return b
}

// block is what was said as a message; mark marks the cache.
func (p prompt) block(s spoken, mark bool) messagesMessage {
	m := messagesMessage{Role: s.role}
	b := contentBlock{Type: "text", Text: s.content}
	switch {
	case s.role == window.RoleTool:
		m.Role, b = window.RoleUser, contentBlock{Type: "tool_result", Answers: s.id, Content: s.content}
	case s.call != nil:
		b = contentBlock{Type: "tool_use", ID: s.id, Name: toolName, Input: s.call}
	}
	if p.thinksAloud() && s.thought != "" {
		var thoughts []json.RawMessage
		if json.Unmarshal([]byte(s.thought), &thoughts) == nil {
			m.Content = thoughts // as they came: they are signed
		}
	}
	m.Content = append(m.Content, json.RawMessage(compact(p.cached(b, mark))))
	return m
}

// send sends the request and collects the reply.
func (a *anthropic) send(ctx context.Context, req any, s *sink) (Raw, window.Usage, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return Raw{}, window.Usage{}, err
	}
	wire := &tap{base: a.rt, beat: s.beat}
	var resp *http.Response
	err = twice(ctx, func(ctx context.Context) error {
		resp, err = a.do(ctx, wire, http.MethodPost, "/messages", body)
		return err
	})
	if err != nil {
		return Raw{}, window.Usage{}, a.failed(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		return Raw{}, window.Usage{}, a.refused(resp)
	}
	r := messagesReader{sink: s}
	err = r.collect(resp.Body)
	switch {
	case err == nil && s.finish != "":
		raw := s.raw()
		raw.Thought = r.thought()
		return raw, r.usage, nil
	case err == nil:
		err = &CutError{errNoEnd}
	case brokeOff(err):
		err = &CutError{why(err)}
	}
	return Raw{}, r.usage, err
}

// refused reads the error of a reply that is one.
func (a *anthropic) refused(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil && len(body) == 0 {
		return &CutError{why(err)}
	}
	text := cmp.Or(errorText(body), http.StatusText(resp.StatusCode))
	if resp.StatusCode == http.StatusNotFound && bytes.Contains(body, []byte("model")) {
		return &MissingModelError{Model: "anthropic/" + a.name, Repair: "the server says: " + clip(text, 200)}
	}
	return busy(serverError(resp.StatusCode, text), resp.Header)
}

// failed gives an error from before the reply its type.
func (a *anthropic) failed(err error) error {
	switch {
	case isDial(err):
		return noServer(a.url, err, "export ANTHROPIC_BASE_URL=http://HOST:PORT")
	case brokeOff(err):
		return &CutError{why(err)}
	}
	return err
}

// Waiting for a server that has too much to do: as long as it says, from
// busyPause to busyLimit.
const (
	busyPause = 2 * time.Second
	busyLimit = 2 * time.Minute
)

// spent are the words about an account that waiting does not fill.
var spent = regexp.MustCompile(`(?i)quota|credit balance|billing`)

// busy marks an error of a server that has too much to do (429, and Anthropic's
// 529) as one to wait for, as long as the server asks for.
func busy(se *ServerError, h http.Header) *ServerError {
	if spent.MatchString(se.Text) && se.Class == Other {
		se.Class = Refused
	}
	if se.Class != Other || se.Status != http.StatusTooManyRequests && se.Status != 529 {
		return se
	}
	se.Class, se.Retry = Loading, busyPause
	if n, err := strconv.Atoi(h.Get("Retry-After")); err == nil && n >= 0 {
		se.Retry = min(time.Duration(n)*time.Second, busyLimit)
	}
	return se
}

// waiting tells the user what is waited for, if it is a server that is busy.
func (e *ServerError) waiting() string {
	if e.Retry == 0 {
		return ""
	}
	return fmt.Sprintf("the model server is busy (%d), asked again in %v: %s", e.Status, e.Retry, clip(e.Text, 80))
}
