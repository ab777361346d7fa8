package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	window "tether/context"
	"tether/harness"
	"tether/harness/llm"
)

// windowTurns is how many steps a run of this bench has.
const windowTurns = 40

// windowReply is how long a reply of the model may be, in tokens: what it says does
// not matter, the scripted call is what enters the history.
const windowReply = 2

// A windowRow is one run of the steps.
type windowRow struct {
	V      int     `json:"v"`
	Model  string  `json:"model"`
	Window int     `json:"window"`
	Mode   string  `json:"mode"`
	Low    float64 `json:"fold_to"`
	Folds  int     `json:"folds"`
	// Of all requests together, in tokens as the server counted them.
	Prompt int `json:"prompt"`
	Cached int `json:"cached"`
	// Append is what would have been read without a fold: the first request and the
	// newest step of each one behind it.
	Append   int             `json:"append_only"`
	Requests []windowRequest `json:"requests"`
}

// A windowRequest is one request of a run.
type windowRequest struct {
	N       int          `json:"n"`
	Prompt  int          `json:"prompt"`
	Cached  int          `json:"cached"`
	New     int          `json:"new"`
	FirstMS int64        `json:"first_token_ms"`
	Folds   window.Folds `json:"folds"`
}

// runWindow measures what each way of folding costs on a real server.
func (f *benchFlags) runWindow(ctx context.Context, p *program, _ []string) error {
	configs, err := f.configs(p)
	if err != nil {
		return err
	}
	sizes := []int{4096, 8192, 16384}
	if f.window > 0 {
		sizes = []int{f.window}
	}
	modes := []string{string(window.Batch), string(window.EveryTurn), string(window.Off)}
	if len(f.only) > 0 {
		modes = f.only
	}
	var rows []windowRow
	for _, c := range configs {
		for _, mode := range modes {
			for _, size := range sizes {
				row, err := f.windowRun(ctx, p, c, size, mode)
				if err != nil {
					return err
				}
				if rows = append(rows, row); f.json {
					if err := p.json(row); err != nil {
						return err
					}
				}
			}
		}
	}
	return f.publish(p, windowTable(rows), windowPlot(rows))
}

// windowRun makes one run, in a copy of the workspace and with a server that has
// nothing of it in its cache.
func (f *benchFlags) windowRun(ctx context.Context, p *program, c Config, size int, mode string) (windowRow, error) {
	c.Model.Window, c.Run.Steps, c.Run.Time, c.Run.Tokens, c.Window.Compact, c.Run.Facts = size, windowTurns+1, 0, 0, "off", false
	c.Window.Mode = mode
	if err := c.check(); err != nil {
		return windowRow{}, usageError{err.Error()}
	}
	dir, err := os.MkdirTemp("", "tether-window-")
	if err != nil {
		return windowRow{}, err
	}
	defer os.RemoveAll(dir)
	ws := filepath.Join(dir, "work")
	files, err := copyTree(f.dir, ws)
	if err != nil {
		return windowRow{}, err
	}
	w, err := f.windowPlace(ctx, p, c, dir, ws)
	if err != nil {
		return windowRow{}, err
	}
	defer w.Close()
	conf := modelConfig(p, c, w.Shell.Names())
	conf.MaxTokens = windowReply
	model, err := llm.Open(ctx, conf)
	if err != nil {
		return windowRow{}, err
	}
	defer model.Close()
	a := w.agent(model, nil)
	a.Model = &played{Model: model, calls: windowCalls(files)}
	if _, err := a.Do(ctx, "Learn how this project is built up: read its files, and keep notes in notes.txt."); err != nil {
		return windowRow{}, err
	}
	events, err := w.Store.Events(context.WithoutCancel(ctx), w.Session.ID) // also of a run that was interrupted
	if err != nil {
		return windowRow{}, err
	}
	row := windowRow{V: 1, Model: cmp.Or(c.Model.Name, model.Info().Name), Window: size, Mode: mode, Low: c.Window.Low}
	h := harness.Replay(events)
	return row, row.fill(&h)
}

// windowPlace is the workplace of a run. Its state lies beside the copy.
func (f *benchFlags) windowPlace(ctx context.Context, p *program, c Config, dir, ws string) (*workplace, error) {
	own := *p
	own.Getenv = func(name string) string {
		if name == "TETHER_STATE" {
			return filepath.Join(dir, "state")
		}
		return p.Getenv(name)
	}
	return open(ctx, &own, c, ws, "bench window")
}

// A played model is asked as always, and its answer is put aside: the next call of the
// script is what it is taken to have said.
type played struct {
	*llm.Model
	calls []window.Call
}

// Reply asks the model and returns the next call.
func (m *played) Reply(ctx context.Context, r window.Request, stream func(string)) (window.Reply, error) {
	rep, err := m.Model.Reply(ctx, r, stream)
	if err != nil {
		return rep, err
	}
	call := window.Call{Cmd: "done"}
	if len(m.calls) > 0 {
		call, m.calls = m.calls[0], m.calls[1:]
	}
	rep.Calls, rep.Cut, rep.Nudge, rep.Miss, rep.Recovered = []window.Call{call}, false, "", "", ""
	return rep, nil
}

// fill adds up what the log of a run has.
func (r *windowRow) fill(h *harness.History) error {
	var before window.Folds
	turns, whole, fresh := 0, 0, 0
	for i, got := range h.Received {
		if got.Prompt == 0 {
			return errors.New("the server does not count tokens\nmeasure another one: ollama/NAME, llama/NAME@URL or gguf:PATH")
		}
		req, err := h.Window(i + 1)
		if err != nil {
			return err
		}
		msgs, sent := req.Messages, h.Sent[i]
		whole += window.Size(msgs)
		if i > 0 { // a step is two messages: the call and its result
			msgs = msgs[max(2, len(msgs)-2*(sent.Turns-turns)):]
		}
		fresh += window.Size(msgs)
		if turns = sent.Turns; sent.Folds != before {
			r.Folds++
		}
		before = sent.Folds
		r.Prompt, r.Cached = r.Prompt+got.Prompt, r.Cached+got.Cached
		r.Requests = append(r.Requests, windowRequest{i + 1, got.Prompt, got.Cached, got.Prompt - got.Cached, got.FirstTokenMS, sent.Folds})
	}
	r.Append = fresh * r.Prompt / max(whole, 1)
	return nil
}

// Bounds of the copy: it is read by forty steps, and made for each run.
const (
	maxTreeFiles = 3000
	maxTreeFile  = 256 << 10
)

// copyTree copies the text files of a workspace, in the order of their names, and
// returns those that are worth reading. Hidden folders and links stay where they are.
func copyTree(from, to string) ([]string, error) {
	var files []string
	n := 0
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, path) // both begin with from
		switch {
		case err != nil:
			return err
		case e.IsDir() && rel != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !e.Type().IsRegular() || n >= maxTreeFiles:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) > maxTreeFile || !isText(string(text)) {
			return nil // what cannot be read is not part of the measurement
		}
		if n++; strings.Count(string(text), "\n") >= 40 && !strings.ContainsAny(rel, " '\"\\$`*?") {
			files = append(files, rel)
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
	switch {
	case err != nil:
		return nil, usagef("the workspace %s cannot be copied (%v); name another one with --dir", from, reason(err))
	case len(files) < windowTurns/4:
		return nil, usagef("the workspace %s has %d text files of 40 lines or more, and the steps read %d\nname a larger one with --dir", from, len(files), windowTurns/4)
	}
	return files, nil
}

// windowCalls are the steps: what a model does that gets to know a project, over and
// over, with another file each time. The same files give the same steps.
func windowCalls(files []string) []window.Call {
	var calls []window.Call
	for i := range windowTurns {
		file := files[i/4*len(files)/(windowTurns/4)]
		dir := filepath.Dir(file)
		calls = append(calls, []window.Call{
			{Cmd: "sh ls " + dir + " | head -10"},
			{Cmd: "read " + file + " 1:12"},
			{Cmd: "grep -n return " + file + " | head -5"},
			{Cmd: "append notes.txt", Stdin: fmt.Sprintf("%s is one of the files in %s.\nIts first lines say what it is for.\n", file, dir)},
			{Cmd: "read " + file + " 31:42"},
			{Cmd: "sh wc -l " + file},
			{Cmd: "sh tail -6 " + file},
			{Cmd: "append notes.txt", Stdin: fmt.Sprintf("Step %d: %s was read to its end.\n", i+1, file)},
		}[i%8])
	}
	return calls
}

// windowTable is the rows in Markdown.
func windowTable(rows []windowRow) string {
	var b strings.Builder
	b.WriteString("| model | window | folding | folds | prompt tokens | cached | of them | read anew | times append-only | ms to first token, p50, largest |\n")
	b.WriteString("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %d | %d | %.1f %% | %d | %.2f | %s |\n", shortModel(r.Model), r.Window, r.words(), r.Folds,
			r.Prompt, r.Cached, r.share(), r.Prompt-r.Cached, float64(r.Prompt-r.Cached)/float64(max(r.Append, 1)), r.waits())
	}
	return b.String()
}

// waits are the milliseconds to the first token of a reply: the middle one, and the
// largest. A row may have come without its requests.
func (r windowRow) waits() string {
	var first []int64
	for _, q := range r.Requests {
		first = append(first, q.FirstMS)
	}
	if len(first) == 0 {
		return "–"
	}
	return fmt.Sprintf("%d, %d", median(first), slices.Max(first))
}

// words says how r folds.
func (r windowRow) words() string {
	if r.Mode == string(window.Batch) {
		return fmt.Sprintf("batch, down to %.0f %%", 100*r.Low)
	}
	return r.Mode
}

// share is the part of the prompts that was cached, in percent.
func (r windowRow) share() float64 { return 100 * float64(r.Cached) / float64(max(r.Prompt, 1)) }

// windowPlot is the rows as a plot.
func windowPlot(rows []windowRow) plot {
	p := plot{Title: "Cached part of the prompts", Note: fmt.Sprintf("%d steps, percent of all prompt tokens", windowTurns), Max: 100}
	for _, r := range rows {
		p.Bars = append(p.Bars, plotBar{Label: fmt.Sprintf("%s, %d", r.words(), r.Window), Text: fmt.Sprintf("%.1f %%", r.share()), Value: r.share()})
	}
	return p
}
