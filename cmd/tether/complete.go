package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tether/act"
	"tether/harness/llm"
	"tether/memory"
	"tether/skills"
)

// completeCommand is what the completions of all four shells ask: they know
// nothing themselves, so that they are never out of date. It is a function, as the
// table of commands is, because it reads that table.
func completeCommand() *subcommand {
	return &subcommand{
		Name:    "__complete",
		Args:    "WORD…",
		Summary: "print what the last word can become",
		Detail: `Prints what can stand for the last WORD, a line each: the word, a tab, and what it
means. A line ":files" or ":folders" leaves that to the shell. --line reads the
words from a command line up to the cursor.`,
		Hidden: true,
		Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
			line := fs.String("line", "", "the command line up to the cursor")
			breaks := fs.String("breaks", "", "characters at which the shell begins a new word")
			return func(ctx context.Context, p *program, args []string) error {
				if fs.Changed("line") {
					args = lineWords(*line)
				}
				if len(args) == 0 {
					args = []string{""}
				}
				last := args[len(args)-1]
				gone := strings.LastIndexAny(last, *breaks) + 1
				for _, c := range completions(ctx, p, args) {
					if c.word[0] != ':' {
						c.word = c.word[min(gone, len(c.word)):]
					}
					fmt.Fprintln(p.Out, strings.TrimRight(c.word+"\t"+c.means, "\t"))
				}
				return nil
			}
		},
	}
}

// A candidate is what a word can become.
type candidate struct{ word, means string }

// What a shell completes better itself.
var (
	someFile   = []candidate{{":files", ""}}
	someFolder = []candidate{{":folders", ""}}
)

// lineWords are the words of a command line after its first one, as far as it is
// typed: the last may be empty, and a quotation may be open.
func lineWords(line string) []string {
	words, open := []string{""}, rune(0)
	for _, r := range line {
		last := &words[len(words)-1]
		switch {
		case r == open:
			open = 0
		case open == 0 && (r == '\'' || r == '"'):
			open = r
		case open == 0 && (r == ' ' || r == '\t'):
			if *last != "" {
				words = append(words, "")
			}
		default:
			*last += string(r)
		}
	}
	return words[1:]
}

// completions are the candidates for the last of words, which are what stands
// behind the name of the program.
func completions(ctx context.Context, p *program, words []string) []candidate {
	last := words[len(words)-1]
	if len(words) == 1 {
		return beginning(last, commandWords())
	}
	if words[0] == "help" {
		return beginning(last, append(commandWords(), topicWords()...))
	}
	c := find(words[0])
	if c == nil {
		return nil
	}
	fs := c.flags()
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "-") {
		all := flagValues(ctx, p, flagOf(fs, name), value, folderOf(words))
		for i := range all {
			if all[i].word[0] != ':' {
				all[i].word = name + "=" + all[i].word
			}
		}
		return all
	}
	if f := flagOf(fs, words[len(words)-2]); f != nil && f.NoOptDefVal == "" && len(words) > 2 {
		return flagValues(ctx, p, f, last, folderOf(words))
	}
	if strings.HasPrefix(last, "-") {
		var all []candidate
		fs.VisitAll(func(f *pflag.Flag) { all = append(all, candidate{"--" + f.Name, f.Usage}) })
		return beginning(last, all)
	}
	return positional(ctx, p, c, words)
}

// flagOf is the flag that a word names; nil if it names none.
func flagOf(fs *pflag.FlagSet, word string) *pflag.Flag {
	switch {
	case strings.HasPrefix(word, "--"):
		return fs.Lookup(word[2:])
	case len(word) == 2 && word[0] == '-':
		return fs.ShorthandLookup(word[1:])
	}
	return nil
}

// beginning are those of all that begin with what is there. A candidate that the
// shell takes over is always one.
func beginning(word string, all []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.word[0] != ':' && !strings.HasPrefix(c.word, word) })
}

// plainWords are candidates without a meaning.
func plainWords(words ...string) []candidate {
	var all []candidate
	for _, w := range words {
		all = append(all, candidate{word: w})
	}
	return all
}

func commandWords() []candidate {
	all := []candidate{{"help", "explain a command"}}
	for _, c := range subcommands() {
		if !c.Hidden {
			all = append(all, candidate{c.Name, c.Summary})
		}
	}
	return all
}

func topicWords() []candidate {
	var all []candidate
	for _, t := range topics() {
		all = append(all, candidate{word: t.Name})
	}
	return all
}

// flagValues are the candidates for the value of a flag.
func flagValues(ctx context.Context, p *program, f *pflag.Flag, word, dir string) []candidate {
	if f == nil {
		return nil
	}
	switch f.Name {
	case "model":
		return beginning(word, modelWords(ctx))
	case "sandbox":
		return beginning(word, plainWords(profiles...))
	case "network":
		return beginning(word, plainWords(networks...))
	case "constrain":
		return beginning(word, plainWords("auto", "on", "off"))
	case "color":
		return beginning(word, plainWords("auto", "always", "never"))
	case "skill":
		return beginning(word, skillWords(p, dir))
	case "report":
		return beginning(word, plainWords("junit=", "markdown=", "github"))
	case "gates":
		return beginning(word, plainWords("on", "off", "both"))
	case "from":
		return beginning(word, plainWords("auto", "ollama", "url", "packages"))
	case "tools":
		i := strings.LastIndexByte(word, ',') + 1
		var all []candidate
		for _, c := range act.Builtins() {
			all = append(all, candidate{word[:i] + c.Name, c.Summary})
		}
		return beginning(word, all)
	case "dir":
		return someFolder
	}
	if f.Name == "keep" && f.DefValue != "" { // that of batch; with bench it is a folder
		return beginning(word, plainWords("all", "failed", "none"))
	}
	if f.Value.Type() == "string" || f.Value.Type() == "FILE" || f.Value.Type() == "stringArray" {
		return someFile
	}
	return nil
}

// folderOf is the workspace that the words of a command line name.
func folderOf(words []string) string {
	for i, w := range words[:len(words)-1] {
		if w == "-C" || w == "--dir" {
			return words[i+1]
		}
		if dir, ok := strings.CutPrefix(w, "--dir="); ok {
			return dir
		}
	}
	return "."
}

// positional are the candidates for a word that is no flag.
func positional(ctx context.Context, p *program, c *subcommand, words []string) []candidate {
	last, n := words[len(words)-1], len(words)-1
	switch c.Name {
	case "show", "resume", "send", "stop", "fork", "export", "misses", "stats":
		if n == 1 {
			return beginning(last, sessionWords(ctx, p, folderOf(words)))
		}
	case "models":
		if n == 1 {
			return beginning(last, plainWords("list", "get", "serve", "show"))
		}
		return beginning(last, plainWords(modelNames()...))
	case "config":
		return beginning(last, plainWords(configWords...))
	case "skill":
		if n == 1 {
			return beginning(last, plainWords("list", "show"))
		}
		return beginning(last, skillWords(p, folderOf(words)))
	case "completion":
		return beginning(last, plainWords(shellNames()...))
	case "bench":
		if n == 1 {
			return beginning(last, plainWords("tasks", "window", "speed", "self"))
		}
		return someFile
	case "batch", "import", "backup":
		return someFile
	}
	return nil
}

// patienceOfTab is how long somebody who pressed Tab waits for a server.
const patienceOfTab = 400 * time.Millisecond

// modelWords are the models that could be used now, and the forms of names.
func modelWords(ctx context.Context) []candidate {
	ctx, cancel := context.WithTimeout(ctx, patienceOfTab)
	defer cancel()
	all := plainWords(llm.Available(ctx)...)
	for _, form := range []string{"ollama/", "llama/", "openai/", "anthropic/", "gguf:", "script:"} {
		if !slices.ContainsFunc(all, func(c candidate) bool { return strings.HasPrefix(c.word, form) }) {
			all = append(all, candidate{word: form})
		}
	}
	return all
}

// maxTabbed is how many sessions are offered: the newest ones of a screen.
const maxTabbed = 20

// sessionWords are the newest sessions of a workspace. One that cannot be read
// has none, without a word: somebody is typing.
func sessionWords(ctx context.Context, p *program, dir string) []candidate {
	_, file, err := places(p.Getenv, dir)
	if err != nil {
		return nil
	}
	store, err := memory.OpenReadOnly(ctx, file, stateOptions(p)...)
	if err != nil {
		return nil
	}
	defer store.Close()
	sessions, err := store.Sessions(ctx, maxTabbed)
	if err != nil {
		return nil
	}
	var all []candidate
	for _, s := range sessions {
		all = append(all, candidate{s.ID, oneLine(s.Task, 50)})
	}
	return all
}

// skillWords are the skills that a run here would have.
func skillWords(p *program, dir string) []candidate {
	library, err := skills.Open(filepath.Join(filepath.Dir(userConfig(p.Getenv)), "skills"), os.DirFS(dir))
	if err != nil {
		return nil
	}
	var all []candidate
	for _, s := range library.List() {
		all = append(all, candidate{s.Name, oneLine(s.Description, 50)})
	}
	return all
}
