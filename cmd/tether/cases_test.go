package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// handed are the reported cases that were handed over, by their kind: malformed
// calls, text and thoughts, loops, processes, edits. They have odd numbers up to
// this one.
var handed = map[string]int{"a": 39, "b": 13, "d": 19, "e": 29, "f": 17}

// caseFiles are where they lie. A test beside each of them runs all that it holds,
// or names those that it runs.
var caseFiles = []string{
	"harness/llm/testdata/read.jsonl", "harness/llm/testdata/wire.jsonl", "harness/testdata/cases.jsonl", "act/testdata/cases.jsonl",
}

// TestNoCaseIsMissing: every handed case of those kinds is a test.
func TestNoCaseIsMissing(t *testing.T) {
	have := map[string]string{}
	for _, name := range caseFiles {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var c struct{ ID string }
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if where, twice := have[c.ID]; twice {
				t.Errorf("%s is in %s and in %s", c.ID, where, name)
			}
			have[c.ID] = name
		}
	}
	n := 0
	for kind, last := range handed {
		for i := 1; i <= last; i += 2 {
			n++
			if id := fmt.Sprintf("%s%02d", kind, i); have[id] == "" {
				t.Errorf("%s is nowhere", id)
			}
		}
	}
	if n != 61 {
		t.Errorf("%d cases, want 61", n)
	}
}
