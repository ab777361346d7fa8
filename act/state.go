package act

import (
	"crypto/sha256"
	"encoding/hex"
)

// A State is what a Shell remembers from one act to the next. A session that is
// taken up again needs it: a model may replace a file that it has seen, and a
// command runs where the one before it left off.
type State struct {
	Dir  string            `json:"dir,omitempty"`  // the working directory, relative to the workspace
	Seen map[string]string `json:"seen,omitempty"` // SHA-256 in hex of each file as the model last saw it
}

// State returns a copy of what s remembers.
func (s *Shell) State() State {
	st := State{Dir: s.Env.Dir, Seen: map[string]string{}}
	for name, sum := range s.Env.seen {
		st.Seen[name] = hex.EncodeToString(sum[:])
	}
	return st
}

// Restore makes s remember st. A hash that is none is left out: its file then
// counts as unseen, which costs the model one look.
func (s *Shell) Restore(st State) {
	s.Env.Dir = st.Dir
	for name, sum := range st.Seen {
		if raw, err := hex.DecodeString(sum); err == nil && len(raw) == sha256.Size {
			s.Env.seen[name] = [sha256.Size]byte(raw)
		}
	}
}
