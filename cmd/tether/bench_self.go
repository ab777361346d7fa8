package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tether/act"
	"tether/harness/llm"
)

// A selfRow is one number of tether itself, and what is promised of it; 0 is
// nothing.
type selfRow struct {
	V     int     `json:"v"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Bound float64 `json:"bound"`
}

// selfSteps is how many steps a run has that is measured: the middle one of ten is
// steady, and a run of them takes a second.
const selfSteps = 10

// runSelf measures what tether costs, with a model that answers at once. With a
// real one beside it, its tokenizer counts the framing.
func (f *benchFlags) runSelf(ctx context.Context, p *program, _ []string) error {
	configs, err := f.configs(p)
	if err != nil {
		return err
	}
	if len(f.models) == 0 {
		configs[0].Model.Name = ""
	}
	var starts, gaps []float64
	var memory float64
	var first []byte
	for range f.runs {
		s := &standIn{}
		if err := s.run(ctx); err != nil {
			return err
		}
		starts, gaps, memory, first = append(starts, s.start), append(gaps, median(s.gaps)), max(memory, s.memory), s.first
	}
	frame, err := framingOf(first, configs[0])
	if err != nil {
		return err
	}
	rows := []selfRow{
		{1, "framing, without the list of commands", float64(frame.bytes), "bytes", 600},
		{1, "list of commands", float64(len(frame.list)), "bytes", 0},
		{1, "start to the first request", median(starts), "ms", 50},
		{1, "step, from a reply to the next request", median(gaps), "ms", 34},
		{1, "memory, largest", memory, "MB", 30},
	}
	if info, err := os.Stat("/proc/self/exe"); err == nil {
		rows = append(rows, selfRow{1, "binary", float64(info.Size()) / (1 << 20), "MiB", 16})
	}
	counted, err := f.framingTokens(ctx, p, configs, frame)
	if err != nil {
		return err
	}
	rows = append(rows, counted...)
	for _, r := range rows {
		if f.json {
			if err := p.json(r); err != nil {
				return err
			}
		}
	}
	return f.publish(p, selfTable(rows), selfPlot(rows))
}

// framingTokens counts the framing with the tokenizer of each model that was
// named.
func (f *benchFlags) framingTokens(ctx context.Context, p *program, configs []Config, frame framing) ([]selfRow, error) {
	var rows []selfRow
	for _, c := range configs {
		if c.Model.Name == "" {
			continue
		}
		model, err := openModel(ctx, p, c, nil)
		if err != nil {
			return nil, err
		}
		all, err := model.Tokens(ctx, frame.system+frame.tools)
		list, err2 := model.Tokens(ctx, frame.list)
		if err = errors.Join(err, err2, model.Close()); errors.Is(err, llm.ErrNoTokenizer) {
			return nil, usagef("%s has no tokenizer to ask\nname a model of a llama-server, or gguf:PATH", shortModel(c.Model.Name))
		}
		if err != nil {
			return nil, err
		}
		name := shortModel(c.Model.Name)
		rows = append(rows, selfRow{1, "framing, tokens of " + name, float64(all - list), "tokens", 150}, selfRow{1, "list of commands, tokens of " + name, float64(list), "tokens", 0})
	}
	return rows, nil
}

// A framing is what a request has before the task.
type framing struct {
	system, tools, list string
	bytes               int // as they go over the wire, without the list
}

// framingOf takes the framing out of the body of a request.
func framingOf(body []byte, c Config) (framing, error) {
	var req struct {
		Messages []struct{ Content string }
		Tools    json.RawMessage
	}
	if err := json.Unmarshal(body, &req); err != nil || len(req.Messages) == 0 {
		return framing{}, fmt.Errorf("the first request is none: %q", body)
	}
	granted, err := c.granted()
	if err != nil {
		return framing{}, usageError{err.Error()}
	}
	fr := framing{system: req.Messages[0].Content, tools: string(req.Tools), list: strings.TrimRight(act.NewShell(act.Env{}, granted).List(), "\n")}
	rest, err := json.Marshal(strings.Replace(fr.system, fr.list, "", 1))
	fr.bytes = len(rest) - len(`""`) + len(fr.tools)
	return fr, err
}

// A standIn is a server that answers at once in the place of a model: with calls
// of a program that does nothing, and then done.
type standIn struct {
	mu      sync.Mutex
	n       int       // requests so far
	replied time.Time // the newest reply was on its way
	began   time.Time
	first   []byte // the body of the first request
	start   float64
	gaps    []float64 // milliseconds
	memory  float64   // MB
}

// run runs tether against the stand-in.
func (s *standIn) run(ctx context.Context) error {
	srv := httptest.NewServer(s)
	defer srv.Close()
	dir, err := os.MkdirTemp("", "tether-self-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ws := filepath.Join(dir, "workspace")
	if err := os.Mkdir(ws, 0o755); err != nil {
		return err
	}
	bin, err := exec.LookPath(os.Args[0])
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bin, "run", "--quiet", "x", "--model", "llama/stand-in@"+srv.URL, "--dir", ws)
	cmd.Env = append(os.Environ(), "TETHER_STATE="+filepath.Join(dir, "state"))
	var said bytes.Buffer
	cmd.Stderr = &said
	s.mu.Lock()
	s.began = time.Now()
	s.mu.Unlock()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the run that is measured failed (%w): %s", err, strings.TrimSpace(said.String()))
	}
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.memory = float64(use.Maxrss) / 1024 // KiB, on Linux
	}
	if len(s.gaps) < selfSteps {
		return fmt.Errorf("the run that is measured made %d steps, and %d were expected", len(s.gaps), selfSteps)
	}
	return nil
}

// ServeHTTP answers what a client of llama-server asks.
func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/props"):
		fmt.Fprint(w, `{"default_generation_settings":{"n_ctx":8192},"total_slots":1,"model_path":"stand-in.gguf","chat_template":"tool_calls"}`)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.answer(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *standIn) answer(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxTaskLine))
	if err != nil {
		return // the run fails, and says so
	}
	if s.n++; s.n == 1 {
		s.first, s.start = body, ms(arrived.Sub(s.began))
	} else {
		s.gaps = append(s.gaps, ms(arrived.Sub(s.replied)))
	}
	call := fmt.Sprintf(`{"cmd":"true %d"}`, s.n) // another one each time: the same would not be run again
	if s.n > selfSteps {
		call = `{"cmd":"done"}`
	}
	arguments, err := json.Marshal(call)
	if err != nil {
		return
	}
	fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"%d","function":{"name":"act","arguments":%s}}]}}]}`+"\n\n", s.n, arguments)
	fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
	s.replied = time.Now()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func selfTable(rows []selfRow) string {
	var t strings.Builder
	t.WriteString("| what | measured | bound |\n| --- | ---: | ---: |\n")
	for _, r := range rows {
		bound := ""
		if r.Bound > 0 {
			bound = fmt.Sprintf("%g %s", r.Bound, r.Unit)
		}
		fmt.Fprintf(&t, "| %s | %s | %s |\n", r.Name, r.measured(), bound)
	}
	return t.String()
}

// measured is the value with its unit; of what is counted in ones there are no
// halves.
func (r selfRow) measured() string {
	if slices.Contains([]string{"bytes", "tokens"}, r.Unit) {
		return fmt.Sprintf("%.0f %s", r.Value, r.Unit)
	}
	return fmt.Sprintf("%.1f %s", r.Value, r.Unit)
}

// selfPlot shows how much of each bound is used.
func selfPlot(rows []selfRow) plot {
	p := plot{Title: "Tether itself", Note: "bars: share of what is promised", Max: 1}
	for _, r := range rows {
		if r.Bound > 0 {
			p.Bars = append(p.Bars, plotBar{Label: r.Name, Value: r.Value / r.Bound, Text: fmt.Sprintf("%s of %g", r.measured(), r.Bound)})
		}
	}
	return p
}
