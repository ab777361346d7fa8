package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tether/act"
	"tether/harness/llm"
)

// didYouMean names the word of all that is nearest to word, as the end of a
// sentence; it is empty if none is near.
func didYouMean(word string, all []string) string {
	best, at := "", max(3, len(word)/2+1) // two letters swapped are two apart
	for _, w := range all {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d < at && d < len(word) { // of which something is left
			best, at = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// wrongVerb is the error about words behind a command that has verbs: forms are all
// that it takes, such as "get NAME".
func wrongVerb(command string, args, forms []string) error {
	usage := "\nusage: tether " + command + " " + strings.Join(forms, " | ")
	var verbs []string
	for _, form := range forms {
		verb, rest, _ := strings.Cut(form, " ")
		switch {
		case verb != args[0]:
		case rest == "":
			return usagef("%s %s takes no further word%s", command, verb, usage)
		default:
			return usagef("%s %s takes one %s%s", command, verb, rest, usage)
		}
		verbs = append(verbs, verb)
	}
	return usagef("there is no %s command %q%s%s", command, args[0], didYouMean(args[0], verbs), usage)
}

// noWords refuses words behind a command that takes none.
func noWords(command string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes no word, and there is %q\nsee: tether help %s", command, args[0], command)
}

// noCommand is the error about a command that there is not. A model has some that
// people have not.
func noCommand(name string, all []string) error {
	for _, c := range act.Builtins() {
		if c.Name == name {
			return usagef("there is no command %q: it is one that the model has\ntry it as the model would: tether act %q", name, name+" --help")
		}
	}
	return usagef("there is no command %q%s\nlist them with: tether help commands", name, didYouMean(name, all))
}

// distance is the number of letters to insert, delete or replace to turn a
// into b (Levenshtein), by the usual table of one row.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// suggestModel puts the model that was probably meant into the error about one that
// is not there: the one whose name begins like that, or the nearest.
func suggestModel(err error) {
	missing, ok := errors.AsType[*llm.MissingModelError](err)
	if !ok || missing.Model == "" {
		return
	}
	best := ""
	for _, name := range missing.Installed {
		if strings.HasPrefix(name, missing.Model) || strings.HasSuffix(missing.Model, "/") && strings.Contains(name, missing.Model) {
			best = fmt.Sprintf("; did you mean %s?", name)
			break
		}
	}
	if best == "" {
		best = didYouMean(missing.Model, missing.Installed)
	}
	scheme, rest, named := strings.Cut(missing.Model, "/")
	if best == "" && named {
		if forms := []string{"ollama", "llama", "openai"}; !slices.Contains(forms, scheme) {
			if near := didYouMean(scheme, forms); near != "" {
				best = strings.TrimSuffix(near, "?") + "/" + rest + "?"
			}
		}
	}
	if best != "" {
		missing.Repair = strings.TrimPrefix(best, "; ") + "\n" + strings.SplitN(missing.Repair, "\n", 2)[0]
	}
	if n := len(missing.Installed); n > maxInstalled { // a server may have hundreds
		missing.Installed = append(missing.Installed[:maxInstalled:maxInstalled], fmt.Sprintf("and %d more", n-maxInstalled))
	}
}

// maxInstalled is how many models an error lists: a line of a terminal or two.
const maxInstalled = 5
