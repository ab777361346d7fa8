package harness

import (
	"context"
	"encoding/json"

	"tether/act"
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
	kindVain    = "vain"    // Vain: its command had no effect and leaves no turn
	kindTurn    = "turn"    // Turned: what the model is shown of a step
	kindGate    = "gate"    // GateResult
	kindStop    = "stop"    // Ended
	kindNetwork = "network" // Asked: what the proxy answered
	kindResume  = "resume"  // Setup: what it is from here on; System and Prompt only if they were lost
	kindMessage = "message" // Said: what a person has to say in the middle
)

// Abandon commits that a session ended before its run could begin.
func Abandon(ctx context.Context, store *memory.Store, session string, o Outcome) error {
	_, err := store.Append(context.WithoutCancel(ctx), session, kindStop, o)
	return err
}

// Setup is what a session was started with.
type Setup struct {
	Model   string   `json:"model"`
	Sandbox string   `json:"sandbox"`
	Network string   `json:"network,omitempty"` // what commands reach: off, proxy, host
	Allow   []string `json:"allow,omitempty"`   // hosts, where that is proxy
	Seals   []Seal   `json:"seals,omitempty"`   // the files that the gates are made of
	// GateChange is Agent.GateChange.
	GateChange string        `json:"gate_change,omitempty"`
	Root       string        `json:"root"` // the workspace
	Commands   []string      `json:"commands"`
	System     string        `json:"system"`
	Fenced     bool          `json:"fenced,omitempty"` // the model answers with a block of shell
	Prompt     string        `json:"prompt"`           // the task as the model reads it
	Facts      int           `json:"facts,omitempty"`  // of it, about how many tokens are of AGENTS.md
	Budget     window.Budget `json:"budget"`
	// Window is what Budget was asked to be, in tokens: its own is less where the
	// server turned out to hold less. Zero: the same.
	Window int      `json:"window,omitempty"`
	Gates  []string `json:"gates"`
	// Schema is what the report of done must fit, if anything.
	Schema  json.RawMessage `json:"schema,omitempty"`
	Version string          `json:"version"`
	// Wire is what decides the bytes of a request beside the window, in the
	// words of package llm.
	Wire   json.RawMessage `json:"wire"`
	Limits Limits          `json:"limits"`
	// Shell is what the shell remembers at that moment: the files that were shown
	// with the task are seen.
	Shell act.State `json:"shell"`
}

// Sent is one request: which turns it shows and how.
type Sent struct {
	N     int          `json:"n"`
	Step  int          `json:"step,omitempty"` // that it is for
	Turns int          `json:"turns"`          // of the session so far
	Folds window.Folds `json:"folds"`
	Bytes float64      `json:"bytes_per_token"`
	// Window and Reserve are those of the budget then, in tokens: a server that
	// holds less than it said makes them smaller. Zero is as set up.
	Window  int `json:"window,omitempty"`
	Reserve int `json:"reserve,omitempty"`
	// Seen is the request before it that its server had counted.
	Seen window.Seen `json:"seen,omitzero"`

	// Summaries is how many stand in the window. Summary is the span that this is a
	// request for a summary of; nil: it is one for the next call.
	Summaries int          `json:"summaries,omitempty"`
	Summary   *window.Span `json:"summary,omitempty"`

	Fresh bool `json:"fresh,omitempty"`
	// Without are the commands that decoding was kept from.
	Without []string `json:"without,omitempty"`

	// Wire is the newest Setup's; Replay fills it in.
	Wire json.RawMessage `json:"-"`
}

// Received is one reply.
type Received struct {
	N            int           `json:"n"`
	Calls        []window.Call `json:"calls"`
	Text         string        `json:"text,omitempty"`
	Nudge        string        `json:"nudge,omitempty"`
	Miss         string        `json:"miss,omitempty"`
	Recovered    string        `json:"recovered,omitempty"`
	Cut          bool          `json:"cut,omitempty"`
	Partial      string        `json:"partial,omitempty"`  // of an attempt that broke off: never run
	Error        string        `json:"error,omitempty"`    // no reply: why
	Overflow     int           `json:"overflow,omitempty"` // no reply, or one to a part: the server holds only that many tokens
	Holds        int           `json:"holds,omitempty"`    // the server holds fewer tokens than it was asked for: so many
	Sent         string        `json:"sent,omitempty"`     // SHA-256 of the request's body
	Model        string        `json:"model,omitempty"`    // who answered, in the words of the server
	Thought      string        `json:"thought,omitempty"`  // what must go back with the reply
	Shape        string        `json:"shape,omitempty"`    // form in which calls were asked for
	Prompt       int           `json:"prompt"`
	Cached       int           `json:"cached"`
	CacheTold    bool          `json:"cache_told,omitempty"` // the server said what Cached is; logs of before this field do not have it
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
// package memory keeps under the same id, and what has to be known of it to go
// on after it.
type Turned struct {
	Obs  string `json:"obs"`
	How  string `json:"how,omitempty"` // "": a call that was run; else one of the words below
	Said string `json:"said,omitempty"`
	Next string `json:"next"`
	// Thought is window.Turn's.
	Thought string `json:"thought,omitempty"`
	MS      int64  `json:"ms"` // of the command
	Step    int    `json:"step"`

	Changed bool     `json:"changed,omitempty"` // a file
	Files   []string `json:"files,omitempty"`   // then: those that differ from the start, the first 200
	Shown   bool     `json:"shown,omitempty"`   // the gate's failure shows a file
	Done    bool     `json:"done,omitempty"`    // every gate passed
	Report  string   `json:"report,omitempty"`  // of a done, also of one that a gate refused
	Gates   []string `json:"gates,omitempty"`   // that it added
	Seals   []Seal   `json:"seals,omitempty"`   // then: all that there are now
	Recall  bool     `json:"recall,omitempty"`  // the observation is one of earlier ones
	Pin     bool     `json:"pin,omitempty"`     // it stays in the window
	Band    int      `json:"band,omitempty"`    // of the newest reminder that the window is nearly full, in percent
	// What the shell remembers: where it is, and the files that it saw anew.
	Dir  string            `json:"dir,omitempty"`
	Seen map[string]string `json:"seen,omitempty"`
}

// How a turn came about that is no call that was run.
const (
	howMissed      = "missed"      // there was no call that could be run
	howRepeated    = "repeated"    // the call was not run again
	howDoubted     = "doubted"     // a done right after a failed command, which was questioned
	howUnfit       = "unfit"       // a done whose report does not fit the schema
	howInterrupted = "interrupted" // the call was begun, and nobody knows how it ended, or whether it counted
)

// Vain is a call that had no effect and leaves no turn: the model was sampled
// anew before it could enter the history.
type Vain struct {
	Obs    string `json:"obs"`
	Step   int    `json:"step"`
	Output string `json:"output"`
}

// Ended is how a run ended, and how it left the workspace.
type Ended struct {
	Outcome
	Tree string `json:"tree,omitempty"` // is another one when files have changed
}

// Said is what a person has to say in the middle of a task.
type Said struct {
	Obs  string `json:"obs"` // the place in the history; there is no observation
	Text string `json:"text"`
}
