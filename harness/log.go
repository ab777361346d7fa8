package harness

import (
	"context"
	"encoding/json"

	window "tether/context"
	"tether/memory"
)

// The kinds of events that a run writes to the log, beside the observations
// that package memory writes. With them every window can be computed again.
const (
	kindSetup   = "setup"   // Setup: once, before the first request
	kindRequest = "request" // Sent: before a request goes out
	kindReply   = "reply"   // Received: after its reply
	kindIntent  = "intent"  // Intended: before a command runs
	kindVain    = "vain"    // Intended: its command had no effect and leaves no turn
	kindTurn    = "turn"    // Turned: what the model is shown of a step
	kindGate    = "gate"    // GateResult
	kindStop    = "stop"    // Outcome
)

// Abandon commits that a session ended before its run could begin.
func Abandon(ctx context.Context, store *memory.Store, session string, o Outcome) error {
	_, err := store.Append(context.WithoutCancel(ctx), session, kindStop, o)
	return err
}

// Setup is what a session was started with.
type Setup struct {
	Model    string        `json:"model"`
	Sandbox  string        `json:"sandbox"`
	Root     string        `json:"root"` // the workspace
	Commands []string      `json:"commands"`
	System   string        `json:"system"`
	Prompt   string        `json:"prompt"` // the task as the model reads it
	Budget   window.Budget `json:"budget"`
	Gates    []string      `json:"gates"`
	Version  string        `json:"version"`
	// Wire is what decides the bytes of a request beside the window, in the
	// words of package llm.
	Wire json.RawMessage `json:"wire"`
}

// Sent is one request: which turns it shows and how.
type Sent struct {
	N     int          `json:"n"`
	Turns int          `json:"turns"` // of the session so far
	Folds window.Folds `json:"folds"`
	Bytes float64      `json:"bytes_per_token"`
	// Window and Reserve are those of the budget then, in tokens: a server that
	// holds less than it said makes them smaller. Zero is as set up.
	Window  int `json:"window,omitempty"`
	Reserve int `json:"reserve,omitempty"`

	Fresh bool `json:"fresh,omitempty"`
	// Without are the commands that decoding was kept from.
	Without []string `json:"without,omitempty"`
}

// Received is one reply.
type Received struct {
	N            int           `json:"n"`
	Calls        []window.Call `json:"calls"`
	Text         string        `json:"text,omitempty"`
	Miss         string        `json:"miss,omitempty"`
	Recovered    string        `json:"recovered,omitempty"`
	Cut          bool          `json:"cut,omitempty"`
	Overflow     int           `json:"overflow,omitempty"` // no reply: the server holds only that many tokens
	Sent         string        `json:"sent,omitempty"`     // SHA-256 of the request's body
	Shape        string        `json:"shape,omitempty"`    // form in which calls were asked for
	Prompt       int           `json:"prompt"`
	Cached       int           `json:"cached"`
	Output       int           `json:"output"`
	FirstTokenMS int64         `json:"first_token_ms"`
	MS           int64         `json:"ms"`
}

// Intended is a command that is about to run. If no observation follows, its
// outcome is unknown and it is not run again by itself.
type Intended struct {
	Obs   string `json:"obs"`
	Cmd   string `json:"cmd"`
	Stdin string `json:"stdin,omitempty"`
}

// Turned is what the window shows of a turn beside its observation, which
// package memory keeps under the same id.
type Turned struct {
	Obs  string `json:"obs"`
	Said string `json:"said,omitempty"`
	Next string `json:"next"`
	MS   int64  `json:"ms"` // of the command
	Step int    `json:"step"`
}
