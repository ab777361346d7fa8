package llm

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ollama/ollama/api"
)

// ollamaClient is a client of the Ollama that Get was told of, else of the one that the environment names.
func (g *getter) ollamaClient() (*api.Client, error) {
	if g.OllamaURL == "" {
		return api.ClientFromEnvironment()
	}
	base, err := url.Parse(g.OllamaURL)
	if err != nil {
		return nil, fmt.Errorf("the address of Ollama is wrong: %w", err)
	}
	return api.NewClient(base, http.DefaultClient), nil
}

// ollamaRuns asks once, briefly: a server on this machine answers at once or is not there.
func (g *getter) ollamaRuns(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	c, err := g.ollamaClient()
	if err != nil {
		return false
	}
	_, err = c.Version(ctx)
	return err == nil
}

// fromOllama lets Ollama pull the model. It keeps its own books: it resumes and checks hashes.
func (g *getter) fromOllama(ctx context.Context) (string, error) {
	if g.Ollama == "" {
		return "", fmt.Errorf("the catalogue knows no Ollama name for %s", g.Name)
	}
	c, err := g.ollamaClient()
	if err != nil {
		return "", err
	}
	g.Log("Ollama fetches " + g.Ollama)
	progress := meter{total: g.Bytes, report: g.Progress}
	err = c.Pull(ctx, &api.PullRequest{Model: g.Ollama}, func(r api.ProgressResponse) error {
		progress.part(r.Digest, r.Completed) // layers come at the same time
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("the Ollama that runs here cannot fetch %s: %w", g.Ollama, err)
	}
	progress.set(progress.total)
	return "ollama/" + g.Ollama, nil
}
