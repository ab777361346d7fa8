package harness

import (
	"slices"
	"strings"
	"time"

	"tether/act"
	window "tether/context"
)

// A Cost is what a session took, as its log tells it; the sum of several is one
// too. Tokens are as the servers reported them.
type Cost struct {
	Requests    int     `json:"requests"`    // those for summaries, repeated and refused ones too
	Steps       int     `json:"steps"`       // replies that counted as one
	Prompt      int     `json:"prompt"`      // tokens of all requests
	Cached      int     `json:"cached"`      // of them those that the server still held
	CacheTold   bool    `json:"cache_told"`  // a server said so; if none did, Cached, New and Hit mean nothing
	New         int     `json:"new"`         // and those that it had to read
	Output      int     `json:"output"`      // tokens that were written
	Hit         float64 `json:"hit"`         // Cached ÷ Prompt, of the sessions whose server told; 0 where none did
	Seconds     float64 `json:"seconds"`     // of all runs, by the clock
	ModelMS     int64   `json:"model_ms"`    // of them waiting for replies
	CommandMS   int64   `json:"command_ms"`  // and for commands
	FirstToken  Latency `json:"first_token"` // of the requests that were answered
	Folds       int     `json:"folds"`       // how often the past was folded: each costs the cache behind it
	Summaries   int     `json:"summaries"`   // how often a summary took the place of older turns
	Facts       int     `json:"facts"`       // tokens of AGENTS.md in the task
	Unread      int     `json:"unread"`      // replies that held no call
	Tools       []Tool  `json:"tools"`       // what was offered and what was used, in the order of help
	firstTokens []int64 // milliseconds, each
	told        int     // Prompt of the sessions whose server told
}

// A Latency is how long requests waited for their first token, in milliseconds.
type Latency struct {
	Median int64 `json:"median_ms"`
	P95    int64 `json:"p95_ms"` // 95 of 100 waited no longer
}

// A Tool is a command, and what became of it. A line that is no granted command's
// is one of sh, as the shell takes it; one that was refused is under its own word,
// and was offered to nobody.
type Tool struct {
	Name    string `json:"name"`
	Offered int    `json:"offered"` // sessions in which it was granted
	Used    int    `json:"used"`    // sessions in which it was called
	Calls   int    `json:"calls"`
	Failed  int    `json:"failed"` // calls with another status than 0
}

// Cost sums up the session.
func (h *History) Cost() Cost {
	c := Cost{
		Requests: len(h.Sent), Steps: h.steps, Prompt: h.Tokens.Prompt, Cached: h.Tokens.Cached, Output: h.Tokens.Output,
		Seconds: seconds(h.spent()), Folds: h.folds(), Facts: h.Setup.Facts,
	}
	if c.CacheTold = h.Tokens.CacheTold; c.CacheTold {
		c.told = c.Prompt
	}
	if o := h.Outcome; o != nil {
		c.Steps, c.Seconds = max(c.Steps, o.Steps), o.Seconds
	}
	for _, o := range h.Compacted {
		if o.To > 0 {
			c.Summaries++
		}
	}
	for i, r := range h.Received {
		c.ModelMS += r.MS
		if len(r.Calls) == 0 && r.Text+r.Miss+r.Nudge != "" && h.Sent[i].Summary == nil {
			c.Unread++
		}
		if r.FirstTokenMS > 0 {
			c.firstTokens = append(c.firstTokens, r.FirstTokenMS)
		}
	}
	c.tools(h)
	return c.complete()
}

// folds is how often the past was folded.
func (h *History) folds() int {
	n, was := 0, window.Folds{}
	for _, s := range h.Sent {
		if s.Folds != was {
			n++
		}
		was = s.Folds
	}
	return n
}

// tools counts the calls of h.
func (c *Cost) tools(h *History) {
	for _, name := range h.Setup.Commands {
		c.tool(name).Offered = 1
	}
	for i, t := range h.Turns {
		d := h.Steps[i]
		c.CommandMS += d.MS
		if t.User != "" || d.How == howMissed || d.How == howRepeated {
			continue // nothing was run
		}
		tool := c.tool(toolOf(t, h.Setup.Commands))
		tool.Used, tool.Calls = 1, tool.Calls+1
		if t.Status != act.OK {
			tool.Failed++
		}
	}
}

// toolOf is the command that a call was run by. One that the agent was refused is
// under its own name.
func toolOf(t window.Turn, granted []string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(t.Call.Cmd), " ")
	refused := t.Status == act.NotFound && slices.ContainsFunc(act.Builtins(), func(c *act.Command) bool { return c.Name == word })
	if !slices.Contains(granted, word) && !refused && slices.Contains(granted, "sh") {
		return "sh"
	}
	return word
}

// tool is the entry of that name.
func (c *Cost) tool(name string) *Tool {
	i := slices.IndexFunc(c.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		i, c.Tools = len(c.Tools), append(c.Tools, Tool{Name: name})
	}
	return &c.Tools[i]
}

// Plus is the cost of c and d together.
func (c Cost) Plus(d Cost) Cost {
	for to, from := range map[*int]int{
		&c.Requests: d.Requests, &c.Steps: d.Steps, &c.Prompt: d.Prompt, &c.Cached: d.Cached, &c.Output: d.Output,
		&c.Folds: d.Folds, &c.Summaries: d.Summaries, &c.Facts: d.Facts, &c.Unread: d.Unread, &c.told: d.told,
	} {
		*to += from
	}
	c.CacheTold = c.CacheTold || d.CacheTold
	c.Seconds, c.ModelMS, c.CommandMS = seconds(time.Duration((c.Seconds+d.Seconds)*float64(time.Second))), c.ModelMS+d.ModelMS, c.CommandMS+d.CommandMS
	c.firstTokens = append(slices.Clip(c.firstTokens), d.firstTokens...)
	c.Tools = slices.Clone(c.Tools)
	for _, t := range d.Tools {
		sum := c.tool(t.Name)
		sum.Offered, sum.Used, sum.Calls, sum.Failed = sum.Offered+t.Offered, sum.Used+t.Used, sum.Calls+t.Calls, sum.Failed+t.Failed
	}
	return c.complete()
}

// complete works out what follows from the rest.
func (c Cost) complete() Cost {
	if c.Tools == nil {
		c.Tools = []Tool{}
	}
	c.New, c.Hit = c.Prompt-c.Cached, 0
	if c.told > 0 {
		c.Hit = float64(c.Cached*1000/c.told) / 1000
	}
	all := slices.Sorted(slices.Values(c.firstTokens))
	c.FirstToken = Latency{rank(all, 50), rank(all, 95)}
	return c
}

// rank is the least of sorted that percent of 100 do not exceed; 0 of none.
func rank(sorted []int64, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}
