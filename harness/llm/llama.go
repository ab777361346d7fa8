package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
)

// props is what llama-server tells of itself.
type props struct {
	Build    string `json:"build_info"`
	Alias    string `json:"model_alias"`
	Path     string `json:"model_path"`
	Slots    int    `json:"total_slots"`
	Template string `json:"chat_template"`
	Caps     struct {
		Tools *bool `json:"supports_tools"` // since 2026
		Calls *bool `json:"supports_tool_calls"`
	} `json:"chat_template_caps"`
	Defaults struct {
		Window int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	Error json.RawMessage `json:"error"`
}

// openLlama opens what llama-server at url serves. A name, if there is one,
// must be part of the served model's.
func openLlama(ctx context.Context, c Config, url, name string) (*Model, error) {
	o := &openai{url: url + "/v1", rt: c.transport(), repair: "llama-server -m MODEL.gguf --jinja"}
	p, err := o.props(ctx, c, url)
	if err != nil {
		return nil, err
	}
	served := strings.TrimSuffix(path.Base(cmp.Or(p.Alias, p.Path, "model")), ".gguf")
	if !strings.Contains(strings.ToLower(served), strings.ToLower(strings.TrimSuffix(path.Base(name), ".gguf"))) && name != "" {
		return nil, &MissingModelError{Model: "llama/" + name, Installed: []string{"llama/" + served + "@" + url}, Repair: "llama-server serves the one model that it was started with"}
	}
	o.name = served
	return &Model{
		send: o.send, wire: wiring{Model: served},
		count: func(ctx context.Context, text string) (int, error) { return o.tokens(ctx, url, text) },
		info: Info{
			Name: "llama/" + served + "@" + url, Server: "llama-server", Version: p.Build,
			Window: o.window(ctx, c, url, p), Native: p.native(),
		},
	}, nil
}

// props asks the server, and waits for it while it loads its model.
func (o *openai) props(ctx context.Context, c Config, url string) (props, error) {
	var p props
	for waited := c.FirstToken; ; waited -= c.pause {
		status, body, err := probe(ctx, o.rt, url+"/props", "")
		if err != nil {
			o.url = url
			return p, o.failed(err)
		}
		if status == http.StatusOK && json.Unmarshal(body, &p) == nil && p.Defaults.Window > 0 {
			return p, nil
		}
		se := serverError(status, errorText(body))
		if se.Class != Loading || waited <= 0 {
			return p, se
		}
		if err := wait(ctx, c.pause); err != nil {
			return p, err
		}
	}
}

// native reports whether the template takes tools and shows calls again.
func (p props) native() bool {
	if p.Caps.Tools != nil && p.Caps.Calls != nil {
		return *p.Caps.Tools && *p.Caps.Calls
	}
	return strings.Contains(p.Template, "tool_calls")
}

// window is what one request and its reply may hold together, in tokens: the
// slot's, and never more than the model was trained for.
func (o *openai) window(ctx context.Context, c Config, url string, p props) int {
	n := o.slot(ctx, c, url, p)
	if t := o.trained(ctx, url); t > 0 && t < n {
		return t
	}
	return n
}

// slot is the window of one request in tokens. The number in /props has meant
// the whole server's and one slot's; the list of slots is clear, where it may
// be read. Else the smaller one is taken: an overflow costs more than a fold.
func (o *openai) slot(ctx context.Context, c Config, url string, p props) int {
	var slots []struct {
		Window int `json:"n_ctx"`
	}
	_, body, err := probe(ctx, o.rt, url+"/slots", "")
	if err == nil && json.Unmarshal(body, &slots) == nil && len(slots) > 0 && slots[0].Window > 0 {
		return slots[0].Window
	}
	n := p.Defaults.Window / max(p.Slots, 1)
	if p.Slots > 1 {
		c.Log(fmt.Sprintf("the server does not say how much each of its %d slots holds; taken to be %d tokens", p.Slots, n))
	}
	return n
}

// trained is the window that the served model was trained for; 0 if it is not
// told.
func (o *openai) trained(ctx context.Context, url string) int {
	var list struct {
		Data []struct {
			Meta struct {
				Trained int `json:"n_ctx_train"`
			} `json:"meta"`
		} `json:"data"`
	}
	_, body, err := probe(ctx, o.rt, url+"/v1/models", "")
	if err != nil || json.Unmarshal(body, &list) != nil || len(list.Data) == 0 {
		return 0
	}
	return list.Data[0].Meta.Trained
}

// tokens counts the tokens of text.
func (o *openai) tokens(ctx context.Context, url, text string) (int, error) {
	body, err := json.Marshal(map[string]string{"content": text})
	if err != nil {
		return 0, err
	}
	status, answer, err := get(ctx, o.rt, http.MethodPost, url+"/tokenize", "", body)
	if err != nil {
		return 0, o.failed(err)
	}
	var t struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := json.Unmarshal(answer, &t); err != nil || status != http.StatusOK {
		return 0, serverError(status, fmt.Sprintf("/tokenize: %s", errorText(answer)))
	}
	return len(t.Tokens), nil
}
