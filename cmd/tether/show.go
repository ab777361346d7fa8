package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	window "tether/context"
	"tether/harness"
	"tether/harness/llm"
)

var showCommand = &subcommand{
	Name:    "show",
	Args:    "[SESSION]",
	Summary: "show what happened in a session",
	Detail: `Prints a session step by step; without SESSION the newest one here. A SESSION may
be shortened as long as it is the only one to begin so.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var f showFlags
		fs.StringVarP(&f.dir, "dir", "C", ".", "the workspace")
		fs.IntVar(&f.window, "window", 0, "print request N byte for byte")
		fs.BoolVar(&f.text, "text", false, "with --window: print the messages to be read")
		fs.BoolVar(&f.json, "json", false, "print one JSON object")
		f.set = fs.Changed
		return f.run
	},
}

type showFlags struct {
	dir        string
	window     int
	text, json bool
	set        func(flag string) bool
}

func (f *showFlags) run(ctx context.Context, p *program, args []string) error {
	if len(args) > 1 {
		return usagef("show takes one session")
	}
	store, err := openStore(ctx, p, f.dir)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Session(ctx, strings.Join(args, ""))
	if err != nil {
		return err
	}
	events, err := store.Events(ctx, s.ID)
	if err != nil {
		return err
	}
	h := harness.Replay(events)
	for _, bad := range h.Bad {
		fmt.Fprintf(p.Err, "tether: event %d (%s) cannot be read: %v\n", bad.Seq, bad.Kind, bad.Err)
	}
	switch {
	case f.set("window"):
		return showWindow(p, h, f.window, f.text)
	case f.json:
		return showJSON(p, s.ID, s.Task, h)
	}
	var text strings.Builder
	showSteps(&text, s.ID, s.Task, h)
	_, err = fmt.Fprint(p.Out, printable(text.String()))
	return err
}

// showWindow prints a request as it was sent, computed again from the log. It
// says so if the bytes are not the ones that were sent.
func showWindow(p *program, h harness.History, n int, text bool) error {
	req, err := h.Window(n)
	if err != nil {
		return usageError{err.Error()}
	}
	if text {
		_, err = fmt.Fprint(p.Out, printable(messages(req.Messages)))
		return err
	}
	var got harness.Received
	if n <= len(h.Received) {
		got = h.Received[n-1]
	}
	if got.Sent == "" && got.Overflow == 0 {
		fmt.Fprintln(p.Err, "tether: no reply came to this request, so it is not known for certain that these bytes were sent")
	}
	if got.Sent == "" {
		got.Shape = lastForm(&h, n)
	}
	body, err := llm.Encode(h.Sent[n-1].Wire, got.Shape, req)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(body); got.Sent != "" && hex.EncodeToString(sum[:]) != got.Sent {
		fmt.Fprintln(p.Err, "tether: this is not byte for byte what was sent: the session was run by another version")
	}
	if isTerminal(p.Out) {
		body = append(body, '\n') // nobody counts these, and a prompt follows
	}
	_, err = p.Out.Write(body)
	return err
}

// lastForm is the form of the newest request up to n that got a reply, or else
// of the newest of all.
func lastForm(h *harness.History, n int) string {
	before := harness.History{Sent: h.Sent, Received: h.Received[:min(n, len(h.Received))]}
	form, _, _ := strings.Cut(cmp.Or(before.Shape(), h.Shape()), " ")
	return form
}

// messages lays a request out for a reader.
func messages(msgs []window.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "=== %s %s\n", m.Role, m.ID)
		if m.Call != nil {
			fmt.Fprintf(&b, "$ %s\n%s", m.Call.Cmd, m.Call.Stdin)
			if m.Call.Stdin != "" && !strings.HasSuffix(m.Call.Stdin, "\n") {
				b.WriteByte('\n')
			}
		}
		if m.Text != "" {
			b.WriteString(m.Text + "\n")
		}
	}
	return b.String()
}

type shownStep struct {
	N         int    `json:"n"`
	Cmd       string `json:"cmd"`
	Stdin     string `json:"stdin"`
	Said      string `json:"said,omitempty"`
	User      string `json:"user,omitempty"` // a person's words in the middle of the task
	Status    int    `json:"status"`
	Output    string `json:"output"`
	Obs       string `json:"obs"`
	Recovered string `json:"recovered,omitempty"`
}

type shownRequest struct {
	N            int   `json:"n"`
	Prompt       int   `json:"prompt"`
	Cached       int   `json:"cached"`
	CacheTold    bool  `json:"cache_told"` // the server said what Cached is
	Output       int   `json:"output"`
	FirstTokenMS int64 `json:"first_token_ms"`
	MS           int64 `json:"ms"`
	Folded       int   `json:"folded"`
	Summary      bool  `json:"summary,omitempty"` // it asked for a summary and not for a call
}

// A shownSummary is one that stands for older steps.
type shownSummary struct {
	From    string `json:"from"`    // the ids of the first
	To      string `json:"to"`      // and the last observation that it stands for
	Request int    `json:"request"` // that it was asked for with
	Text    string `json:"text"`
}

// summariesOf are the summaries of a session, of those that can be read.
func summariesOf(h harness.History) []shownSummary {
	all := []shownSummary{}
	for _, c := range h.Compacted {
		if c.To > 0 {
			all = append(all, shownSummary{c.First, c.Last, c.N, c.Text})
		}
	}
	return all
}

// showSummaries prints the summaries that were made when the session had so many
// turns.
func showSummaries(w io.Writer, h harness.History, turns int) {
	for _, c := range h.Compacted {
		if c.Turns == turns && c.To > 0 {
			fmt.Fprintf(w, "\nsummarised %s to %s (request %d):\n%s\n", c.First, c.Last, c.N, indent(c.Text, "    "))
		}
	}
}

func showJSON(p *program, id, task string, h harness.History) error {
	out := harness.Outcome{V: 1, Session: id, Task: task, Model: h.Setup.Model, Sandbox: h.Setup.Sandbox, Network: h.Setup.Network, Gates: []harness.GateResult{}, Changed: []string{}, Planted: []string{}}
	if h.Outcome != nil {
		out = *h.Outcome
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return err
	}
	all := map[string]any{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	steps, requests := []shownStep{}, []shownRequest{}
	for i, t := range h.Turns {
		steps = append(steps, shownStep{N: h.Steps[i].Step, Cmd: t.Call.Cmd, Stdin: t.Call.Stdin, Said: t.Said, User: t.User, Status: t.Status, Output: t.Output, Obs: t.ID, Recovered: recovered(h, i)})
	}
	for i, r := range h.Received {
		requests = append(requests, shownRequest{r.N, r.Prompt, r.Cached, r.CacheTold, r.Output, r.FirstTokenMS, r.MS, h.Sent[i].Folds.Folded, h.Sent[i].Summary != nil})
	}
	// The outcome counts replies under "steps"; here the replies themselves
	// stand under that name, as DESIGN 8 has it.
	all["steps"], all["requests"] = steps, requests
	if list := summariesOf(h); len(list) > 0 {
		all["summaries"] = list
	}
	if h.Unknown != nil {
		all["unknown"] = h.Unknown
	}
	if h.Asked != nil {
		all["asked"] = h.Asked
	}
	return p.json(all)
}

// recovered is the dialect in which turn i's call was found: that of the newest
// reply before it. A reply may hold several calls, and one that was asked for
// again does not count.
func recovered(h harness.History, i int) string {
	dialect := ""
	for j, s := range h.Sent {
		if s.Turns <= i && j < len(h.Received) {
			dialect = h.Received[j].Recovered
		}
	}
	return dialect
}

func showSteps(w io.Writer, id, task string, h harness.History) {
	fmt.Fprintf(w, "session %s\n", id)
	if h.Setup.Model != "" {
		fmt.Fprintf(w, "model   %s, sandbox %s\n", h.Setup.Model, confines(h.Setup.Sandbox, h.Setup.Network))
	}
	fmt.Fprintf(w, "task    %s\n", task)
	b := h.Setup.Budget
	for i, t := range h.Turns {
		showSummaries(w, h, i)
		said := "$ " + t.Call.Cmd
		if t.Call.Cmd == "" {
			said = "said: " + oneLine(t.Said, 200)
		}
		if t.User != "" {
			fmt.Fprintf(w, "\nsaid by the user: %s\n", t.User)
			continue
		}
		fmt.Fprintf(w, "\n%d %s\n", h.Steps[i].Step, said)
		if t.Call.Stdin != "" {
			fmt.Fprintf(w, "%s\n", indent(t.Call.Stdin, "  < "))
		}
		fmt.Fprintf(w, "%s\n", indent(b.Observe(t), "    "))
	}
	showSummaries(w, h, len(h.Turns))
	fmt.Fprintln(w)
	for _, a := range h.Asked {
		if a.Times == 0 { // else it is the count of one that stands here already
			fmt.Fprintln(w, "network", a)
		}
	}
	if h.Unknown != nil {
		fmt.Fprintf(w, "%s was begun and has no result: `%s` may or may not have had its effect\n", h.Unknown.Obs, h.Unknown.Cmd)
	}
	if h.Outcome == nil {
		fmt.Fprintln(w, "the session has no end: it is running, or tether was killed")
		return
	}
	fmt.Fprintln(w, lastLine(*h.Outcome))
	if h.Outcome.Error != "" {
		fmt.Fprintln(w, "tether:", h.Outcome.Error)
	}
}

// indent puts prefix before every line of text.
func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix)
}
