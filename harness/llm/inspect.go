package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	window "tether/context"
)

// A Finding is what an inspection found out about one ability of a server.
type Finding struct {
	Known bool   // it could be found out
	OK    bool   // it is as it should be; only if it is known
	Said  string // what was seen, or why it is not known
}

func notKnown(format string, args ...any) Finding { return Finding{Said: fmt.Sprintf(format, args...)} }

func seen(ok bool, format string, args ...any) Finding {
	return Finding{Known: true, OK: ok, Said: fmt.Sprintf(format, args...)}
}

// An Inspection is what cannot be read off Info: what a server does with a
// request.
type Inspection struct {
	Window Finding // it holds as many tokens as it is asked for
	Prefix Finding // the template leaves what it has rendered as it is
	Bound  Finding // it decodes under a schema
	Cached Finding // it reuses what it has read, and says so
}

// Inspect asks the server of m four small things. The model writes two calls of
// done, some 20 tokens each; what ctx leaves no time for is not known. m must have
// been opened with Constrain "on" and Commands, and is nobody else's meanwhile.
func (m *Model) Inspect(ctx context.Context) Inspection {
	i := Inspection{Prefix: m.prefix(ctx)}
	first, err := m.Reply(ctx, inspected, nil)
	i.Bound = bound(m.Info(), first, err)
	second, again := first, err
	if err == nil {
		second, again = m.Reply(ctx, inspected, nil)
	}
	i.Cached = reused(second.Usage, again)
	i.Window = m.holds(first.Window)
	return i
}

// inspected asks for the shortest act there is.
var inspected = window.Request{Messages: []window.Message{
	{Role: window.RoleSystem, Text: "You act through command lines. done ends the task."},
	{Role: window.RoleUser, Text: "There is nothing to do. Answer with done, at once."},
}}

// holds compares the window of the server with the one that was asked for; told is
// what the server said of it beside a reply.
func (m *Model) holds(told int) Finding {
	has := m.Info().Window
	if told > 0 {
		has = min(has, told)
	}
	return seen(has >= m.cfg.Window, "%d tokens, asked for %d", has, m.cfg.Window)
}

// bound says whether a reply was decoded under the schema.
func bound(i Info, r window.Reply, err error) Finding {
	switch {
	case err != nil:
		return notKnown("%v", shortly(err))
	case !i.Constrained:
		return seen(false, "the server does not take a schema")
	case len(r.Calls) == 1 && r.Recovered == "":
		return seen(true, "a reply under the schema is one call: %s", clip(r.Calls[0].Cmd, 40))
	case len(r.Calls) > 0:
		return seen(true, "a reply under the schema is a call (%s)", r.Recovered)
	}
	return seen(false, "a reply under the schema was %q", clip(r.Text+r.Miss, 60))
}

// reused says whether the server read a prompt again that it had just read.
func reused(u window.Usage, err error) Finding {
	switch {
	case err != nil:
		return notKnown("%v", shortly(err))
	case u.Prompt == 0:
		return seen(false, "the server counts no tokens")
	case !u.CacheTold:
		return seen(false, "the server does not say what it still holds of a prompt")
	case u.Cached == 0:
		return seen(false, "0 of %d tokens of a prompt sent twice: it reads them again", u.Prompt)
	}
	return seen(true, "%d of %d tokens of a prompt sent twice", u.Cached, u.Prompt)
}

// shortly is why there was no answer, in the words of somebody who waits.
func shortly(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in the time that there is: it loads the model, or is slow")
	}
	return err
}

// prefix renders a request and the next one of the same session, and compares:
// what the second one does not begin with must be read again by the server.
func (m *Model) prefix(ctx context.Context) Finding {
	_, url, ok := strings.Cut(m.Info().Name, "@")
	if m.Info().Server != "llama-server" || !ok {
		return notKnown("%s does not render a prompt to be looked at", m.Info().Server)
	}
	m = &Model{cfg: m.cfg, info: m.info, wire: m.wire, form: m.form}
	if m.info.Native { // as a run would ask
		m.form = native
	}
	var texts [2]string
	for i, turns := range []int{2, 3} {
		text, err := m.rendered(ctx, url, window.Request{Messages: sample(turns)})
		if err != nil {
			return notKnown("%v", shortly(err))
		}
		texts[i] = text
	}
	same := common(texts[0], texts[1])
	if same == len(texts[0]) {
		return seen(true, "a request begins with the whole of the one before it")
	}
	return seen(false, "a request has %d%% of the one before it: the rest is read again at each step", same*100/max(len(texts[0]), 1))
}

// sample is a session after some turns.
func sample(turns int) []window.Message {
	all := inspected.Messages
	for i := range turns {
		id := fmt.Sprintf("obs_%d", i+1)
		all = append(all[:len(all):len(all)],
			window.Message{Role: window.RoleAssistant, Call: &window.Call{Cmd: "read a.txt"}, ID: id},
			window.Message{Role: window.RoleTool, Text: "nothing\nNow give the next command.", ID: id})
	}
	return all
}

// rendered is the prompt that llama-server makes of a request, without the words
// with which the model is made to begin.
func (m *Model) rendered(ctx context.Context, url string, r window.Request) (string, error) {
	body, err := m.Body(r)
	if err != nil {
		return "", err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return "", err
	}
	fields["add_generation_prompt"] = json.RawMessage("false")
	if body, err = json.Marshal(fields); err != nil {
		return "", err
	}
	status, answer, err := get(ctx, m.cfg.transport(), http.MethodPost, url+"/apply-template", "", body)
	if err != nil {
		return "", err
	}
	var p struct{ Prompt string }
	if status != http.StatusOK || json.Unmarshal(answer, &p) != nil || p.Prompt == "" {
		return "", fmt.Errorf("the server does not render a prompt (%d): %s", status, clip(errorText(answer), 80))
	}
	return p.Prompt, nil
}

// common is the length of the beginning that a and b share.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
