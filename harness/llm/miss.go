package llm

import (
	"strings"

	window "tether/context"
)

// A Miss is a message that could not be read, in the form of a test case: a line
// of testdata/corpus.jsonl. Want says how it is read now.
type Miss struct {
	ID        string    `json:"id"`
	Content   string    `json:"content,omitempty"`
	ToolCalls []RawCall `json:"tool_calls,omitempty"`
	Finish    string    `json:"finish"`
	Want      Verdict   `json:"want"`
}

// A Verdict is the right value of a test case.
type Verdict struct {
	Calls []window.Call `json:"calls,omitempty"`
	Nudge string        `json:"nudge,omitempty"` // the name of the text
	Says  string        `json:"says,omitempty"`  // words of it that name the fault
	Miss  bool          `json:"miss,omitempty"`
}

// MissOf makes the test case of the message that a log keeps as missed, with the
// words that the model was told. The log has a tool call as its name and its
// arguments: which of the two it was is found out by reading.
func MissOf(id, missed, told string, commands []string) Miss {
	m := Miss{ID: id, Content: missed, Finish: "stop"}
	name, args, ok := strings.Cut(missed, " ")
	native := Raw{ToolCalls: []RawCall{{name, args}}, Finish: "tool_calls"}
	text := Read(Raw{Content: missed, Finish: "stop"}, commands)
	if call := Read(native, commands); ok && call.Nudge == told && text.Nudge != told {
		m.Content, m.ToolCalls, m.Finish, text = "", native.ToolCalls, native.Finish, call
	}
	m.Want = verdictOn(text, commands)
	return m
}

// withoutExample is a text up to the command that it shows.
func withoutExample(text string) string {
	text, _, _ = strings.Cut(text, ", for example: ")
	return text
}

// verdictOn says how a message was read.
func verdictOn(rep window.Reply, commands []string) Verdict {
	v := Verdict{Calls: rep.Calls, Miss: rep.Miss != ""}
	for _, name := range []string{"no_call", "unknown_tool", "empty", "cut"} {
		if withoutExample(rep.Nudge) == withoutExample(nudge(name, commands)) {
			v.Nudge = name
		}
	}
	for _, fault := range faults {
		if v.Nudge == "" && strings.Contains(rep.Nudge, fault) {
			v.Nudge, v.Says = "broken", fault
		}
	}
	return v
}
