package act

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tether/memory"
)

var memCommand = &Command{
	Name:    "mem",
	Args:    "VERB [TEXT]",
	Summary: "search past outputs, notes",
	Detail: "mem search WORDS    find outputs and notes\nmem recall obs_N    show an output in full\n" +
		"mem remember TEXT   keep a note for later sessions\nmem notes           list the notes\nexample: mem recall obs_3",
	Text: 1,
	Run:  runMem,
}

// How much mem lists: a screen, not the store.
const (
	maxHits  = 8
	maxNotes = 20
)

func runMem(ctx context.Context, env *Env, args []string) error {
	verbs := map[string]func(context.Context, *Env, string) error{
		"search": memSearch, "recall": memRecall, "remember": memRemember, "notes": memNotes,
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return misuse("mem notes", "mem needs one of: search, recall, remember, notes")
	}
	if env.Memory == nil {
		return failed("", "there is no memory in this session")
	}
	return verbs[args[0]](ctx, env, strings.TrimSpace(env.Stdin))
}

func memSearch(ctx context.Context, env *Env, query string) error {
	if query == "" {
		return misuse("mem notes", "what is to be found? usage: mem search WORDS")
	}
	hits, err := env.Memory.Search(ctx, env.Session, query, maxHits)
	if err != nil {
		return fmt.Errorf("search the memory: %w", err)
	}
	for _, h := range hits {
		fmt.Fprintf(env.Out, "%s %s\n", h.ID, h.Snippet)
	}
	if len(hits) == 0 {
		env.Say("Nothing in the memory matches %s.", query)
		return nil
	}
	env.Say("For all of one: mem recall %s", hits[0].ID)
	return nil
}

func memRecall(ctx context.Context, env *Env, id string) error {
	if id == "" {
		return misuse("mem notes", "which one? usage: mem recall obs_N")
	}
	o, err := env.Memory.Recall(ctx, env.Session, id)
	if errors.Is(err, memory.ErrNotFound) {
		return failed("mem notes", "there is no %s in the memory of this session", id)
	}
	if err != nil {
		return fmt.Errorf("recall %s: %w", id, err)
	}
	fmt.Fprint(env.Out, lines([]string{o.Output}))
	if o.Cmd != "" {
		env.Say("That is all of %s, the output of: %s", id, cutLine(o.Cmd, maxMatch))
	} else {
		env.Say("That is all of %s.", id)
	}
	return nil
}

func memRemember(ctx context.Context, env *Env, text string) error {
	if text == "" {
		return misuse("mem notes", "what is to be kept? usage: mem remember TEXT")
	}
	n, err := env.Memory.Add(ctx, text)
	if err != nil {
		return fmt.Errorf("keep a note: %w", err)
	}
	env.Say("It is kept as note_%d.", n.ID)
	return nil
}

func memNotes(ctx context.Context, env *Env, _ string) error {
	notes, err := env.Memory.Notes(ctx, maxNotes)
	if err != nil {
		return fmt.Errorf("list the notes: %w", err)
	}
	for _, n := range notes {
		first, _, _ := strings.Cut(n.Text, "\n")
		fmt.Fprintf(env.Out, "note_%d %s\n", n.ID, cutLine(first, maxMatch))
	}
	switch len(notes) {
	case 0:
		env.Say("There are no notes yet.")
	case maxNotes:
		env.Say("Those are the newest %d notes.", maxNotes)
	default:
		env.Say("Those are all notes.")
	}
	return nil
}
