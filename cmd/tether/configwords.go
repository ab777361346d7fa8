package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// fromDecoder turns what the decoder of TOML says of a value of the wrong type
// into a sentence about the key.
func fromDecoder(key, said string) string {
	if strings.HasPrefix(said, "type mismatch for ") { // a value in the place of a section, and the name of a type of Go
		return fmt.Sprintf("%s: it is a section; write [%s] on a line of its own", key, key)
	}
	m := typesDiffer.FindStringSubmatch(said)
	if m == nil {
		return key + ": " + said
	}
	return fmt.Sprintf("%s: it is %s and takes %s", key, cmp.Or(typeWords[m[1]], "something else"), cmp.Or(typeWords[m[2]], "something else"))
}

// fromParser is what the parser of TOML says, in the form of all that tether says:
// a sentence that begins small and has no full stop. A value that reads itself, a
// time, is told with its key.
func fromParser(e toml.ParseError) string {
	said := strings.TrimSuffix(e.Message, ".")
	if said != "" {
		said = strings.ToLower(said[:1]) + said[1:]
	}
	if strings.Contains(said, notTime) && e.LastKey != "" {
		return e.LastKey + ": " + said
	}
	return said
}

// typesDiffer is how the decoder words it: it has no type for that error.
var typesDiffer = regexp.MustCompile(`^incompatible types: TOML value has type (\S+); destination has type (\S+)$`)

// typeWords are words for the types of the decoder, those of a value and those of
// the place that it should go to.
var typeWords = map[string]string{
	"string": "a text", "integer": "a whole number", "int64": "a number", "float": "a number", "float64": "a number with a point",
	"bool": "true or false", "boolean": "true or false", "slice": "a list", "array": "a list", "map": "a table", "table": "a table",
	"local-time": "a time of day", "datetime": "a date", "primitive": "a text",
}

// suggestKey is the key that was meant by one that there is not. Who forgets the
// section in which a key stands, or misspells that, is told the whole of it.
func suggestKey(key string) string {
	all := append(configKeys(), tableKeys()...)
	for _, k := range all {
		if strings.HasSuffix(k, "."+key) {
			section, name, _ := strings.Cut(k, ".")
			return fmt.Sprintf("; did you mean %s, below [%s]?", name, section)
		}
	}
	if strings.Contains(key, ".") {
		return didYouMean(key, all)
	}
	var sections []string
	for _, k := range all {
		section, _, _ := strings.Cut(k, ".")
		sections = append(sections, section)
	}
	return didYouMean(key, sections)
}

// notSettings are the variables that are no setting of a file: tether help environment.
var notSettings = []string{"TETHER_MODEL", "TETHER_CONFIG", "TETHER_STATE", "TETHER_STATE_ANYWHERE", "TETHER_MODELS", "TETHER_LLAMA_URL"}

// misspelt refuses a variable that was meant for tether and is not: one below a
// section that has no such key, or one a letter or two away from a name. A job
// whose limit has no effect is seen too late. Others with that beginning, such as
// TETHER_REPOSITORY, are somebody's own.
func misspelt(environ []string) error {
	known := slices.Clone(notSettings)
	var sections []string
	for _, key := range configKeys() {
		known = append(known, variableOf(key))
		section, _, _ := strings.Cut(variableOf(key)[len("TETHER_"):], "_")
		sections = append(sections, "TETHER_"+section+"_")
	}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "TETHER_") || value == "" || slices.Contains(known, name) {
			continue
		}
		near := didYouMean(name, known)
		below := slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(name, s) })
		close := slices.ContainsFunc(known, func(k string) bool { return distance(name, k) <= 2 })
		if below || close {
			return &configError{File: name, Msg: "there is no such setting" + near + "\nlist them with: tether config show --origin"}
		}
	}
	return nil
}
