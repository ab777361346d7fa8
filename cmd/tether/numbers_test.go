package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	window "tether/context"
	"tether/harness/llm"
)

// limits of what is promised in bytes (DESIGN 4 and 8).
const (
	maxBinary  = 16 << 20
	maxFraming = 600
	maxCommand = 48 // a command in the list
)

// build makes the binary as it is shipped.
func build(tb testing.TB) string {
	tb.Helper()
	bin := filepath.Join(tb.TempDir(), "tether")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -funcalign=16", "-tags", "nethttpomithttp2", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// TestBinary: small, static, without cgo.
func TestBinary(t *testing.T) {
	bin := build(t)
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes, want at most %d", info.Size(), maxBinary)
	}
	out, err := exec.Command("go", "version", "-m", bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "CGO_ENABLED=0") {
		t.Errorf("built with cgo:\n%s", out)
	}
	if n := strings.Count(string(out), "\tdep\t"); n > 45 {
		t.Errorf("%d linked modules, want at most 45", n)
	}
}

// TestFramingBytes: what every session pays before its task, as it goes over
// the wire: system prompt and the tool's schema.
func TestFramingBytes(t *testing.T) {
	script := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(script, []byte(`{"cmd":"done"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := llm.Open(context.Background(), llm.Config{Model: "script:" + script})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(msgs ...window.Message) int {
		body, err := m.Body(window.Request{Messages: msgs})
		if err != nil {
			t.Fatal(err)
		}
		return len(body)
	}
	w := newWorkplace(t)
	list := w.Shell.List()
	for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
		if len(line) > maxCommand {
			t.Errorf("%q has %d bytes, want at most %d", line, len(line), maxCommand)
		}
	}
	system := window.System(window.Framing{Commands: list, Skills: w.Skills.Line()})
	// The protocol's own members (model, messages, sampling) are not framing.
	const members = `{"model":"script","messages":[{"role":"system","content":""}],"max_tokens":2048,"temperature":0,"seed":0,"stream":true,"stream_options":{"include_usage":true}}`
	got := ask(window.Message{Role: window.RoleSystem, Text: system}) - len(members) - len(list)
	if got > maxFraming {
		t.Errorf("framing has %d bytes beside the list, want at most %d", got, maxFraming)
	}
	t.Logf("framing %d bytes, list %d bytes", got, len(list))
}

func newWorkplace(tb testing.TB) *workplace {
	tb.Helper()
	dir := tb.TempDir()
	p := &program{Out: io.Discard, Err: io.Discard, In: strings.NewReader(""), Getenv: func(name string) string {
		if name == "HOME" || name == "TETHER_STATE" {
			return filepath.Join(dir, "home")
		}
		return ""
	}}
	ws := filepath.Join(dir, "ws")
	if err := os.MkdirAll(ws, 0o755); err != nil {
		tb.Fatal(err)
	}
	w, err := open(context.Background(), p, Default(), ws, "test")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.Close() })
	return w
}

// BenchmarkFirstRequest reports the time from exec to the arrival of the first
// request at a server, and the memory of the process at its largest.
func BenchmarkFirstRequest(b *testing.B) {
	bin := build(b)
	arrived := make(chan time.Time, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/props"):
			fmt.Fprint(w, `{"default_generation_settings":{"n_ctx":8192},"total_slots":1,"model_path":"fake.gguf","chat_template":"tool_calls"}`)
		case strings.HasSuffix(r.URL.Path, "/chat/completions"):
			arrived <- time.Now()
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"1\",\"function\":{\"name\":\"act\",\"arguments\":\"{\\\"cmd\\\":\\\"done\\\"}\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	dir := b.TempDir()
	var total time.Duration
	var rss int64
	for b.Loop() {
		cmd := exec.Command(bin, "run", "x", "--model", "llama/fake@"+srv.URL, "--dir", dir)
		cmd.Env = append(os.Environ(), "TETHER_STATE="+b.TempDir())
		var out bytes.Buffer
		cmd.Stderr = &out
		start := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatalf("%v\n%s", err, out.String())
		}
		total += (<-arrived).Sub(start)
		rss = max(rss, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/first-request")
	b.ReportMetric(float64(rss)/1024, "MB-rss")
}

// BenchmarkStep reports tether's own share of a step that runs a program in
// the sandbox: intent, bwrap, observation, the window. The program is true.
func BenchmarkStep(b *testing.B) {
	w := newWorkplace(b)
	for b.Loop() {
		if res := w.Shell.Do(context.Background(), "true", ""); res.Status != 0 || res.Err != nil {
			b.Fatalf("%+v", res)
		}
	}
}
