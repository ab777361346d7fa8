package llm

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nowhere is the address of no server.
const nowhere = "http://127.0.0.1:1"

// with returns p with other routes.
func (p provider) with(routes map[string]string) provider {
	all := maps.Clone(p.routes)
	maps.Copy(all, routes)
	p.routes = all
	return p
}

func TestWindow(t *testing.T) {
	ollama, llama, openai := providers[0], providers[1], providers[2]
	small := ollama.with(map[string]string{"/api/show": `{"capabilities":["tools"],"model_info":{"llama.context_length":2048}}`})
	noSlots := llama.with(map[string]string{"/slots": `{"error":{"code":501,"message":"This server does not support slots endpoint."}}`})
	for _, c := range []struct {
		name   string
		p      provider
		wanted int
		window int
	}{
		{"ollama gives what is wanted", ollama, 16000, 16000},
		{"but no more than the model has", small, 8192, 2048},
		{"llama: that of one slot", llama, 16000, 8000},
		{"llama: less is wanted", llama, 4096, 4096},
		{"llama: slots not told", noSlots, 32768, 8192},
		{"openai: the list tells", openai, 16000, 7000},
		{"openai: the list does not tell", openai.with(map[string]string{"/v1/models": "{}"}), 0, DefaultWindow},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := c.p.open(t, func(cfg *Config) { cfg.Window = c.wanted })
			if got := m.Info().Window; got != c.window {
				t.Errorf("got a window of %d, want %d", got, c.window)
			}
		})
	}
}

func TestOverflowNarrowsTheWindow(t *testing.T) {
	m, _ := providers[1].open(t, nil, reply{status: 400, body: `{"error":{"code":400,"message":"request (16717 tokens) exceeds the available context size (5000 tokens), try increasing it","type":"exceed_context_size_error"}}`})
	got, err := m.Reply(t.Context(), ask, nil)
	var se *ServerError
	if !errors.As(err, &se) || se.Limit != 5000 || got.Overflow != 5000 || m.Info().Window != 5000 {
		t.Errorf("got %v, an overflow of %d and a window of %d, want 5000", err, got.Overflow, m.Info().Window)
	}
}

func TestDiscovery(t *testing.T) {
	t.Setenv("TETHER_MODELS", t.TempDir())
	ollama, llama := newFake(t, providers[0]), newFake(t, providers[1])
	for _, c := range []struct {
		name        string
		ollama, lla string
		want        string
	}{
		{"ollama first, the larger model", ollama.URL, llama.URL, "ollama/n:7b"},
		{"llama-server then", nowhere, llama.URL, "llama/m@" + llama.URL},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said []string
			m, err := Open(t.Context(), Config{OllamaURL: c.ollama, LlamaURL: c.lla, Log: func(s string) { said = append(said, s) }})
			if err != nil || m.Info().Name != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if !strings.Contains(strings.Join(said, "\n"), c.want) {
				t.Errorf("the user is not told which model: %q", said)
			}
		})
	}
}

func TestDiscoveryOfAFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TETHER_MODELS", dir)
	file := filepath.Join(dir, "m.gguf")
	if err := os.WriteFile(file, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	llama := newFake(t, providers[1])
	for _, name := range []string{"", "m", "gguf:" + file, "gguf:m"} {
		stopped := false
		c := Config{Model: name, OllamaURL: nowhere, LlamaURL: nowhere}
		c.start = func(_ context.Context, _ Config, path string) (string, func() error, error) {
			if path != file {
				t.Errorf("%q: started %q, want %q", name, path, file)
			}
			return llama.URL, func() error { stopped = true; return nil }, nil
		}
		m, err := Open(t.Context(), c)
		if err != nil || m.Info().Name != "gguf:"+file {
			t.Fatalf("%q: got %v", name, err)
		}
		if err := m.Close(); err != nil || !stopped {
			t.Errorf("%q: Close gave %v and stopped is %v", name, err, stopped)
		}
	}
}

func TestNoModel(t *testing.T) {
	t.Setenv("TETHER_MODELS", t.TempDir())
	ollama := newFake(t, providers[0].with(map[string]string{"/api/tags": `{"models":[{"name":"m:1b"}]}`}))
	llama := newFake(t, providers[1])
	for _, c := range []struct {
		name, model, ollama, llama string
		want                       []string
	}{
		{"nothing at all", "", nowhere, nowhere, []string{"no model found", "tether models get"}},
		{"unknown form", "mistral", ollama.URL, llama.URL, []string{"mistral", "ollama/m:1b", "llama/m@", "ollama/NAME"}},
		{"another model than the served one", "llama/other", nowhere, llama.URL, []string{"llama/other", "llama/m@"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(t.Context(), Config{Model: c.model, OllamaURL: c.ollama, LlamaURL: c.llama})
			var missing *MissingModelError
			if !errors.As(err, &missing) {
				t.Fatalf("got %v, want a MissingModelError", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("no %q in %q", w, err)
				}
			}
		})
	}
}

func TestMissingOllamaModel(t *testing.T) {
	p := providers[0].with(nil)
	delete(p.routes, "/api/show")
	f := newFake(t, p)
	_, err := Open(t.Context(), Config{Model: "ollama/absent", OllamaURL: f.URL, LlamaURL: nowhere})
	var missing *MissingModelError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "ollama pull absent") || !strings.Contains(err.Error(), "ollama/m:1b") {
		t.Errorf("got %v", err)
	}
}

func TestWrongSettings(t *testing.T) {
	for _, c := range []Config{
		{Model: "ollama/m", Constrain: "maybe"},
		{Model: "ollama/m", Window: -1},
		{Model: "ollama/m", OllamaURL: "ftp://a"},
		{Model: "llama/m@ftp://a"},
	} {
		_, err := Open(t.Context(), c)
		var wrong *ConfigError
		if !errors.As(err, &wrong) {
			t.Errorf("%+v: got %v, want a ConfigError", c, err)
		}
	}
}

func TestKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	refused := reply{status: 401, body: `{"error":{"message":"Incorrect API key provided"}}`}
	m, _ := providers[2].open(t, nil, refused)
	_, err := m.Reply(t.Context(), ask, nil)
	if class(err) != "refused" || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("got %v", err)
	}
}

func TestTokens(t *testing.T) {
	m, _ := providers[1].open(t, nil)
	if n, err := m.Tokens(t.Context(), "hello world"); n != 2 || err != nil {
		t.Errorf("got %d, %v, want 2 tokens", n, err)
	}
	m, _ = providers[0].open(t, nil)
	if _, err := m.Tokens(t.Context(), "hello"); !errors.Is(err, ErrNoTokenizer) {
		t.Errorf("got %v, want ErrNoTokenizer", err)
	}
}

// TestNoTemplate holds that a model to which Ollama would show the last message and
// nothing else is refused, with the way out. A GGUF that is imported without a
// TEMPLATE is such a one.
func TestNoTemplate(t *testing.T) {
	p := providers[0].with(map[string]string{"/api/show": `{"capabilities":["completion"],"template":"{{ .Prompt }}"}`})
	_, err := Open(t.Context(), Config{Model: "ollama/m", OllamaURL: newFake(t, p).URL})
	var ce *ConfigError
	if !errors.As(err, &ce) || !strings.Contains(err.Error(), "no chat template") || strings.Count(err.Error(), "\n") > 2 {
		t.Errorf("got %v, want that there is no chat template, in three lines", err)
	}
}
