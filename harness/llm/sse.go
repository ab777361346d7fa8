package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"

	window "tether/context"
)

// A chunk is one frame of a reply, or a reply in one piece.
type chunk struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Delta   delta  `json:"delta"`
		Message *delta `json:"message"`
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt  int `json:"prompt_tokens"`
		Output  int `json:"completion_tokens"`
		Details struct {
			Cached *int `json:"cached_tokens"` // absent: the server does not tell
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Timings *struct {
		Cache     *int `json:"cache_n"` // absent from older servers
		Prompt    int  `json:"prompt_n"`
		Predicted int  `json:"predicted_n"`
	} `json:"timings"`
}

// A delta is what a frame adds to the message. Servers disagree on the name
// of the reasoning.
type delta struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	Thinking  string `json:"reasoning"`
	Calls     []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// collect reads a reply to its end: server-sent events, or the whole message
// as one JSON object from a server that does not stream. It returns nil at the
// end of the bytes; whether that was the end of the reply, s.finish tells.
func collect(r io.Reader, s *sink) (window.Usage, error) {
	var usage window.Usage
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	var rest bytes.Buffer // lines that are no events
	for in.Scan() {
		data, ok := bytes.CutPrefix(in.Bytes(), []byte("data:"))
		data = bytes.TrimSpace(data)
		switch {
		case !ok:
			rest.Write(bare(data))
		case string(data) == "[DONE]":
			if s.finish == "" {
				s.finish = "stop"
			}
			return usage, nil
		case len(data) > 0 && bytes.HasPrefix([]byte("[DONE]"), data): // cut in its middle
			if s.finish == "" {
				return usage, io.ErrUnexpectedEOF
			}
			return usage, nil
		case len(data) > 0:
			if err := s.event(data, &usage); err != nil {
				return usage, err
			}
		}
	}
	if err := in.Err(); err == bufio.ErrTooLong {
		return usage, errTooLong
	} else if err != nil && s.finish == "" {
		return usage, err
	}
	if rest.Len() > 0 && s.finish == "" && !begun(rest.Bytes()) {
		return usage, s.event(rest.Bytes(), &usage)
	}
	return usage, nil
}

// begun reports whether a stream broke off within the name of a field.
func begun(line []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:"} {
		if bytes.HasPrefix([]byte(field), line) {
			return true
		}
	}
	return false
}

// bare returns a line of a reply that is no stream; the fields of a stream
// other than its data are nothing.
func bare(line []byte) []byte {
	for _, field := range []string{":", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(line, []byte(field)) {
			return nil
		}
	}
	return line
}

// event takes one frame.
func (s *sink) event(data []byte, usage *window.Usage) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if half(data) {
			return io.ErrUnexpectedEOF
		}
		if json.Valid(data) { // a frame of another shape: the server misread its model
			return serverError(0, err.Error())
		}
		return serverError(0, string(data))
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return serverError(0, errorText(data))
	}
	s.model = cmp.Or(c.Model, s.model)
	for _, choice := range c.Choices {
		s.add(choice.Delta)
		if choice.Message != nil {
			s.add(*choice.Message)
		}
		if choice.Finish != "" {
			s.finish = choice.Finish
		}
	}
	c.count(usage)
	return nil
}

// count takes the counts of tokens. Those of a llama-server are the exact ones.
func (c chunk) count(usage *window.Usage) {
	if u := c.Usage; u != nil {
		usage.Prompt, usage.Output = u.Prompt, u.Output
		if n := u.Details.Cached; n != nil {
			usage.Cached, usage.CacheTold = max(*n, usage.Cached), true
		}
	}
	switch t := c.Timings; {
	case t == nil:
	case t.Cache != nil:
		usage.Prompt, usage.Cached, usage.Output, usage.CacheTold = *t.Cache+t.Prompt, *t.Cache, t.Predicted, true
	case usage.Prompt == 0:
		usage.Prompt, usage.Output = t.Prompt, t.Predicted
	}
}

// add takes what a frame adds to the message.
func (s *sink) add(d delta) {
	s.think(d.Reasoning)
	s.think(d.Thinking)
	s.text(d.Content)
	for i, c := range d.Calls {
		if c.Index != nil {
			i = *c.Index
		}
		s.call(i, c.ID, c.Function.Name, arguments(c.Function.Arguments))
	}
}

// arguments are a string in the protocol; some servers send the object.
func arguments(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
