package harness

// An Event is one thing that happened in a run, as front ends show it and as
// --events prints it. Fields that do not belong to its type are empty.
type Event struct {
	V    int    `json:"v"` // version of the format: 1
	Type string `json:"type"`

	Session string `json:"session,omitempty"` // start
	Task    string `json:"task,omitempty"`    // start
	Model   string `json:"model,omitempty"`   // start
	Sandbox string `json:"sandbox,omitempty"` // start: the profile
	Network string `json:"network,omitempty"` // start: what commands reach
	Facts   int    `json:"facts,omitempty"`   // start: about how many tokens AGENTS.md takes

	N         int      `json:"n,omitempty"`         // act, observation: the step
	Cmd       string   `json:"cmd,omitempty"`       // act; gate: its command line
	Stdin     string   `json:"stdin,omitempty"`     // act
	Recovered string   `json:"recovered,omitempty"` // act: the dialect the call was found in
	Obs       string   `json:"obs,omitempty"`       // observation; compact: the turns
	Status    int      `json:"status"`              // observation, gate
	Output    string   `json:"output,omitempty"`    // observation: as the model sees it; gate; warning
	Next      string   `json:"-"`                   // observation: the end of Output that asks the model for its next step
	Changed   []string `json:"changed,omitempty"`   // gate: files it is made of that were changed
	Seconds   float64  `json:"seconds,omitempty"`   // act: of the model; observation, gate: of the command

	Prompt     int   `json:"prompt,omitempty"`         // cache: tokens of the request
	Cached     int   `json:"cached,omitempty"`         // cache: the part that the server still held
	CacheTold  bool  `json:"cache_told,omitempty"`     // cache: the server says what it still held
	Tokens     int   `json:"tokens,omitempty"`         // cache: tokens written
	FirstToken int64 `json:"first_token_ms,omitempty"` // cache: milliseconds
	Folded     int   `json:"folded,omitempty"`         // cache: turns out of sight

	Result *Outcome `json:"result,omitempty"` // result, the last event
}

// The types of events.
const (
	EventStart       = "start"
	EventThink       = "think" // the model is being asked; live views only
	EventAct         = "act"
	EventObservation = "observation"
	EventGate        = "gate"
	EventCache       = "cache"
	EventCompact     = "compact" // a summary stands for older turns
	EventWarning     = "warning"
	EventResult      = "result"
)

// tell passes e to whoever follows the run. What is told is printed, and kept in
// the logs of pipelines: secrets are taken out, as they are in the event log.
func (a *Agent) tell(e Event) {
	if a.Notify != nil {
		e.V = 1
		for _, s := range []*string{&e.Task, &e.Cmd, &e.Stdin, &e.Output, &e.Next} {
			*s = a.Store.Redact(*s)
		}
		a.Notify(e)
	}
}
