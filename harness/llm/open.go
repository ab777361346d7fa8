package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// forms says how models are named, for people who named one otherwise.
const forms = "name a model as ollama/NAME, llama/NAME@URL, openai/NAME, anthropic/NAME, gguf:PATH or script:FILE"

// how says how to get a model where there is none.
const how = "get one: tether models get qwen2.5-coder-1.5b\n" +
	"or start a server that has one: ollama serve, or llama-server -m MODEL.gguf --jinja"

// addressOf has the variable with the address of the server, for each form of name
// that holds none.
var addressOf = map[string]string{"ollama": "OLLAMA_HOST", "openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}

// open opens the model by the form of its name.
func open(ctx context.Context, c Config) (*Model, error) {
	scheme, name, _ := strings.Cut(c.Model, "/")
	if variable := addressOf[scheme]; variable != "" {
		if short, address, ok := strings.Cut(name, "@http"); ok { // sent to another server it would be a surprise
			return nil, &ConfigError{c.Model, fmt.Sprintf("an address is no part of this name\nset it beside the name: %s=http%s, and --model %s/%s", variable, address, scheme, short)}
		}
	}
	switch {
	case c.Model == "":
		return discover(ctx, c)
	case strings.HasPrefix(c.Model, "script:"):
		return openScript(strings.TrimPrefix(c.Model, "script:"))
	case strings.HasPrefix(c.Model, "gguf:"):
		return openFile(ctx, c, strings.TrimPrefix(c.Model, "gguf:"))
	case scheme == "ollama" && name != "":
		return openOllama(ctx, c, name)
	case scheme == "llama":
		return openNamedLlama(ctx, c, name)
	case scheme == "openai" && name != "":
		return openOpenAI(ctx, c, name)
	case scheme == "anthropic" && name != "":
		return openAnthropic(ctx, c, name)
	}
	if path := fetched(c, c.Model); path != "" {
		return openFile(ctx, c, path)
	}
	repair := forms
	if e, ok := Lookup(c.Model); ok {
		repair = "get it: tether models get " + e.Name
	}
	return nil, &MissingModelError{Model: c.Model, Installed: installed(ctx, c), Repair: repair}
}

// discover takes the first model that is ready, nearest first.
func discover(ctx context.Context, c Config) (*Model, error) {
	m, err := discoverOllama(ctx, c)
	if m != nil || err != nil {
		return m, err
	}
	m, err = openLlama(ctx, c, c.LlamaURL, "")
	var dead *UnreachableError
	switch {
	case err == nil:
		c.Log("model: " + m.info.Name)
		return m, nil
	case !errors.As(err, &dead):
		c.Log(fmt.Sprintf("what answers at %s is not a llama-server: %v", c.LlamaURL, err))
	}
	if files := Installed(""); len(files) > 0 {
		c.Log("model: gguf:" + files[0])
		return openFile(ctx, c, files[0])
	}
	return nil, &MissingModelError{Repair: how}
}

// Running reports whether a model server runs here that Open would take for
// an empty Config.Model, at the addresses of the environment. It takes at most
// 4 s, and no time worth mentioning where nothing listens.
func Running(ctx context.Context) bool {
	c, err := Config{}.filled()
	if err != nil {
		return false
	}
	if o, err := newOllama(ctx, c); err == nil && len(o.names(ctx)) > 0 {
		return true
	}
	_, err = openLlama(ctx, c, c.LlamaURL, "")
	return err == nil
}

// openNamedLlama reads NAME@URL; both are optional.
func openNamedLlama(ctx context.Context, c Config, name string) (*Model, error) {
	url := c.LlamaURL
	if i := strings.LastIndex(name, "@"); i >= 0 {
		var err error
		if url, err = address(cmp.Or(name[i+1:], url), "8080", "/v1"); err != nil {
			return nil, &ConfigError{"model", err.Error()}
		}
		name = name[:i]
	}
	return openLlama(ctx, c, url, name)
}

// openFile starts a server for a model file and opens it; Close stops it.
func openFile(ctx context.Context, c Config, path string) (*Model, error) {
	if p := fetched(c, path); p != "" {
		path = p
	}
	url, stop, err := c.start(ctx, c, path)
	if err != nil {
		return nil, err
	}
	m, err := openLlama(ctx, c, url, "")
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	m.info.Name = "gguf:" + path
	m.close = stop
	return m, nil
}

// fetched returns the path of the fetched model called name, or "".
func fetched(c Config, name string) string {
	for _, path := range Installed("") {
		base := filepath.Base(path)
		if strings.EqualFold(base, name) || strings.EqualFold(strings.TrimSuffix(base, ".gguf"), name) {
			return path
		}
	}
	return ""
}

// installed lists all models that could be opened now, as they are named.
func installed(ctx context.Context, c Config) []string {
	var names []string
	if o, err := newOllama(ctx, c); err == nil {
		for _, n := range o.names(ctx) {
			names = append(names, "ollama/"+n)
		}
	}
	if m, err := openLlama(ctx, c, c.LlamaURL, ""); err == nil {
		names = append(names, m.info.Name)
	}
	for _, path := range Installed("") {
		names = append(names, "gguf:"+path)
	}
	return names
}
