package window

import (
	"regexp"
	"slices"
	"strings"
)

// printers are the commands whose output is a text that a model copies from: what
// a file holds, with every line of it, or a list of places. In that nothing is
// counted instead of shown, and a line with "error" in it is no failure.
var printers = []string{
	"read", "write", "append", "edit", "grep", "find", "mem", "skill", "kb", "web", "mcp", "tool", "help", // built-in
	"cat", "head", "tail", "tac", "nl", "less", "more", "bat", "sed", "awk", "cut", "sort", "uniq", "jq", "strings",
	"comm", "paste", "fold", "fmt", "pr", "rev", "expand", "tr", "gofmt", "xmllint", "yq", "gunzip", "unzip", "man", "batcat", "xxd", "od", "hexdump", "base64", "rg", "egrep", "fgrep", "zcat", "diff", "ls", "tree", "printf", "column",
}

// gitPrinters are the verbs of git that print what files hold or held.
var gitPrinters = []string{"show", "diff", "log", "blame", "grep", "cat-file"}

// tables are the programs that print rows of numbers, or what a server answers:
// nothing of it is counted instead of shown, but something in it may have failed.
var tables = []string{"sqlite3", "psql", "mysql", "curl", "du", "df", "ps", "wc", "stat", "seq", "nm", "objdump", "readelf", "docker", "kubectl"}

// before are words in front of the command that prints.
var before = []string{"sh", "sudo", "time", "env", "command", "exec", "nohup", "nice", "timeout", "xargs", "busybox", "bash", "if", "while", "until", "then", "else", "elif", "do", "!"}

// inline are programs that print a file too, if that is what their line says.
var inline = regexp.MustCompile(`^(?:python[\d.]*|node|perl|ruby|deno|php) .*(?:open|read|cat|json\.tool|file_get_contents)|^(?:perl|ruby) -[a-z]*p|\$\(\s*(?:cat|<|head|tail|sed)`)

// aside are commands that print nothing of their own.
var aside = []string{"for", "case", "done", "fi", "}", "cd", "export", "set", "pushd", "mkdir", "touch", "true", "echo", "pwd", "source", "."}

// prints says of a command line whether all that it prints is such a text, and
// whether some of it is such a text or a table. Only the first program of a pipe counts: those behind it, as in
// `go test | tail -50`, choose from what it prints. A line that cannot be read
// as a person would is a program's.
func prints(cmd string) (all, some bool) {
	all = true
	for _, part := range pipes(cmd) {
		words := commandOf(part)
		switch {
		case len(words) == 0 || words[0] == "":
		case (strings.ContainsRune("pnrd", rune(words[0][0])) || strings.Contains(part, "$(")) && inline.MatchString(strings.Join(words, " ")):
			some, all = true, false // few lines come to the expression: each output is looked at in each window
		case slices.Contains(aside, words[0]):
		case slices.Contains(printers, words[0]), words[0] == "git" && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(gitPrinters, w) }):
			some = true
		default:
			all = false
			some = some || slices.Contains(tables, words[0])
		}
	}
	return all && some, some
}

// commandOf are the words of a command, without what stands before it and without
// its folder.
func commandOf(part string) []string {
	words := strings.Fields(strings.TrimLeft(part, "({ \t\\"))
	for prefixed := false; len(words) > 0; words = words[1:] {
		w := words[0]
		switch {
		case slices.Contains(before, w):
			prefixed = true
		case strings.Contains(w, "=") || prefixed && (w[0] == '-' || w[0] >= '0' && w[0] <= '9'):
		default:
			words[0] = strings.Trim(w[strings.LastIndexByte(w, '/')+1:], "'\"")
			if last := len(words) - 1; last > 0 || !prefixed {
				words[last] = strings.TrimRight(words[last], "'\")")
			}
			return words
		}
	}
	return words
}

// pipes takes a line apart at what ends a pipe, outside quotes, and keeps of
// each pipe the first command.
func pipes(cmd string) []string {
	var parts []string
	var quote byte
	start, cut := 0, false // cut: what follows stands behind a pipe
	add := func(end int) {
		if !cut {
			parts = append(parts, cmd[start:end])
		}
	}
	for i := 0; i < len(cmd); i++ {
		c := cmd[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '\\':
			i++
		case c == '|' && i+1 < len(cmd) && cmd[i+1] == '|', c == '&' && i+1 < len(cmd) && cmd[i+1] == '&':
			add(i)
			i++
			start, cut = i+1, false
		case c == ';' || c == '\n':
			add(i)
			start, cut = i+1, false
		case c == '|':
			add(i)
			start, cut = i+1, true
		}
	}
	add(len(cmd))
	return parts
}
