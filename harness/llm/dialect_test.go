package llm

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	window "tether/context"
)

// granted are the commands of the tests.
var granted = []string{"sh", "read", "write", "append", "edit", "grep", "find", "mem", "skill", "done", "help"}

// A readCase is a line of testdata/read.jsonl or corpus.jsonl: a message as a model sent it,
// and its right value. Lines with an id like a01 are from public reports.
type readCase struct {
	ID        string    `json:"id"`
	Content   string    `json:"content"`
	Thinking  string    `json:"thinking"`
	ToolCalls []RawCall `json:"tool_calls"`
	Finish    string    `json:"finish"`
	Want      struct {
		Calls     []window.Call `json:"calls"`
		Text      string        `json:"text"`
		Nudge     string        `json:"nudge"` // the name of the text
		Says      string        `json:"says"`  // words of it that name the fault
		Recovered string        `json:"recovered"`
		Miss, Cut bool
	} `json:"want"`
}

func readCases(t testing.TB, file string) []readCase {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []readCase
	for in := bufio.NewScanner(f); in.Scan(); {
		var c readCase
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", in.Text(), err)
		}
		cases = append(cases, c)
	}
	return cases
}

func (c readCase) raw() Raw {
	return Raw{Content: c.Content, Thinking: c.Thinking, ToolCalls: c.ToolCalls, Finish: c.Finish}
}

func TestRead(t *testing.T) {
	for _, c := range readCases(t, "read.jsonl") {
		t.Run(c.ID, func(t *testing.T) {
			got := Read(c.raw(), granted)
			if fault := c.fault(got); fault != "" || (got.Miss != "") != c.Want.Miss || got.Text != c.Want.Text {
				t.Errorf("%s (%+v)", fault, got)
			}
			if c.Want.Recovered != "" && got.Recovered != c.Want.Recovered {
				t.Errorf("recovered: got %q, want %q", got.Recovered, c.Want.Recovered)
			}
		})
	}
}

func TestReadWithoutShell(t *testing.T) {
	got := Read(Raw{Content: "```bash\nrm -r .\n```", Finish: "stop"}, []string{"read", "done"})
	if len(got.Calls) != 0 {
		t.Errorf("got calls %q of a model that has no shell, want none", got.Calls)
	}
}

// FuzzRead holds what is true of every message: reading does not panic, runs
// nothing of a cut one, and never yields a call without a command, nor a call
// and a nudge at once.
func FuzzRead(f *testing.F) {
	for _, c := range append(readCases(f, "read.jsonl"), readCases(f, "corpus.jsonl")...) {
		name, args := "", ""
		if len(c.ToolCalls) > 0 {
			name, args = c.ToolCalls[0].Name, c.ToolCalls[0].Arguments
		}
		f.Add(c.Content, name, args, c.Finish)
	}
	f.Fuzz(func(t *testing.T, content, name, args, finish string) {
		raw := Raw{Content: content, Finish: finish}
		if name != "" {
			raw.ToolCalls = []RawCall{{name, args}}
		}
		got := Read(raw, granted)
		for _, c := range got.Calls {
			if strings.TrimSpace(c.Cmd) == "" {
				t.Errorf("a call without a command in %+v", got)
			}
		}
		if finish == "length" && (len(got.Calls) > 0 || !got.Cut) {
			t.Errorf("a cut message gave %+v", got)
		}
		own := Read(raw, granted, Dialect{"a", "<", ">", "lines"}, Dialect{"b", "CALL", "", "json"}, Dialect{"c", "(", ")", "python"})
		for _, rep := range []window.Reply{got, own} {
			if (len(rep.Calls) > 0) == (rep.Nudge != "") {
				t.Errorf("want either calls or a nudge, got %+v", rep)
			}
		}
	})
}

// A prefix of a message must not become another call than the whole one's:
// what a model had not finished is not run in a shorter form. A line has no
// end of its own: there the server's word that the message is whole is all.
func TestReadCompletesNothing(t *testing.T) {
	for n, c := range append(readCases(t, "read.jsonl"), readCases(t, "corpus.jsonl")...) {
		whole := Read(c.raw(), granted).Calls
		for i := n % 11; i < min(len(c.Content), 2000); i += 11 { // alike cases begin elsewhere
			raw := c.raw()
			raw.Content = c.Content[:i]
			rep := Read(raw, granted)
			got := rep.Calls
			if c.Want.Nudge == "" && rep.Recovered != "command line" && rep.Recovered != "labelled line" && len(got) > 0 && (len(got) > len(whole) || !reflect.DeepEqual(got, whole[:len(got)])) {
				t.Fatalf("%s: its first %d bytes gave %q, the whole gives %q", c.ID, i, got, whole)
			}
		}
	}
}

// What a nudge shows as a command is read as one.
func TestReadNudge(t *testing.T) {
	_, example, ok := strings.Cut(nudge("no_call", granted), "for example: ")
	if got := Read(Raw{Content: example, Finish: "stop"}, granted); !ok || len(got.Calls) != 1 {
		t.Errorf("the example %q is read as %+v", example, got)
	}
}

// Every example of a call in the texts that the model is shown must be read.
func TestReadOwnExamples(t *testing.T) {
	text := window.Text("reply_form", nil)
	i := strings.Index(text, "{")
	if i < 0 {
		t.Fatalf("reply_form shows no object: %q", text)
	}
	got := Read(Raw{Content: text[i:], Finish: "stop"}, granted)
	if len(got.Calls) != 1 {
		t.Errorf("the form of a reply that we teach is read as %+v", got)
	}
}

func TestDialectsAllTested(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range append(readCases(t, "read.jsonl"), readCases(t, "corpus.jsonl")...) {
		seen[Read(c.raw(), granted).Recovered] = true
	}
	for _, d := range dialects {
		if !seen[d.name] {
			t.Errorf("no case in testdata for the dialect %q", d.name)
		}
	}
}
