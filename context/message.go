package window

import "time"

// A Role says who speaks in a Message.
type Role string

// The four roles of the chat protocols. What the harness has to say in the
// middle of a task travels as RoleTool: a user message there makes many chat
// templates render the past anew, which costs the prompt cache (DESIGN 6).
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Call is one use of the only tool: a command line, and the text that the
// command reads.
type Call struct {
	Cmd   string `json:"cmd"`
	Stdin string `json:"stdin,omitempty"`
}

// A Message is one message of a request, free of any wire protocol.
type Message struct {
	Role Role
	Text string
	Call *Call  // set on an assistant message that acts
	ID   string // names the call, for example "obs_3", on it and on its result
	// Thought is what the model thought before an assistant message, in the form of
	// its protocol, where that wants it back as it came; else it is empty.
	Thought string
}

// A Request is what a model is asked: the window and how to sample.
type Request struct {
	Messages []Message
	// Fresh asks for another answer than the likeliest one. It is set when the
	// likeliest answer was a call that has already been made and nothing has
	// changed since: sampling again costs no history (DESIGN 4).
	Fresh bool
	// Without names what the reply must not begin with this time, where decoding
	// is bound to a schema or a grammar: done while a gate fails and nothing has
	// changed, and the command of the call that Fresh is about.
	Without []string
	// Prose asks for text, as for a summary: no tool is offered, no schema binds
	// the reply, and none of it is to be run.
	Prose bool
}

// A Usage is what one reply cost, as its server reported it. Counts are in
// tokens; zero means that the server did not say.
type Usage struct {
	Prompt     int           // the whole prompt, cached part included
	Cached     int           // the part of it that the server still held
	CacheTold  bool          // the server says what it still held; if not, Cached is not known
	Output     int           // what the model wrote
	FirstToken time.Duration // from sending the request to the first text
	Total      time.Duration // from sending the request to the end
}

// A Reply is a model's message, read.
type Reply struct {
	Calls     []Call // to be run in order, no further than the first that fails
	Text      string // prose, if it holds no call
	Thought   string // see Message
	Nudge     string // what to tell a model whose message could not be run
	Miss      string // the raw message, if it looked like a call and could not be read
	Recovered string // the dialect that the call was found in; empty for the proper form
	Cut       bool   // the message ended at the token limit: nothing of it is run
	Usage     Usage
	// Partial is what came of an attempt that broke off, also beside an error. It
	// is for the log: nothing of it is run.
	Partial string
	// Overflow is set beside the error that says that the request was more than
	// the server's window holds: the size of that window in tokens. It is for the
	// caller to fold and ask again.
	Overflow int
	// Window is set where the server turned out to hold fewer tokens than it was
	// asked for: so many.
	Window int
	// Sent is the SHA-256 of the request's body in hex, and Shape the form in
	// which the calls were asked for: with them the log can show the request
	// again byte for byte and tell that it is the same.
	Sent  string
	Shape string
	// Model is who answered, in the words of the server; empty if it does not say.
	Model string
}
