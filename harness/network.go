package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"tether/act"
)

// Asked is one connection that a command asked the network for, and the answer.
// Its JSON is an event of the log.
type Asked struct {
	Host    string `json:"host"` // as asked for; empty if that was no host name
	Port    int    `json:"port,omitempty"`
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`   // the rule, or what was wrong
	Times   int    `json:"times,omitempty"` // in one command, if more than once
}

// String says in a line what was asked for and what came of it.
func (a Asked) String() string {
	word, host := "refused", cmp.Or(a.Host, "what is no host name")
	if a.Allowed {
		word = "allowed"
	}
	if a.Port > 0 {
		host = fmt.Sprintf("%s:%d", host, a.Port)
	}
	why := strings.TrimPrefix(a.Why, fmt.Sprintf("%s port %d is ", a.Host, a.Port)) // it stands there already
	return fmt.Sprintf("%s %s, %s", host, word, why)
}

// maxAsked is how many different connections of one command are logged one by
// one. An honest build asks for ten; a command that tries every name there is must
// not fill the disk.
const maxAsked = 300

// A Network books what commands ask the network for. It may be told from any
// goroutine; the zero value is ready to use.
type Network struct {
	mu      sync.Mutex
	log     func(Asked) error // nil: nobody listens yet
	times   map[Asked]int     // in this command
	refused []Asked           // of which nobody was told yet
	told    map[string]bool   // hosts
	err     error             // of the log
}

// Add books one answer. What was not asked for before in this command is
// committed before Add returns.
func (n *Network) Add(a Asked) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.times == nil {
		n.times, n.told = map[Asked]int{}, map[string]bool{}
	}
	if len(n.times) >= maxAsked && n.times[a] == 0 {
		a = Asked{Why: fmt.Sprintf("asked for after the first %d", maxAsked)}
	}
	if n.times[a]++; n.times[a] > 1 {
		return
	}
	if n.log != nil {
		n.err = errors.Join(n.err, n.log(a))
	}
	if !a.Allowed && !n.told[a.Host] && len(n.told) < maxAsked {
		n.told[a.Host] = true
		n.refused = append(n.refused, a)
	}
}

// listen makes log the place where answers are committed.
func (n *Network) listen(log func(Asked) error) {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.log = log
	}
}

// flush ends a command: how often it asked the same is committed, and the hosts
// that were refused for the first time in the session are returned.
func (n *Network) flush() ([]Asked, error) {
	if n == nil {
		return nil, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for a, times := range n.times {
		if a.Times = times; times > 1 && n.log != nil {
			n.err = errors.Join(n.err, n.log(a))
		}
	}
	clear(n.times)
	refused, err := n.refused, n.err
	n.refused, n.err = nil, nil
	return refused, err
}

// watch has the answers of the network committed to the log of this run.
func (r *run) watch() {
	r.Network.listen(func(a Asked) error { return r.log(context.Background(), kindNetwork, a) })
}

// report tells the user what the model is not told of a command: what it left
// for other programs to run or believe, and which hosts it was refused. Each is
// told once.
func (r *run) report(res act.Result) {
	for _, found := range res.Found {
		if !slices.Contains(r.outcome.Planted, found) {
			r.outcome.Planted = append(r.outcome.Planted, found)
			r.tell(Event{Type: EventWarning, N: r.steps, Output: found})
		}
	}
	refused, err := r.Network.flush()
	r.logErr = errors.Join(r.logErr, err)
	for _, a := range refused {
		r.tell(Event{Type: EventWarning, N: r.steps, Output: "network: " + a.String()})
	}
}
