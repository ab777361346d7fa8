package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// taken names what a flag takes, where neither the flag's name nor its type does.
var taken = map[string]string{
	"allow-net": "HOST", "attach": "FILE", "constrain": "WHEN", "dir": "DIR", "from": "PLACE",
	"gates": "WHEN", "html": "FILE", "junit": "FILE", "markdown": "FILE", "model": "MODEL",
	"network": "REACH", "out": "FILE", "output": "FILE", "protect": "PATTERN", "report": "FORM",
	"resume": "FILE", "rows": "FILE", "sandbox": "PROFILE", "schema": "FILE", "shard": "K/N", "skill": "NAME", "stdin": "FILE",
	"svg": "FILE", "tools": "LIST", "verify": "CMD",
}

// takes is the word for what f takes, as help and the manual page show it: "" for
// a switch. The words of the library are names of Go types.
func takes(f *pflag.Flag) string {
	typ := f.Value.Type()
	switch word := taken[f.Name]; {
	case typ == "bool":
		return ""
	case word != "":
		return word
	case typ == "int", typ == "uint64":
		return "N"
	case typ == "duration":
		return "TIME"
	case strings.HasSuffix(typ, "Slice"):
		return "LIST"
	case typ == strings.ToUpper(typ): // it is such a word already
		return typ
	}
	return strings.ToUpper(f.Name)
}

// flagName is f as it is typed, with what it takes.
func flagName(f *pflag.Flag) string {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	return strings.TrimSpace(name + " " + takes(f))
}

// flagList is a list of the flags for a terminal of 80 columns: what each does
// stands beside it, or goes on in lines below.
func flagList(fs *pflag.FlagSet) string {
	widest := 0
	fs.VisitAll(func(f *pflag.Flag) { widest = max(widest, len(flagLine(f))) })
	var b strings.Builder
	fs.VisitAll(func(f *pflag.Flag) {
		text := strings.ReplaceAll(filled(f.Usage+usually(f), 80-widest-2), "\n", "\n"+strings.Repeat(" ", widest+2))
		fmt.Fprintf(&b, "%-*s  %s\n", widest, flagLine(f), text)
	})
	return b.String()
}

// usually is what f is when nobody gives it, where that says something.
func usually(f *pflag.Flag) string {
	switch f.DefValue {
	case "", ".", "0", "0s", "[]", "false", "true":
		return ""
	}
	return " (default " + f.DefValue + ")"
}

// flagLine is the beginning of f's line: the long names stand below each other.
func flagLine(f *pflag.Flag) string {
	if f.Shorthand == "" {
		return "      " + flagName(f)
	}
	return "  " + flagName(f)
}
