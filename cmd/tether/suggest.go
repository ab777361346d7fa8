package main

import "fmt"

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
