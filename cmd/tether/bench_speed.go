package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
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
	// CacheTold: the server says what it still held.
	CacheTold bool `json:"cache_told"`
	// Of the same prompt again, and of one with a changed tail.
	Again speedCache `json:"again"`
	Tail  speedCache `json:"tail"`
}

// A speedCache is what the server still held of a prompt.
type speedCache struct {
	Cached int   `json:"cached"`
	First  int64 `json:"first_token_ms"`
}

// speedReply is how long a reply may be in tokens: long enough for a rate, and
// short beside a prompt.
const speedReply = 48

// speedLimit is how long one model may take: of 256, 1,024 and 4,096 tokens a 1.5B
// model on two cores needs three to four minutes.
const speedLimit = 5 * time.Minute

// maxSpeedSize is the largest prompt in tokens: above it nobody waits for an answer
// of a model on a processor.
const maxSpeedSize = 1 << 17

// A speedBench is one measurement: the rows are shown as they are made, since a
// large prompt takes a small machine a minute and more.
type speedBench struct {
	*benchFlags
	p     *program
	view  *live
	quiet bool // the rows are for the caller
	rows  []speedRow
}

// runSpeed measures the servers of all models.
func (f *benchFlags) runSpeed(ctx context.Context, p *program, _ []string) error {
	if i := slices.IndexFunc(f.sizes, func(n int) bool { return n < 64 || n > maxSpeedSize }); i >= 0 || len(f.sizes) == 0 {
		return usagef("--sizes is %v; give sizes from 64 to %d tokens", f.sizes, maxSpeedSize)
	}
	if f.limit <= 0 {
		return usagef("--timeout is %s; it must be more than 0", f.limit)
	}
	configs, err := f.configs(p)
	if err != nil {
		return err
	}
	slices.Sort(f.sizes) // what the small ones take says whether there is time for the large ones
	b := &speedBench{benchFlags: f, p: p, view: newLive(p.Err, p.Getenv)}
	for _, c := range configs {
		if err := b.model(ctx, c); err != nil {
			return err
		}
	}
	return f.keepTable(speedTable(b.rows), speedPlot(b.rows))
}

// model measures one server. Decoding is not bound, and the replies are cut:
// what they say does not matter. Sizes for which the time is too short are left out.
func (b *speedBench) model(ctx context.Context, c Config) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	end, _ := ctx.Deadline()
	conf := modelConfig(b.p, c, nil)
	conf.Constrain, conf.MaxTokens, conf.Window = "off", speedReply, max(conf.Window, b.sizes[len(b.sizes)-1]+speedReply+256)
	model, err := llm.Open(ctx, conf)
	if err != nil {
		return b.late(ctx, err)
	}
	defer model.Close()
	name := cmp.Or(c.Model.Name, model.Info().Name)
	if _, err := b.ask(ctx, model, speedRequest(0, 64, "Hello."), "loading"); err != nil { // the first request loads what is loaded late
		return b.late(ctx, err)
	}
	var last speedRow
	for i, size := range b.sizes {
		if size+speedReply > model.Info().Window {
			return usagef("a prompt of %d tokens does not fit into the window of %s, %d tokens\ngive smaller --sizes", size, shortModel(name), model.Info().Window)
		}
		row, need := speedRow{}, last.needs(size, b.runs)
		if err = nil; need < time.Until(end) {
			row, err = b.at(ctx, model, size)
		}
		switch late := ctx.Err() != nil && context.Cause(ctx) == context.DeadlineExceeded; {
		case i > 0 && (late || err == nil && row.V == 0):
			fmt.Fprintf(b.p.Err, "tether: %s: no time for %d tokens and more (%s; at its pace they take %s); raise it with --timeout\n",
				shortModel(name), size, b.limit, need.Round(time.Second))
			return nil
		case err != nil:
			return b.late(ctx, err)
		}
		row.Model, last = name, row
		if err := b.show(row); err != nil {
			return err
		}
	}
	return nil
}

// late is err, and where the time was up, what to do about it.
func (b *speedBench) late(ctx context.Context, err error) error {
	if context.Cause(ctx) == context.DeadlineExceeded {
		return usagef("not one size was measured in %s\ngive more time with --timeout, or smaller --sizes", b.limit)
	}
	return err
}

// needs is how long a prompt of size tokens will take, measured runs times, by the
// pace of r: read once, written three times, or read three times without a cache.
// A token of a longer prompt takes longer.
func (r speedRow) needs(size, runs int) time.Duration {
	if r.Prefill <= 0 || r.Decode <= 0 {
		return 0
	}
	reads := 1.2
	if r.keeps() == "no" || !r.told() {
		reads = 3.2
	}
	return time.Duration(float64(runs) * (reads*float64(size)/r.Prefill + 3*speedReply/r.Decode) * float64(time.Second))
}

// ask sends one request and says on a terminal what is waited for.
func (b *speedBench) ask(ctx context.Context, model *llm.Model, r window.Request, what string) (window.Usage, error) {
	b.view.wait(what)
	defer b.view.quiet()
	reply, err := model.Reply(ctx, r, nil)
	return reply.Usage, err
}

// show prints a row as soon as it is there.
func (b *speedBench) show(row speedRow) error {
	b.rows = append(b.rows, row)
	switch {
	case b.quiet:
		return nil
	case b.json:
		return b.p.json(row)
	}
	line := row.line()
	if len(b.rows) == 1 {
		line = speedHead + line
	}
	_, err := io.WriteString(b.p.Out, line)
	return err
}

// at measures one size, runs times, and takes the middle of each number.
func (b *speedBench) at(ctx context.Context, model *llm.Model, size int) (speedRow, error) {
	row := speedRow{V: 1, Size: size}
	var prefill, decode []float64
	var first, again, tail []int64
	for run := range b.runs {
		nonce := size*1000 + run + 1
		var got [3]window.Usage
		for i, end := range []string{"Go on.", "Go on.", "Now stop, and say why the list is long."} {
			var err error
			if got[i], err = b.ask(ctx, model, speedRequest(nonce, size, end), fmt.Sprintf("%d tokens, %d of 3", size, i+1)); err != nil {
				return row, err
			}
		}
		u := got[0]
		if u.Prompt == 0 {
			return row, fmt.Errorf("the server of %s does not count tokens\nmeasure another one: ollama/NAME, llama/NAME@URL or gguf:PATH", model.Info().Name)
		}
		row.Prompt, row.Again.Cached, row.Tail.Cached, row.CacheTold = u.Prompt, got[1].Cached, got[2].Cached, got[1].CacheTold
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

// told says whether the server says what it still holds. Rows of before there was
// that word have it where there is a count.
func (r speedRow) told() bool { return r.CacheTold || r.Again.Cached+r.Tail.Cached > 0 }

// keeps says in a word whether a server uses what it has read before: of the same
// prompt nearly all, of one with another end all before it. One that does not say so
// is known by its time: what is read again takes as long again.
func (r speedRow) keeps() string {
	switch {
	case !r.told() && 2*r.Again.First < r.First && 2*r.Tail.First < r.First:
		return "works, by the time"
	case !r.told():
		return "not told"
	case 10*r.Again.Cached >= 9*r.Prompt && 10*r.Tail.Cached >= 8*r.Prompt:
		return "works"
	case r.Again.Cached > 0:
		return "in part"
	}
	return "no"
}

const speedHead = "| model | prompt tokens | prefill tokens/s | decode tokens/s | first token | the same again | with another end | prompt cache |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"

func speedTable(rows []speedRow) string {
	t := speedHead
	for _, r := range rows {
		t += r.line()
	}
	return t
}

// line is the row of the table.
func (r speedRow) line() string {
	cell := func(c speedCache) string {
		if !r.told() {
			return fmt.Sprintf("%d ms", c.First)
		}
		return fmt.Sprintf("%d ms, %s cached", c.First, percent(c.Cached, r.Prompt))
	}
	return fmt.Sprintf("| %s | %d | %.0f | %.1f | %d ms | %s | %s | %s |\n", shortModel(r.Model), r.Prompt, r.Prefill, r.Decode, r.First, cell(r.Again), cell(r.Tail), r.keeps())
}

func speedPlot(rows []speedRow) plot {
	p := plot{Title: "Prompt tokens read a second", Note: "in the text: tokens written a second"}
	for _, r := range rows {
		p.Bars = append(p.Bars, plotBar{Label: fmt.Sprintf("%s, %d tokens", shortModel(r.Model), r.Prompt), Value: r.Prefill, Text: fmt.Sprintf("%.0f; %.1f", r.Prefill, r.Decode)})
	}
	return p
}
