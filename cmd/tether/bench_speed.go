package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	window "tether/context"
	"tether/harness/llm"
)

// A speedRow is one size of prompt, read three times: as a new one, again, and
// with another end.
type speedRow struct {
	V       int     `json:"v"`
	Model   string  `json:"model"`
	Size    int     `json:"size"`   // tokens that were wanted
	Prompt  int     `json:"prompt"` // that the server counted
	Prefill float64 `json:"prefill_per_second"`
	Decode  float64 `json:"decode_per_second"`
	First   int64   `json:"first_token_ms"`
	// Of the same prompt again, and of one with a changed tail.
	Again, Tail speedCache
}

// A speedCache is what the server still held of a prompt.
type speedCache struct {
	Cached int   `json:"cached"`
	First  int64 `json:"first_token_ms"`
}

// speedReply is how long a reply may be in tokens: long enough for a rate, and
// short beside a prompt.
const speedReply = 48

// maxSpeedSize is the largest prompt in tokens: above it nobody waits for an answer
// of a model on a processor.
const maxSpeedSize = 1 << 17

// runSpeed measures the servers of all models.
func (f *benchFlags) runSpeed(ctx context.Context, p *program, _ []string) error {
	if i := slices.IndexFunc(f.sizes, func(n int) bool { return n < 64 || n > maxSpeedSize }); i >= 0 || len(f.sizes) == 0 {
		return usagef("--sizes is %v; give sizes from 64 to %d tokens", f.sizes, maxSpeedSize)
	}
	configs, err := f.configs(p)
	if err != nil {
		return err
	}
	var rows []speedRow
	for _, c := range configs {
		more, err := f.speedOf(ctx, p, c)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	return f.publish(p, speedTable(rows), speedPlot(rows))
}

// speedOf measures one server. Decoding is not bound, and the replies are cut:
// what they say does not matter.
func (f *benchFlags) speedOf(ctx context.Context, p *program, c Config) ([]speedRow, error) {
	conf := modelConfig(p, c, nil)
	conf.Constrain, conf.MaxTokens, conf.Window = "off", speedReply, max(conf.Window, slices.Max(f.sizes)+speedReply+256)
	model, err := llm.Open(ctx, conf)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	name := cmp.Or(c.Model.Name, model.Info().Name)
	if _, err := model.Reply(ctx, speedRequest(0, 64, "Hello."), nil); err != nil { // the first request loads what is loaded late
		return nil, err
	}
	var rows []speedRow
	for _, size := range f.sizes {
		if size+speedReply > model.Info().Window {
			return nil, usagef("a prompt of %d tokens does not fit into the window of %s, %d tokens\ngive smaller --sizes", size, shortModel(name), model.Info().Window)
		}
		row, err := f.speedAt(ctx, model, size)
		if err != nil {
			return nil, err
		}
		row.Model = name
		rows = append(rows, row)
		if f.json {
			if err := p.json(row); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// speedAt measures one size, runs times, and takes the middle of each number.
func (f *benchFlags) speedAt(ctx context.Context, model *llm.Model, size int) (speedRow, error) {
	row := speedRow{V: 1, Size: size}
	var prefill, decode []float64
	var first, again, tail []int64
	for run := range f.runs {
		nonce := size*1000 + run + 1
		var got [3]window.Usage
		for i, end := range []string{"Go on.", "Go on.", "Now stop, and say why the list is long."} {
			reply, err := model.Reply(ctx, speedRequest(nonce, size, end), nil)
			if err != nil {
				return row, err
			}
			got[i] = reply.Usage
		}
		u := got[0]
		if u.Prompt == 0 {
			return row, fmt.Errorf("the server of %s does not count tokens\nmeasure another one: ollama/NAME, llama/NAME@URL or gguf:PATH", model.Info().Name)
		}
		row.Prompt, row.Again.Cached, row.Tail.Cached = u.Prompt, got[1].Cached, got[2].Cached
		prefill = append(prefill, perSecond(u.Prompt-u.Cached, u.FirstToken))
		decode = append(decode, perSecond(u.Output-1, u.Total-u.FirstToken))
		first, again, tail = append(first, u.FirstToken.Milliseconds()), append(again, got[1].FirstToken.Milliseconds()), append(tail, got[2].FirstToken.Milliseconds())
	}
	row.Prefill, row.Decode, row.First, row.Again.First, row.Tail.First = median(prefill), median(decode), median(first), median(again), median(tail)
	return row, nil
}

// speedRequest is a request of about size tokens. nonce makes its beginning
// another one than that of all others, so that no server has read it before.
func speedRequest(nonce, size int, end string) window.Request {
	var b strings.Builder
	fmt.Fprintf(&b, "List %d.\n", nonce)
	words := []string{"river", "table", "seven", "green", "window", "paper", "north", "house"}
	for i := range size - 24 { // the frame of the two messages is about that long
		b.WriteString(words[(i*nonce+i/7)%len(words)] + " ") // each is one token for the common tokenizers
	}
	return window.Request{Messages: []window.Message{
		{Role: window.RoleSystem, Text: fmt.Sprintf("%d: you go on with lists of words.", nonce)},
		{Role: window.RoleUser, Text: b.String() + "\n" + end},
	}}
}

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// median is the middle one of values, of which there is at least one.
func median[T cmp.Ordered](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}

// keeps says in a word whether a server uses what it has read before: of the same
// prompt nearly all, of one with another end all before it.
func (r speedRow) keeps() string {
	switch {
	case 10*r.Again.Cached >= 9*r.Prompt && 10*r.Tail.Cached >= 8*r.Prompt:
		return "works"
	case r.Again.Cached > 0:
		return "in part"
	}
	return "no"
}

func speedTable(rows []speedRow) string {
	var t strings.Builder
	t.WriteString("| model | prompt tokens | prefill tokens/s | decode tokens/s | first token | the same again | with another end | prompt cache |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&t, "| %s | %d | %.0f | %.1f | %d ms | %d ms, %s cached | %d ms, %s cached | %s |\n", shortModel(r.Model), r.Prompt, r.Prefill, r.Decode, r.First,
			r.Again.First, percent(r.Again.Cached, r.Prompt), r.Tail.First, percent(r.Tail.Cached, r.Prompt), r.keeps())
	}
	return t.String()
}

func speedPlot(rows []speedRow) plot {
	p := plot{Title: "Prompt tokens read a second", Note: "in the text: tokens written a second"}
	for _, r := range rows {
		p.Bars = append(p.Bars, plotBar{Label: fmt.Sprintf("%s, %d tokens", shortModel(r.Model), r.Prompt), Value: r.Prefill, Text: fmt.Sprintf("%.0f; %.1f", r.Prefill, r.Decode)})
	}
	return p
}
