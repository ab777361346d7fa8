package llm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	window "tether/context"
)

// TestBodiesGrow: over 1,000 random histories, on every wire and in every form, the
// messages of each request begin with those of the one before, byte for byte, unless
// something was folded in between.
func TestBodiesGrow(t *testing.T) {
	var models []*Model
	for _, p := range providers {
		for _, mode := range []string{"on", "off"} {
			m, _ := p.open(t, func(c *Config) { c.Constrain = mode })
			models = append(models, m)
		}
	}
	kept, folded := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := window.Default
		b.Window, b.Mode = 3000+r.IntN(6000), []window.Mode{window.Batch, window.EveryTurn, window.Off}[seed%3]
		p := window.Parts{System: "You work by commands.", Task: "Do <it> & \"that\"."}
		m, before := models[int(seed/3)%len(models)], ""
		for i := range 8 {
			p.Turns = append(p.Turns, anyTurn(r, fmt.Sprintf("obs_%d", i+1)))
			was := p.Folds
			p.Folds = b.Next(p)
			req := window.Request{Messages: b.Messages(p)}
			body, err := m.Body(req)
			if err != nil {
				t.Fatal(err)
			}
			now := string(body[:messagesEnd(t, string(body))])
			if was == p.Folds && !strings.HasPrefix(now, before) {
				t.Fatalf("%s, seed %d, turn %d: does not begin with the one before:\n%s\n%s", m.Info().Name, seed, i, before, now)
			}
			before = now
			if was == p.Folds {
				kept++
			} else {
				folded++
			}
		}
	}
	if kept < 3000 || folded < 500 {
		t.Errorf("%d requests went on from the one before, %d were folded: too few of one sort", kept, folded)
	}
}

// anyTurn is a turn with everything in it that an encoding could change.
func anyTurn(r *rand.Rand, id string) window.Turn {
	words := []string{"plain ", "<b>&amp; ", "\"quoted\" ", "back\\slash ", "ümläut ", "日本 ", "line\n", "tab\t", "\u2028", "\x00", "<|im_end|> ", "[INST] ", "\xff"}
	var out strings.Builder
	for range r.IntN(400) {
		out.WriteString(words[r.IntN(len(words))])
	}
	t := window.Turn{ID: id, Call: window.Call{Cmd: "write a.txt", Stdin: out.String()[:min(out.Len(), r.IntN(200))]}, Output: out.String(), Next: "Next command?"}
	if r.IntN(5) == 0 {
		t.Call, t.Said = window.Call{}, "I would look <first>."
	}
	t.Call.Stdin = strings.ToValidUTF8(t.Call.Stdin, "")
	return t
}
