package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tether/harness/llm"
)

// didYouMean names the word of all that is nearest to word, as the end of a
// sentence; it is empty if none is near.
func didYouMean(word string, all []string) string {
	best, at := "", max(3, len(word)/2+1) // two letters swapped are two apart
	for _, w := range all {
		if d := distance(word, w); d < at {
			best, at = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
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
