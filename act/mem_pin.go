package act

import (
	"context"
	"fmt"
	"strings"

	"tether/memory"
)

// What is pinned is paid for with every request that follows: eight texts of 400
// bytes are a seventh of a window of 8k. The window keeps as many.
const (
	maxPin  = 400 // bytes
	maxPins = 8
)

// pinKey begins the key of the note that a pinned text is as well.
const pinKey = "pin_"

// memPin keeps a text in view. It stands in the call, which the window shows as it
// is and never folds; so that it can be found again it is a note too.
func memPin(ctx context.Context, env *Env, args []string) error {
	words := args
	if env.typed != "" || len(args) == 0 {
		words = append(words, env.Stdin)
	}
	text := strings.TrimSpace(strings.Join(words, " "))
	switch {
	case text == "":
		return misuse("mem recall", "what is to stay in view? usage: mem pin TEXT")
	case len(text) > maxPin:
		return failed("mem remember "+noteKey(text)+" "+Quote(cutLine(text, maxMatch)), "that has %d bytes, and %d stay in view; pin the gist, or keep it as a note", len(text), maxPin)
	}
	notes, err := env.Memory.Notes(ctx, env.Session)
	if err != nil {
		return fmt.Errorf("list the notes: %w", err)
	}
	taken := map[string]memory.Note{}
	for _, n := range notes {
		if strings.HasPrefix(n.Key, pinKey) {
			taken[n.Key] = n
			if n.Text == text {
				env.Say("That is in view already, as %s.", n.Key)
				return nil
			}
		}
	}
	for i := range maxPins {
		key := fmt.Sprintf("%s%d", pinKey, i+1)
		if _, ok := taken[key]; ok {
			continue
		}
		if _, err := env.Memory.Remember(ctx, env.Session, key, text); err != nil {
			return fmt.Errorf("keep a note: %w", err)
		}
		if env.pin = true; env.fed { // then it does not stand in the call
			fmt.Fprintln(env.Out, text)
		}
		env.Say("It stays in view, and is the note %s.", key)
		return nil
	}
	return failed("mem recall", "%d texts are in view already, and no more can be; keep it with mem remember KEY TEXT", maxPins)
}
