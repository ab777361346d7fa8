package harness

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	window "tether/context"
)

// A TruncatedError says that the model's server cut a request without a word and
// answered what was left. Nothing of such an answer is run: the task may have been in
// the part that is missing.
type TruncatedError struct {
	Sent int // tokens, as estimated
	Read int // tokens, as the server counted them
}

// Error names both numbers and the way out.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the model server cut the request without saying so: it read %d tokens of about %d\nstart it with a larger window, or tell tether its size with --window", e.Read, e.Sent)
}

// overflowed tells a person why the past is folded.
func overflowed(limit int, err error) string {
	if cut, ok := errors.AsType[*TruncatedError](err); ok {
		return fmt.Sprintf("the model server cut the request without saying so, it read %d tokens of about %d: the answer is not used, the past is folded", cut.Read, cut.Sent)
	}
	return fmt.Sprintf("the window of the server holds %d tokens: the past is folded", limit)
}

// cut is the window of a server that has read only a part of msgs, or 0, and what msgs
// were estimated at. It holds at least what it has read. What the server counted is kept
// for the next request.
func (r *run) cut(sent Sent, msgs []window.Message, reply window.Reply) (limit, cost int) {
	tokens := reply.Usage.Prompt
	if sent.Summary != nil || tokens <= 0 {
		return 0, 0 // of another kind than the requests before and behind it
	}
	r.recount(reply.Model, reply.Shape)
	before := r.Budget.Seen
	cut, now := r.Budget.Cut(r.parts, msgs, tokens)
	switch r.Budget.Seen = now; {
	case !cut:
		return 0, now.Cost
	case before.Folds == now.Folds:
		return max(tokens, before.Tokens), now.Cost
	}
	return tokens, now.Cost
}

// recount forgets what the server counted before if another model answers, or one that
// is asked in another form: then the same text has another number of tokens.
func (r *run) recount(model, shape string) {
	form, _, _ := strings.Cut(shape, " ")
	if model != "" && r.model != "" && model != r.model || form != "" && r.form != "" && form != r.form {
		r.Budget.Seen = window.Seen{}
	}
	r.form = cmp.Or(form, r.form)
}

// holds takes the word of a server that it holds fewer tokens than it was asked for;
// 0 is no word.
func (r *run) holds(tokens int) {
	if tokens <= 0 || tokens >= r.Budget.Window {
		return
	}
	r.warn(fmt.Sprintf("the server holds %d tokens of this model and not the %d that it was asked for: the past is folded earlier", tokens, r.Budget.Window))
	r.Budget.Window = tokens
}

// warn tells a person of something that the run goes on with.
func (r *run) warn(words string) {
	r.tell(Event{Type: EventWarning, N: r.steps, Output: words})
}
