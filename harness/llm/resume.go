package llm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// As returns c with what decides the bytes of a request as it is in wire, which
// is Model.Wire of an earlier model: temperature, seed, the longest reply and the
// window. So a session that is taken up again asks as it did before.
func (c Config) As(wire json.RawMessage) (Config, error) {
	var w wiring
	if err := json.Unmarshal(wire, &w); err != nil {
		return c, fmt.Errorf("how the session's model was asked cannot be read: %w", err)
	}
	c.Temperature, c.Seed, c.MaxTokens, c.Window = w.Temperature, w.Seed, w.MaxTokens, w.Window
	return c, nil
}

// Continue takes up the form in which calls were asked for last, and how many
// replies in a row have held none since: shape is that of the newest Reply. What
// the settings say of the form counts more, and what the server says. A script
// goes on after the replies that it gave.
func (m *Model) Continue(shape string, misses, replies int) {
	if m.skip != nil {
		m.skip(replies)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restore(shape)
	if m.info.Server == "script" || m.cfg.Constrain != "auto" {
		return
	}
	was, _, _ := strings.Cut(shape, " ")
	if form(was) == constrained {
		m.constrain()
	}
	m.misses = misses
}
