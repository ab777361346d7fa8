package llm

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	window "tether/context"
)

// A tally counts how the corpus was read.
type tally struct{ executed, answered, wrong, missed, crashed int }

// TestCorpus reads every malformed call of testdata/corpus.jsonl and compares
// with its right value. What is run must be what was meant: a call that differs
// is a wrong execution, and there may be none.
func TestCorpus(t *testing.T) {
	var n tally
	cases := readCases(t, "corpus.jsonl")
	for _, c := range cases {
		got, crash := readSafely(c.raw())
		fault := c.fault(got)
		switch {
		case crash != nil:
			n.crashed++
			t.Errorf("%s: panic: %v", c.ID, crash)
		case len(got.Calls) > 0 && !reflect.DeepEqual(got.Calls, c.Want.Calls):
			n.wrong++
			t.Errorf("%s: wrong execution: %s", c.ID, fault)
		case fault != "":
			n.missed++
			t.Logf("%s: %s", c.ID, fault)
		case len(got.Calls) > 0:
			n.executed++
		default:
			n.answered++
		}
	}
	t.Logf("%d inputs: executed as meant %d, answered with usage %d, otherwise read %d, wrong executions %d, crashes %d",
		len(cases), n.executed, n.answered, n.missed, n.wrong, n.crashed)
	if len(cases) < 200 || (n.executed+n.answered)*100 < 98*len(cases) {
		t.Errorf("%d of %d are right, want 98 %% of 200 or more", n.executed+n.answered, len(cases))
	}
}

// readSafely is Read, and what it panicked with.
func readSafely(raw Raw) (got window.Reply, crash any) {
	defer func() { crash = recover() }()
	return Read(raw, granted), nil
}

// fault says in what got differs from the case's right value.
func (c readCase) fault(got window.Reply) string {
	nudged := ""
	if c.Want.Nudge != "" && c.Want.Nudge != "broken" {
		nudged = nudge(c.Want.Nudge, granted)
	}
	switch {
	case !reflect.DeepEqual(got.Calls, c.Want.Calls):
		return fmt.Sprintf("calls %q, want %q (nudge %q, %s)", got.Calls, c.Want.Calls, got.Nudge, got.Recovered)
	case nudged != "" && withoutExample(got.Nudge) != withoutExample(nudged), (got.Nudge == "") != (c.Want.Nudge == ""), !strings.Contains(got.Nudge, c.Want.Says):
		return fmt.Sprintf("nudge %q, want %q %q", got.Nudge, c.Want.Nudge, c.Want.Says)
	case c.Want.Text != "" && got.Text != c.Want.Text:
		return fmt.Sprintf("text %q, want %q", got.Text, c.Want.Text)
	case c.Want.Miss && got.Miss == "", got.Cut != c.Want.Cut:
		return fmt.Sprintf("miss %q cut %v", got.Miss, got.Cut)
	}
	return ""
}

// A miss out of a log is a line of this file: read again, it is what it says.
func TestMissOf(t *testing.T) {
	n := 0
	for _, c := range readCases(t, "corpus.jsonl") {
		got := Read(c.raw(), granted)
		if got.Miss == "" {
			continue
		}
		n++
		line, err := json.Marshal(MissOf(c.ID, got.Miss, got.Nudge, granted))
		var again readCase
		if err == nil {
			err = json.Unmarshal(line, &again)
		}
		if fault := again.fault(Read(again.raw(), granted)); err != nil || fault != "" || again.Want.Nudge != c.Want.Nudge || (again.Content == "") != (c.Content == "") {
			t.Errorf("%s: %v %s in %s", c.ID, err, fault, line)
		}
	}
	if n < 100 {
		t.Errorf("only %d misses in the corpus", n)
	}
}
