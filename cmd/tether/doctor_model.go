package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"tether/harness/llm"
)

// Repairs of what only a model server has.
const (
	getModelLine = "tether models get qwen2.5-coder-1.5b"
	startServer  = "ollama serve, or llama-server -m MODEL.gguf --jinja -c 8192"
)

// asked are the checks of the model: which there is, and what its server does.
func (d *diagnosis) asked(ctx context.Context) []check {
	files := llm.Installed(llm.ModelsDir())
	here := check{Name: "files", OK: len(files) > 0, Found: fmt.Sprintf("%d fetched models in %s", len(files), llm.ModelsDir()), Repair: getModelLine}
	all := append(d.serverChecks(ctx, files), here)
	if d.speed {
		all = append(all, d.speedProbe(ctx))
	}
	return all
}

// serverChecks asks the server of the model, within the time there is.
func (d *diagnosis) serverChecks(ctx context.Context, files []string) []check {
	server := check{Name: "server", Repair: startServer}
	model := check{Name: "model", Needed: true, Repair: getModelLine}
	ctx, cancel := context.WithDeadline(ctx, d.finish)
	defer cancel()
	switch name := d.conf.Model.Name; {
	case d.wrong:
		model.Found = "not looked for: the configuration is wrong"
		return notAsked(server, model, "the configuration is wrong")
	case strings.HasPrefix(name, "gguf:"):
		// A file would have to be loaded to be tried; whether it is there is told
		// without that.
		_, err := os.Stat(strings.TrimPrefix(name, "gguf:"))
		model.OK, model.Found = err == nil, name
		server.OK, server.Found = true, "tether starts one for the file"
		return notAsked(server, model, "tether starts the server with the run")
	case name == "" && len(files) > 0 && !llm.Running(ctx):
		model.OK, model.Found = true, files[0]
		server.OK, server.Found = true, "none runs; tether starts one for the file"
		return notAsked(server, model, "tether starts the server with the run")
	}
	m, err := d.open(ctx)
	if err != nil {
		server.Found, model.Found = "no answer", firstLine(err.Error())
		if file, ok := strings.CutPrefix(d.conf.Model.Name, "script:"); ok {
			model.Repair = "make the file " + file + ", a JSON object a line, such as {\"cmd\":\"done\"}"
		}
		if _, rest, ok := strings.Cut(err.Error(), "\n"); ok {
			model.Repair = rest
		}
		if errors.Is(err, context.DeadlineExceeded) {
			model.Found, model.Repair = "no answer in the time that there is", "look whether the server is busy, or start it again: "+startServer
		}
		if missing, ok := errors.AsType[*llm.MissingModelError](err); ok && len(missing.Installed) > 0 {
			server.OK, server.Found = true, "has "+list(missing.Installed, 4)
		}
		return notAsked(server, model, "there is no model")
	}
	defer m.Close()
	i := m.Info()
	server.OK, server.Found = true, strings.TrimSpace(i.Server+" "+i.Version)
	model.OK, model.Found = true, fmt.Sprintf("%s, tool calls %s", i.Name, yes(i.Native))
	if i.Server == "script" {
		return notAsked(server, model, "a script is no server")
	}
	return append([]check{server, model}, fromServer(m.Inspect(ctx))...)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// open opens the model so that its decoding is bound, for one short reply.
func (d *diagnosis) open(ctx context.Context) (*llm.Model, error) {
	c := modelConfig(d.p, d.conf, []string{"sh", "done"})
	c.Constrain, c.MaxTokens, c.Log = "on", 64, nil
	m, err := llm.Open(ctx, c)
	if err != nil && ctx.Err() != nil {
		err = cmp.Or(context.Cause(ctx), err)
	}
	return m, err
}

// fromServer are the findings about a server as checks.
func fromServer(i llm.Inspection) []check {
	of := func(name string, f llm.Finding, repair string) check {
		c := check{Name: name, OK: f.OK && f.Known, Found: f.Said, Repair: repair}
		if !f.Known {
			c.OK, c.Unknown = true, true
		}
		return c
	}
	return []check{
		of("window", i.Window, "start the server with a larger context (llama-server -c 8192, OLLAMA_CONTEXT_LENGTH=8192), or set model.window to what it has"),
		of("template", i.Prefix, "start llama-server with another --chat-template-file, or take a model whose template keeps what it rendered; it works, but each step reads more again"),
		of("cache", i.Cached, "llama-server without --no-cache-prompt, Ollama 0.30 or newer; it works, but each step may read everything again"),
		of("schema", i.Bound, "a newer server; without it set model.constrain = \"off\""),
	}
}

// notAsked are the checks where no server was asked, and why.
func notAsked(server, model check, why string) []check {
	all := []check{server, model}
	for _, name := range []string{"window", "template", "cache", "schema"} {
		all = append(all, check{Name: name, OK: true, Unknown: true, Found: why, Repair: startServer})
	}
	return all
}

// speedTokens is the prompt of the probe: as much as a short session has.
const speedTokens = 1000

// slowest is how many tokens a second are bearable: below, a step of a session that
// has 4,000 tokens to read and 200 to write takes minutes.
const (
	slowRead  = 50.0
	slowWrite = 3.0
)

// speedProbe measures how fast the model reads and writes.
func (d *diagnosis) speedProbe(ctx context.Context) check {
	c := check{Name: "speed", Repair: "a smaller model, or one with fewer bits: tether models list"}
	began := time.Now()
	b := speedBench{benchFlags: &benchFlags{sizes: []int{speedTokens}, runs: 1, limit: speedLimit}, p: d.p, view: &live{}, quiet: true}
	if err := b.model(ctx, d.conf); err != nil || len(b.rows) == 0 {
		c.Found = "not measured"
		if err != nil {
			c.Found += ": " + firstLine(err.Error())
		}
		return c
	}
	r := b.rows[0]
	c.OK = r.Prefill >= slowRead && r.Decode >= slowWrite
	c.Found = fmt.Sprintf("reads %.0f tokens a second, writes %.1f (%.1f s)", r.Prefill, r.Decode, time.Since(began).Seconds())
	return c
}
