package act

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tether/memory"
)

var memCommand = &Command{
	Name:    "mem",
	Args:    "VERB [TEXT]",
	Summary: "search past outputs, notes",
	Detail: "mem search [--project] WORDS  in outputs and notes\nmem recall obs_N [A:B]  show it, or some lines\n" +
		"mem remember KEY TEXT   keep a note\nmem recall [KEY]        read notes\nmem forget KEY\nmem pin TEXT            keep it in view\nexample: mem recall obs_3 1:20",
	Text: 2,
	Raw:  true,
	Run:  runMem,
}

const (
	// hitsShown is how many passages a search shows: at 260 characters each, less
	// than the window cuts.
	hitsShown = 5
	// recallBytes is what one recall shows. The window cuts an output of more than
	// 2,400 characters, and what is left out of a recall could never be seen.
	recallBytes = 2000
	headShown   = 40 // bytes of the command that a passage came from
	notesShown  = 20
)

// verbs are what mem can do. Each gets the words behind its name.
var verbs = map[string]func(context.Context, *Env, []string) error{
	"search": memSearch, "recall": memRecall, "remember": memRemember, "forget": memForget, "pin": memPin,
}

// memVerbs are words that models take for a verb of mem.
var memVerbs = map[string]string{
	"add": "remember", "save": "remember", "store": "remember", "note": "remember", "write": "remember",
	"find": "search", "grep": "search", "query": "search", "delete": "forget", "remove": "forget", "rm": "forget",
}

// memHint is the line that was meant by words that begin with no verb of mem.
func (e *Env) memHint(args []string) string {
	if len(args) < 2 || memVerbs[args[0]] == "" || strings.Contains(e.typed, "\n") {
		return "mem recall"
	}
	verb, text := memVerbs[args[0]], strings.TrimSpace(Quote(args[1])+" "+e.typed)
	if first := strings.Fields(args[1]); verb == "remember" && e.typed == "" && len(first) > 0 {
		text = noteKey(first[0]) + " " + text
	}
	return "mem " + verb + " " + text
}

func runMem(ctx context.Context, env *Env, args []string) error {
	verb, ok := memSearch, false
	if len(args) > 0 {
		verb, ok = verbs[args[0]]
	}
	if !ok {
		return misuse(env.memHint(args), "mem needs one of: search, recall, remember, forget, pin")
	}
	if env.Memory == nil {
		return failed("", "there is no memory in this session")
	}
	return verb(ctx, env, args[1:])
}

// projectFlag asks for the search of all sessions, wherever it stands.
const projectFlag = "--project"

func memSearch(ctx context.Context, env *Env, args []string) error {
	words := strings.Fields(strings.Join(append(args, env.Stdin), " "))
	find, project := env.Memory.Search, slices.Contains(words, projectFlag)
	if project {
		find = env.Memory.SearchProject
		words = slices.DeleteFunc(words, func(w string) bool { return w == projectFlag })
	}
	query := strings.Join(words, " ")
	if query == "" {
		return misuse("mem recall", "what is to be found? usage: mem search [%s] WORDS", projectFlag)
	}
	hits, err := find(ctx, env.Session, query, hitsShown)
	if err != nil {
		return fmt.Errorf("search the memory: %w", err)
	}
	env.recall = len(hits) > 0
	for _, h := range hits {
		fmt.Fprintln(env.Out, hitLine(h, env.Session))
	}
	switch {
	case len(hits) > 0:
		env.Say("To read one: mem recall %s", hitPlace(hits[0], env.Session))
	case project:
		env.Say("Nothing in any session matches that; try fewer or other words.")
	default:
		env.Say("Nothing in this session matches that; try fewer or other words, or all sessions: mem search %s WORDS", projectFlag)
	}
	return nil
}

// hitLine is a hit as a model reads it: "obs_3 12:20 (read a.go): …".
func hitLine(h memory.Hit, session string) string {
	about, text := h.Head, h.Snippet
	if h.Note {
		about = "note"
	}
	if text == "" {
		text = "no output"
	}
	if len(about) > headShown {
		about = about[:runeStart(about, headShown)] + "…"
	}
	return fmt.Sprintf("%s (%s): %s", hitPlace(h, session), about, text)
}

// hitPlace is what recall takes to show a hit. Another session is named by the
// four letters at the end of its name.
func hitPlace(h memory.Hit, session string) string {
	place := h.ID
	if h.Session != session && !h.Note {
		name := h.Session
		if i := strings.LastIndexByte(name, '-'); i == len(name)-5 {
			name = name[i+1:]
		}
		place = name + "/" + place
	}
	if h.Note || h.First == 0 {
		return place
	}
	return fmt.Sprintf("%s %d:%d", place, h.First, h.Last)
}

// happened matches the names of what is kept without being asked.
var happened = regexp.MustCompile(`^(\S+/)?(obs|done)_\d+$`)

// almost matches what is no key and was meant as the name of an observation.
var almost = regexp.MustCompile(`^(?i:\[?obs\W?_?)?(\d+)\]?$`)

func memRecall(ctx context.Context, env *Env, args []string) error {
	words := append(args, strings.Fields(env.Stdin)...)
	if len(words) == 0 || env.Stdin != "" && env.typed == "" && len(args) == 0 && len(words) > 2 {
		return memNotes(ctx, env)
	}
	name, rest := words[0], ""
	if env.typed != "" || len(args) == 0 {
		rest = strings.Join(words[1:], " ")
	}
	if !happened.MatchString(name) {
		return memNote(ctx, env, name, rest)
	}
	o, err := env.Memory.Recall(ctx, env.Session, name)
	if errors.Is(err, memory.ErrNotFound) {
		return failed("mem recall", "there is no %s in the memory of this session", name)
	}
	if err != nil {
		return fmt.Errorf("recall %s: %w", name, err)
	}
	if rest == "" && (env.piped || len(o.Output) <= recallBytes) {
		env.recall = true
		fmt.Fprint(env.Out, lines([]string{o.Output}))
		env.Say("That is all of %s, %s", name, of(o))
		return nil
	}
	return env.page(name, of(o), o.Lines(), rest)
}

// of says what an observation is the output of.
func of(o memory.Observation) string {
	first, _, _ := strings.Cut(o.Cmd, "\n")
	if strings.HasPrefix(o.ID, "done_") {
		return "the report on: " + cutLine(first, maxMatch)
	}
	return "the output of: " + cutLine(first, maxMatch)
}

// lineRange is what models write: 3:9, 3-9, 3..9, 3 9, 3, and open ones as read
// takes them, 3: and :9.
var lineRange = regexp.MustCompile(`^(?:lines? )?(\d*)(?:( ?(?::|,|-|\.\.| to ) ?| )(\d*))?$`)

// page shows the lines of a text that asked names, all from the first on for "",
// as many as may be shown, and how to see the next.
func (e *Env) page(name, about string, all []string, asked string) error {
	from, to := 1, len(all)
	if asked != "" {
		m := lineRange.FindStringSubmatch(asked)
		if m == nil || m[1] == "" && (m[2] != ":" || m[3] == "") {
			return misuse("mem recall "+Quote(name), "%q is no range of lines; usage: mem recall %s A:B", cutLine(asked, maxMatch), name)
		}
		from, _ = strconv.Atoi(m[1])
		switch {
		case m[3] != "":
			to, _ = strconv.Atoi(m[3])
		case m[2] == "":
			to = from
		}
	}
	if from = max(from, 1); from > len(all) || to < from {
		return failed("mem recall "+Quote(name), "%s has lines 1:%d, and not %s", name, len(all), asked)
	}
	to = min(to, len(all))
	e.recall = true
	size, n := 0, from-1
	for n < to && (e.piped || n < from || size+len(all[n])+1 <= recallBytes) {
		size += len(all[n]) + 1
		fmt.Fprintln(e.Out, all[n])
		n++
	}
	switch more := min(to, n+n-from+1); {
	case n < to:
		e.Say("Those are lines %d:%d of %d; the next: mem recall %s %d:%d", from, n, len(all), name, n+1, more)
	default:
		e.Say("Those are lines %d:%d of %d of %s, %s", from, n, len(all), name, about)
	}
	return nil
}

func memNote(ctx context.Context, env *Env, key, rest string) error {
	n, err := env.Memory.Note(ctx, env.Session, key)
	if errors.Is(err, memory.ErrNotFound) {
		try := "mem recall"
		if m := almost.FindStringSubmatch(key); m != nil {
			try = "mem recall obs_" + m[1]
		}
		return failed(try, "nothing is remembered as %s in this session", cutLine(key, maxMatch))
	}
	if err != nil {
		return fmt.Errorf("recall %s: %w", key, err)
	}
	if rest == "" && (env.piped || len(n.Text) <= recallBytes) {
		env.recall = true
		fmt.Fprint(env.Out, lines([]string{n.Text}))
		env.Say("That is all of the note %s.", key)
		return nil
	}
	return env.page(key, "a note", memory.Lines(n.Text), rest)
}

// memNotes lists everything that is remembered: in full if that is little.
func memNotes(ctx context.Context, env *Env) error {
	notes, err := env.Memory.Notes(ctx, env.Session)
	if err != nil {
		return fmt.Errorf("list the notes: %w", err)
	}
	env.recall = len(notes) > 0
	size := 0
	for _, n := range notes {
		size += len(n.Key) + len(n.Text)
	}
	left := 0
	if size > recallBytes && !env.piped {
		left = max(len(notes)-notesShown, 0)
	}
	for _, n := range notes[left:] {
		text := strings.TrimRight(n.Text, "\n")
		if size > recallBytes {
			first, _, _ := strings.Cut(text, "\n")
			text = cutLine(first, recallBytes/notesShown-memoryKey)
		}
		fmt.Fprintf(env.Out, "%s: %s\n", n.Key, text)
	}
	switch {
	case len(notes) == 0:
		env.Say("Nothing is remembered in this session. To keep something: mem remember KEY TEXT")
	case left > 0:
		env.Say("Those are the newest %d notes of %d. To find another: mem search WORDS", notesShown, len(notes))
	case size > recallBytes:
		env.Say("Those are the beginnings of all notes. For all of one: mem recall %s", notes[0].Key)
	default:
		env.Say("Those are all notes of this session.")
	}
	return nil
}

// memoryKey is the room for a key and the words about a line that was cut.
const memoryKey = 40

func memRemember(ctx context.Context, env *Env, args []string) error {
	text := strings.TrimSpace(env.Stdin)
	switch {
	case len(args) == 0 && text == "":
		return misuse("mem recall", "what is to be kept? usage: mem remember KEY TEXT")
	case len(args) == 0:
		first, _, _ := strings.Cut(text, " ")
		return misuse("mem remember "+noteKey(first), "under which word? usage: mem remember KEY, and the text in stdin")
	case text == "" && strings.ContainsAny(args[0], " \n"):
		first, _, _ := strings.Cut(strings.TrimSpace(args[0]), " ")
		return misuse("mem remember "+noteKey(first)+" "+Quote(args[0]), "under which word? usage: mem remember KEY TEXT")
	case text == "":
		return misuse("mem recall", "what is to be kept as %s? usage: mem remember KEY TEXT", cutLine(args[0], maxMatch))
	}
	key := args[0]
	if word := strings.TrimRight(key, ":="); word != "" { // "note: text" is read as note
		key = word
	}
	n, err := env.Memory.Remember(ctx, env.Session, key, text)
	if bad, ok := errors.AsType[*memory.KeyError](err); ok {
		return misuse("mem remember "+noteKey(args[0])+" "+Quote(text), "%v; usage: mem remember KEY TEXT", bad)
	}
	if err != nil {
		return fmt.Errorf("keep a note: %w", err)
	}
	env.Say("It is kept. To read it: mem recall %s", Quote(n.Key))
	return nil
}

// noteKey is a key made of a word that is none or may be none.
func noteKey(word string) string {
	word = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' {
			return r
		}
		return -1
	}, word)
	if word = strings.Trim(word[:min(len(word), 20)], "-"); word == "" {
		return "note"
	}
	return word
}

func memForget(ctx context.Context, env *Env, args []string) error {
	if len(args) == 0 {
		args = strings.Fields(env.Stdin)
	}
	if len(args) == 0 {
		return misuse("mem recall", "what is to be forgotten? usage: mem forget KEY")
	}
	err := env.Memory.Forget(ctx, env.Session, args[0])
	switch {
	case errors.Is(err, memory.ErrNotFound) && happened.MatchString(args[0]):
		return failed("mem recall", "%s happened; only notes can be forgotten", args[0])
	case errors.Is(err, memory.ErrNotFound):
		return failed("mem recall", "nothing is remembered as %s in this session", cutLine(args[0], maxMatch))
	case err != nil:
		return fmt.Errorf("forget a note: %w", err)
	}
	env.Say("It is forgotten.")
	return nil
}
