//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Variables of the environment that say what happens where.
const (
	places = "TETHER_FAILPOINT" // "memory/commit=kill@3,memory/begin=error"
	bugs   = "TETHER_BUG"       // "ack-before-commit,rerun-unknown"
)

// A point is one place and what happens there.
type point struct {
	action string
	at     int // at which passage, from 1; 0 is every one
	passed int
}

var (
	mu     sync.Mutex
	points = parse(os.Getenv(places))
)

// parse reads TETHER_FAILPOINT. A test that cannot be read must not pass: it is
// the end of the process.
func parse(text string) map[string]*point {
	all := map[string]*point{}
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		name, action, ok := strings.Cut(item, "=")
		action, at, counted := strings.Cut(action, "@")
		p := &point{action: action}
		var err error
		if counted {
			p.at, err = strconv.Atoi(at)
		}
		if !ok || err != nil {
			panic(places + ": " + item)
		}
		all[name] = p
	}
	return all
}

// Here is the place called name. What was asked for happens at it: kill ends
// the process as a power cut would, stop halts it until SIGCONT, error returns
// an error.
func Here(name string) error {
	mu.Lock()
	p := points[name]
	due := false
	if p != nil {
		p.passed++
		due = p.at == 0 || p.at == p.passed
	}
	mu.Unlock()
	if !due {
		return nil
	}
	switch p.action {
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "stop":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return nil
	case "error":
		return fmt.Errorf("failpoint %s", name)
	}
	panic(places + ": no action " + p.action)
}

// Bug says whether the known bug called name is to be there, so that a test can
// show that it would be found.
func Bug(name string) bool {
	for b := range strings.SplitSeq(os.Getenv(bugs), ",") {
		if b == name {
			return true
		}
	}
	return false
}
