package llm

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	window "tether/context"
)

// A wired case is a line of testdata/wire.jsonl, which was handed over: what a
// server sent, and what is right.
type wired struct {
	ID    string
	Input struct {
		Type, API string
		Chunks    []string
		Responses []struct {
			Status int
			Body   json.RawMessage
		}
		Messages []struct {
			Role, Content string
			ToolCalls     []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	Expect struct {
		Outcome    string
		Calls      []struct{ Arguments window.Call }
		Hint       []string `json:"hint_contains"`
		MaxRetries int      `json:"max_retries"`
	}
}

// wiredCases are the handed cases by their ids.
func wiredCases(t *testing.T) map[string]wired {
	f, err := os.Open("testdata/wire.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]wired{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c wired
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all[c.ID] = c
	}
	return all
}

// good is a reply with a call, after which nothing is asked for again.
func (p provider) good() reply {
	if p.name == "ollama" {
		return reply{body: `{"model":"m","message":{"role":"assistant","tool_calls":[{"function":{"name":"act","arguments":{"cmd":"good"}}}]},"done":true,"done_reason":"stop"}`}
	}
	if p.name == "anthropic" {
		return reply{body: `{"type":"message","content":[{"type":"tool_use","id":"c","name":"act","input":{"cmd":"good"}}],"stop_reason":"tool_use"}`}
	}
	return reply{body: `{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"act","arguments":"{\"cmd\":\"good\"}"}}]},"finish_reason":"tool_calls"}]}`}
}

// TestWired plays each case. After what was handed over the server answers well,
// as often as the case lets it be asked again.
func TestWired(t *testing.T) {
	cases := wiredCases(t)
	if len(cases) != 8 { // a29 and d15 have tests of their own
		t.Errorf("%d cases, want 8", len(cases))
	}
	for _, id := range []string{"a11", "a21", "a23", "a27", "a33", "b09"} {
		t.Run(id, func(t *testing.T) {
			c, ok := cases[id]
			if !ok {
				t.Fatal("it is not in the file")
			}
			p := providers[0]
			replies := []reply{}
			if c.Input.Type == "stream" {
				p = providers[2]
				replies = append(replies, reply{body: strings.Join(c.Input.Chunks, ""), kind: "text/event-stream"})
			}
			for _, r := range c.Input.Responses {
				replies = append(replies, reply{status: r.Status, body: string(r.Body)})
			}
			if c.Input.Type == "stream" && c.Expect.Outcome == "retry" {
				replies = append(replies, p.good())
			}
			m, f := p.open(t, func(c *Config) {
				if id == "b09" {
					c.Thinking = "on" // else nothing is sent that could be refused
				}
			}, replies...)
			got, err := m.Reply(t.Context(), ask, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.judge(t, got, len(f.chats()), len(replies))
		})
	}
}

// judge compares what came of a case with what is right.
func (c wired) judge(t *testing.T, got window.Reply, asked, may int) {
	var want []window.Call
	for _, call := range c.Expect.Calls {
		want = append(want, call.Arguments)
	}
	if c.Input.Type == "stream" && c.Expect.Outcome == "retry" {
		want = []window.Call{{Cmd: "good"}} // never what came before it
	}
	if !reflect.DeepEqual(got.Calls, want) || asked != may {
		t.Errorf("calls %q after %d requests, want %q after %d", got.Calls, asked, want, may)
	}
	for _, hint := range c.Expect.Hint {
		if hint == "smaller" {
			hint = "Write less at once" // our words for it
		}
		if !strings.Contains(got.Nudge, hint) || !got.Cut {
			t.Errorf("cut %v, %q does not say %q", got.Cut, got.Nudge, hint)
		}
	}
	if c.ID == "b09" && got.Text != "ok" {
		t.Errorf("text %q", got.Text)
	}
}

// TestWiredHistory, a29: whatever a model has sent, each call in the next request
// has arguments that are a JSON object.
func TestWiredHistory(t *testing.T) {
	c, ok := wiredCases(t)["a29"]
	if !ok {
		t.Fatal("it is not in the file")
	}
	call := c.Input.Messages[2].ToolCalls[0].Function
	bad := Read(Raw{ToolCalls: []RawCall{{call.Name, call.Arguments}}, Finish: "tool_calls"}, granted)
	if len(bad.Calls) > 0 || bad.Nudge == "" || bad.Miss == "" {
		t.Fatalf("%+v", bad)
	}
	turns := []window.Turn{
		{ID: "obs_1", Call: window.Call{Cmd: "ls", Stdin: "{"}, Output: "a"},
		{ID: "obs_2", Said: bad.Miss, Status: 2, Next: bad.Nudge},
	}
	next := window.Request{Messages: window.Default.Messages(window.Parts{System: "s", Task: "u", Turns: turns})}
	for _, p := range providers {
		m, f := p.open(t, nil, p.good())
		if _, err := m.Reply(t.Context(), next, nil); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Messages []struct {
				Calls []struct {
					Function struct{ Arguments json.RawMessage }
				} `json:"tool_calls"`
				Content json.RawMessage // of Anthropic's: a list, in which calls stand
			}
		}
		if err := json.Unmarshal([]byte(f.chats()[0]), &sent); err != nil {
			t.Fatal(err)
		}
		calls := 0
		for _, message := range sent.Messages {
			for _, call := range message.Calls {
				calls++
				var object map[string]any
				if err := json.Unmarshal([]byte(arguments(call.Function.Arguments)), &object); err != nil {
					t.Errorf("%s: %s: %v", p.name, call.Function.Arguments, err)
				}
			}
			var blocks []struct{ Input map[string]any }
			if json.Unmarshal(message.Content, &blocks) == nil && len(blocks) > 0 && blocks[0].Input != nil {
				calls++
			}
		}
		if calls != 1 {
			t.Errorf("%s: %d calls in the history, want 1", p.name, calls)
		}
	}
}

// TestWiredEndless, d15: a model that says the same without an end is stopped long
// before its server would. It is asked once more, and the second time that is a
// reply which was cut.
func TestWiredEndless(t *testing.T) {
	if _, ok := wiredCases(t)["d15"]; !ok {
		t.Fatal("it is not in the file")
	}
	const unit = "I will write the code. I will begin. "
	for _, p := range providers {
		left := make(chan int, 4)
		f := newFake(t, p)
		f.Config.Handler = endless(p, unit, left)
		c := p.config(f.URL)
		c.Commands = granted
		m, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Reply(t.Context(), ask, nil)
		if err != nil || len(got.Calls) > 0 || !got.Cut || got.Nudge == "" {
			t.Errorf("%s: %v %+v", p.name, err, got)
		}
		for range 2 {
			select {
			case <-left:
			case <-time.After(5 * time.Second):
				t.Errorf("%s: it went on writing", p.name)
			}
		}
	}
}

// endless is a server whose model says unit for as long as somebody listens.
func endless(p provider, unit string, left chan<- int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := p.routes[r.URL.Path]; ok {
			io.WriteString(w, body)
			return
		}
		text, _ := json.Marshal(unit)
		frame := `data: {"choices":[{"delta":{"content":` + string(text) + `}}]}` + "\n\n"
		if p.name == "ollama" {
			frame = `{"message":{"role":"assistant","content":` + string(text) + `},"done":false}` + "\n"
		}
		if p.name == "anthropic" {
			frame = `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + string(text) + `}}` + "\n\n"
		}
		n := 0
		for ; r.Context().Err() == nil && n < 1<<20; n++ {
			if _, err := io.WriteString(w, frame); err != nil {
				break
			}
			w.(http.Flusher).Flush()
		}
		left <- n
	})
}

// TestLooping: what repeats itself is told from what is only regular.
func TestLooping(t *testing.T) {
	lines := ""
	for i := range 400 {
		lines += "item " + strings.Repeat("x", i%7) + " is number " + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "\n"
	}
	for text, want := range map[string]bool{
		strings.Repeat("I will begin. ", 400):                           true,
		"{\"cmd\":\"write a\",\"stdin\":\"" + strings.Repeat("0", 5000): true,
		lines + strings.Repeat("the same line\n", 400):                  true,
		lines + strings.Repeat(lines[:240], 7):                          true, // a chain of commands that has no end
		lines + strings.Repeat(lines[:640], 7):                          true,
		lines + strings.Repeat(lines[:240], 5):                          false,
		lines + strings.Repeat(lines[:640], 5):                          false,
		lines:                                                           false,
		strings.Repeat("I will begin. ", 100):                           false,
		strings.Repeat(lines, 3):                                        false, // a block is written again, and ends
		"":                                                              false,
	} {
		if got := looping(text); got != want {
			t.Errorf("%.40q and %d bytes more: %v", text, len(text), got)
		}
	}
}
