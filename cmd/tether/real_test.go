package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/harness"
	"tether/harness/llm"
)

// TestRealRun is the whole product once: a real small model behind a real
// llama.cpp server that tether starts, a real sandbox, a real gate. The task is
// one that this model solved in each of the runs of docs/results.md.
func TestRealRun(t *testing.T) {
	path := llm.ModelPath(llm.ModelsDir(), "qwen2.5-coder-1.5b")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v\nget it: tether models get qwen2.5-coder-1.5b", err)
	}
	dir := t.TempDir()
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(ws, "shopping.txt")
	if err := os.WriteFile(list, []byte("bread\nmilk\neggs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	p := &program{In: strings.NewReader(""), Out: &out, Err: &progress, Getenv: func(name string) string {
		if name == "TETHER_STATE" {
			return filepath.Join(dir, "state")
		}
		return os.Getenv(name)
	}}
	status := p.main(context.Background(), []string{
		"run", "Add the line 'tomatoes' at the end of shopping.txt. Keep the lines that are already there.",
		"--verify", `grep -qx tomatoes shopping.txt && grep -qx bread shopping.txt`,
		"--model", "gguf:" + path, "--dir", ws, "--json", "--max-steps", "12",
	})
	var o harness.Outcome
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		t.Fatalf("%v in %q\n%s", err, out.String(), progress.String())
	}
	if status != 0 || o.Stop != harness.Done || len(o.Gates) != 1 || o.Gates[0].Status != 0 {
		t.Errorf("exit %d, outcome %+v\n%s", status, o, progress.String())
	}
	if text, err := os.ReadFile(list); err != nil || string(text) != "bread\nmilk\neggs\ntomatoes\n" {
		t.Errorf("the list is %q, %v", text, err)
	}
	if o.Tokens.Prompt == 0 || o.Tokens.Output == 0 {
		t.Errorf("the server's counts are missing: %+v", o.Tokens)
	}
}
