package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	window "tether/context"
)

// ErrScriptEnded is the cause of the error of a script that has no reply left.
var ErrScriptEnded = errors.New("the script has no reply left")

// A script is a list of replies in the place of a model: how people test
// skills and gates. Each reply is given once, in order.
type script struct {
	path    string
	replies []Raw
	mu      sync.Mutex
	next    int
}

// openScript reads the script at path, one reply a line.
func openScript(path string) (*Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return nil, &ConfigError{"script:" + path, fmt.Sprintf("the file cannot be read (%v)\nit holds a reply a line, such as {\"cmd\":\"done\"}", err)}
	}
	s := &script{path: path}
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, maxReply)
	for n := 1; in.Scan(); n++ {
		l := bytes.TrimSpace(in.Bytes())
		if len(l) == 0 {
			continue
		}
		raw, err := scripted(l)
		if err != nil {
			return nil, &ConfigError{fmt.Sprintf("%s:%d", path, n), err.Error()}
		}
		s.replies = append(s.replies, raw)
	}
	if err := in.Err(); err != nil {
		return nil, &ConfigError{"script:" + path, err.Error()}
	}
	return &Model{send: s.send, skip: s.skip, wire: wiring{Model: "script"}, info: Info{Name: "script:" + path, Server: "script", Native: true}}, nil
}

// errLine says what a line of a script may be.
var errLine = errors.New(`not a reply; a line is {"cmd":…,"stdin":…}, {"text":…} or an assistant message {"role":"assistant",…}`)

// scripted reads one line of a script.
func scripted(l []byte) (Raw, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(l, &keys); err != nil {
		return Raw{}, fmt.Errorf("%w (%w)", errLine, err)
	}
	switch {
	case keys["role"] != nil:
		return scriptedMessage(l)
	case keys["cmd"] != nil:
		var c window.Call
		if err := strict(l, &c); err != nil {
			return Raw{}, err
		}
		return Raw{ToolCalls: []RawCall{{Name: toolName, Arguments: compact(c)}}, Finish: "tool_calls"}, nil
	case keys["text"] != nil:
		var t struct{ Text string }
		err := strict(l, &t)
		return Raw{Content: t.Text, Finish: "stop"}, err
	}
	return Raw{}, errLine
}

// strict decodes l into v and refuses a key that v does not know: a slip of
// the pen must not make another test.
func strict(l []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(l))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w (%w)", errLine, err)
	}
	return nil
}

// scriptedMessage reads a raw message in Ollama's or OpenAI's form.
func scriptedMessage(l []byte) (Raw, error) {
	var m struct {
		Role string `json:"role"`
		delta
		Think  string `json:"thinking"`
		Finish string `json:"finish_reason"`
		Done   string `json:"done_reason"`
	}
	if err := json.Unmarshal(l, &m); err != nil {
		return Raw{}, fmt.Errorf("%w (%w)", errLine, err)
	}
	if m.Role != string(window.RoleAssistant) {
		return Raw{}, fmt.Errorf("a message of %q, and a script holds only those of the assistant", m.Role)
	}
	var s sink
	s.add(m.delta)
	s.think(m.Think)
	s.finish = m.Finish + m.Done
	if s.finish == "" {
		s.finish = "stop"
	}
	return s.raw(), nil
}

// send gives the next reply. It costs nothing, and so its usage is zero.
func (s *script) send(ctx context.Context, _ any, to *sink) (Raw, window.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Raw{}, window.Usage{}, err
	}
	if s.next == len(s.replies) {
		return Raw{}, window.Usage{}, fmt.Errorf("script:%s: %w: it holds %d, and one more was asked for\nend it with a line {\"cmd\":\"done\"}", s.path, ErrScriptEnded, len(s.replies))
	}
	raw := s.replies[s.next]
	s.next++
	to.text(raw.Content)
	return raw, window.Usage{}, nil
}

// skip goes to the reply after the first n.
func (s *script) skip(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = min(n, len(s.replies))
}
