package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"

	window "tether/context"
)

// A messagesReader reads the reply of an anthropic server into a sink.
type messagesReader struct {
	*sink
	usage  window.Usage
	blocks []signedBlock // thoughts, in the order of the reply
	open   int           // index of the block that the last thought belongs to
}

// A signedBlock is a thought as it came. It goes back so, or the server refuses
// the call that it led to.
type signedBlock struct {
	Type      string  `json:"type"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature string  `json:"signature,omitempty"`
	Data      string  `json:"data,omitempty"` // of a thought that is not shown
}

// A piece is one event of the stream, or a reply in one piece.
type piece struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Message *piece          `json:"message"` // of message_start
	Model   string          `json:"model"`
	Content []contentPiece  `json:"content"`
	Index   int             `json:"index"`
	Block   *contentPiece   `json:"content_block"`
	Stop    string          `json:"stop_reason"` // of a reply in one piece
	Usage   *struct {
		Input   int  `json:"input_tokens"`
		Created int  `json:"cache_creation_input_tokens"`
		Read    *int `json:"cache_read_input_tokens"` // absent: the server does not tell
		Output  int  `json:"output_tokens"`
	} `json:"usage"`
	Delta *struct {
		contentPiece
		Stop string `json:"stop_reason"`
	} `json:"delta"`
}

// A contentPiece is a block of a message, or what an event adds to one.
type contentPiece struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Partial   string          `json:"partial_json"`
}

// collect reads a reply to its end: events, or the whole message as one object.
// It returns nil at the end of the bytes; whether that was the end of the reply,
// the sink's finish tells.
func (r *messagesReader) collect(body io.Reader) error {
	in := bufio.NewScanner(body)
	in.Buffer(nil, maxLine)
	var rest bytes.Buffer // lines that are no events
	for in.Scan() {
		line := bytes.TrimSpace(in.Bytes())
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		switch data = bytes.TrimSpace(data); {
		case !ok:
			if !bytes.HasPrefix(line, []byte("event:")) && !bytes.HasPrefix(line, []byte(":")) {
				rest.Write(line)
			}
		case len(data) > 0:
			if err := r.event(data); err != nil {
				return err
			}
		}
	}
	if err := in.Err(); err == bufio.ErrTooLong {
		return errTooLong
	} else if err != nil && r.finish == "" {
		return err
	}
	if rest.Len() > 0 && r.finish == "" && !begun(rest.Bytes()) {
		return r.event(rest.Bytes())
	}
	return nil
}

// event takes one event.
func (r *messagesReader) event(data []byte) error {
	var p piece
	if err := json.Unmarshal(data, &p); err != nil {
		if half(data) {
			return io.ErrUnexpectedEOF
		}
		return serverError(0, string(data))
	}
	if len(p.Error) > 0 && string(p.Error) != "null" {
		return serverError(0, errorText(data))
	}
	if p.Message != nil {
		r.count(*p.Message)
	}
	r.count(p)
	for i, b := range p.Content {
		r.add(i, b)
	}
	if p.Block != nil {
		r.add(p.Index, *p.Block)
	}
	stop := p.Stop
	if p.Delta != nil {
		r.add(p.Index, p.Delta.contentPiece)
		stop = cmp.Or(p.Delta.Stop, stop)
	}
	return r.end(stop)
}

// count takes the counts of tokens; each event tells what it knows by then.
func (r *messagesReader) count(p piece) {
	r.model = cmp.Or(p.Model, r.model)
	if u := p.Usage; u != nil {
		read := 0
		if u.Read != nil {
			read, r.usage.CacheTold = *u.Read, true
		}
		if n := u.Input + u.Created + read; n > 0 {
			r.usage.Prompt, r.usage.Cached = n, read
		}
		r.usage.Output = max(u.Output, r.usage.Output)
	}
}

// add takes what a block begins with, or what is added to it.
func (r *messagesReader) add(index int, b contentPiece) {
	r.text(b.Text)
	switch b.Type {
	case "thinking", "redacted_thinking":
		r.blocks, r.open = append(r.blocks, signedBlock{Type: b.Type, Data: b.Data}), index
		if b.Type == "thinking" {
			r.blocks[len(r.blocks)-1].Thinking = new(string)
		}
	case "tool_use":
		r.call(index, b.ID, b.Name, atOnce(b.Input))
	case "input_json_delta":
		r.call(index, "", "", b.Partial)
	}
	if n := len(r.blocks); n > 0 && r.open == index && r.blocks[n-1].Thinking != nil {
		*r.blocks[n-1].Thinking += b.Thinking
		r.blocks[n-1].Signature += b.Signature
	}
	r.think(b.Thinking)
}

// atOnce are the arguments that stand in a call from its beginning; in a stream
// they are an empty object there, and come in pieces.
func atOnce(input json.RawMessage) string {
	if string(bytes.TrimSpace(input)) == "{}" {
		return ""
	}
	return string(input)
}

// end takes the reason for which a reply ended, in the words that Raw.Finish has.
func (r *messagesReader) end(stop string) error {
	switch stop {
	case "":
	case "refusal":
		return serverError(0, "the model refuses to go on with this task; word it otherwise, or name another model")
	case "max_tokens", "model_context_window_exceeded":
		r.finish = "length"
	case "tool_use":
		r.finish = "tool_calls"
	default: // end_turn, stop_sequence, pause_turn
		r.finish = "stop"
	}
	return nil
}

// thought is what Raw.Thought has of the reply.
func (r *messagesReader) thought() string {
	if len(r.blocks) == 0 {
		return ""
	}
	return compact(r.blocks)
}
