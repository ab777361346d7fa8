package harness

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// TestNetwork: the first of each is committed at once, the rest counted at the
// end of the command, and a refused host is told once in the session.
func TestNetwork(t *testing.T) {
	var n Network
	n.Add(Asked{Host: "early", Allowed: true}) // before anybody listens
	var logged []Asked
	n.listen(func(a Asked) error { logged = append(logged, a); return nil })
	bad, good := Asked{Host: "bad", Port: 80, Why: "no"}, Asked{Host: "good", Port: 443, Allowed: true, Why: "listed"}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { n.Add(bad); n.Add(good) })
	}
	all.Wait()
	if len(logged) != 2 {
		t.Errorf("logged at once: %v, want each once", logged)
	}
	refused, err := n.flush()
	if err != nil || len(refused) != 1 || refused[0] != bad {
		t.Errorf("refused %v, %v, want %v", refused, err, bad)
	}
	if len(logged) != 4 || logged[2].Times != 20 || logged[3].Times != 20 {
		t.Errorf("logged %v, want the counts behind", logged)
	}
	n.Add(bad)
	if refused, _ := n.flush(); len(refused) != 0 || len(logged) != 5 {
		t.Errorf("the next command: refused %v, logged %v", refused, logged[4:])
	}
}

// TestNetworkIsBounded: a command that asks for every name there is does not
// fill the log.
func TestNetworkIsBounded(t *testing.T) {
	var n Network
	logged := 0
	n.listen(func(Asked) error { logged++; return errors.New("the disk is full") })
	for i := range 5000 {
		n.Add(Asked{Host: fmt.Sprint("h", i)})
	}
	refused, err := n.flush()
	if err == nil || logged > maxAsked+2 || len(refused) > maxAsked {
		t.Errorf("%d events, %d told, error %v; want at most %d and the error", logged, len(refused), err, maxAsked)
	}
	if none, err := (*Network)(nil).flush(); none != nil || err != nil {
		t.Errorf("nobody listens: %v, %v", none, err)
	}
}
