package llm

import (
	"strings"
	"time"
)

// A Raw is an assistant message as it came, of whatever protocol.
type Raw struct {
	Content   string
	Thinking  string // what the server itself told apart as reasoning
	ToolCalls []RawCall
	Thought   string // the same as it must go back, where the protocol signs it (JSON)
	Finish    string // why it ended: "stop", "length", "tool_calls", …
}

// A RawCall is a tool call as it came. Arguments is JSON if all is well.
type RawCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A sink collects a reply from its pieces, as they arrive.
type sink struct {
	began  time.Time
	first  time.Duration // until the model began to write
	stream func(string)  // where visible text goes at once; may be nil
	beat   func()        // to be called whenever bytes arrive
	halt   func()        // ends a reply that repeats itself
	unseen int           // bytes since that was looked for

	limit int    // bytes of thought after which the reply is ended; 0 is none
	over  func() // ends it

	content, thinking strings.Builder
	calls             []RawCall
	ids               []string // of calls, where the protocol sends them in pieces
	args              []*strings.Builder
	slot              map[int]int // the protocol's index of a call → its place in calls
	finish            string
	model             string // who answers, in the words of the server
	holds             int    // tokens that the server turned out to hold, if fewer than it was asked for
}

// mark notes that the model has begun to write.
func (s *sink) mark() {
	if s.first == 0 {
		s.first = time.Since(s.began)
	}
}

// text takes a piece of the visible reply.
func (s *sink) text(t string) {
	if t == "" {
		return
	}
	s.mark()
	s.content.WriteString(t)
	s.cap()
	s.grown(s.content.String(), len(t))
	if s.stream != nil {
		s.stream(t)
	}
}

// think takes a piece of the reasoning.
func (s *sink) think(t string) {
	if t == "" {
		return
	}
	s.mark()
	s.thinking.WriteString(t)
	s.cap()
	s.grown(s.thinking.String(), len(t))
}

// call takes a piece of a tool call. Pieces belong together by their index;
// some servers give every call the index 0, and then a new id begins a new one.
func (s *sink) call(index int, id, name, args string) {
	s.mark()
	if s.slot == nil {
		s.slot = map[int]int{}
	}
	i, ok := s.slot[index]
	if !ok || id != "" && s.ids[i] != "" && s.ids[i] != id {
		i = len(s.calls)
		s.slot[index] = i
		s.calls, s.ids, s.args = append(s.calls, RawCall{}), append(s.ids, id), append(s.args, new(strings.Builder))
	}
	s.calls[i].Name += name
	s.args[i].WriteString(args)
	s.grown(s.args[i].String(), len(args))
}

// raw is the reply as far as it has come.
func (s *sink) raw() Raw {
	for i, a := range s.args {
		s.calls[i].Arguments = a.String()
	}
	return Raw{Content: s.content.String(), Thinking: s.thinking.String(), ToolCalls: s.calls, Finish: s.finish}
}
