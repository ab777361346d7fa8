package llm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	window "tether/context"
)

// This file holds the fenced form: a reply is one fenced block of shell, as models
// that were trained on code write commands anyway. Nothing in it is escaped, and text
// for a command is a here-document. A 0.5B model wrote the right
// first command for 1 of 12 tasks as JSON, and does for 6 so (docs/results.md).

// fenceRules are the rules of the fenced form in the grammar of llama.cpp. A block is
// lines that begin with no fence; a here-document has text; in a text for a file of
// Markdown there may be blocks with a language of their own. Blank lines, and lines of
// blanks, are two at most: without a bound a small model writes nothing else.
const fenceRules = `root ::= "` + "```" + `bash\n" first item* "` + "```" + `"
item ::= "\n"? "\n"? (line | [ \t]* black rest here | marked)
black ::= [^` + "`" + ` \t\r<\n] | "<" [^<\n] | "` + "`" + `" [^` + "`" + `\n]
rest ::= ([^<\n] | "<" [^<\n] | "<<" [^'\n])*
line ::= [ \t]* black rest "\n"
here ::= "<<'" [A-Za-z_]+ "'" ([ \t;|>&] [^\n]*)? "\n" "\n"? text "\n"
text ::= [ \t]+ black [^\n]* | [^` + "`" + ` \t\r\nE] [^\n]* | "E" ([^O\n] [^\n]*)? | "EO" ([^F\n] [^\n]*)? | "EOF" [^\n]+
marked ::= "cat >" [^<\n]* ".md" [^\n]* "\n" (inner | "\n"? line)+
inner ::= "\n"? "` + "```" + `" [a-z]+ "\n" ("\n"? "\n"? line)* "` + "```" + `\n"
`

// fenceGrammar is the grammar of a block that begins with none of without.
func fenceGrammar(without []string) string {
	rules := fenceRules + "start ::= " + beginning(without, false) + "\nfirst ::= start \"\\n\" | start here"
	// Where cat itself is barred this rule would be the only way to begin with it, and a
	// model that meant another file finds no end there.
	if !slices.ContainsFunc(without, func(w string) bool { return strings.HasPrefix(w, "cat >") || strings.HasPrefix("cat >", w) }) {
		rules += " | marked"
	}
	return rules + "\n"
}

// beginning is a rule for a line that begins with none of words; within is true where
// a part of one has been read.
func beginning(words []string, within bool) string {
	not, rests, order := "` \\t\\r<\\n", map[rune][]string{}, []rune{}
	if within {
		not = "<\\n"
	}
	for _, w := range words {
		r, n := utf8.DecodeRuneInString(w)
		if _, known := rests[r]; !known && n > 0 {
			order = append(order, r)
			not += literal(r)
		}
		if n > 0 {
			rests[r] = append(rests[r], w[n:])
		}
	}
	rule := "[^" + not + "] rest"
	for _, r := range order {
		if !slices.Contains(rests[r], "") {
			rule += ` | "` + literal(r) + `" (` + beginning(rests[r], true) + ")"
		}
	}
	if _, here := rests['<']; within && !here { // a barred here-document follows the end
		rule += ` | ""`
	}
	return rule
}

// literal is r as grammars write it, in quotes and in brackets.
func literal(r rune) string {
	if r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return fmt.Sprintf(`\x%02x`, r)
	}
	return string(r)
}

var (
	// fenceOpen is the line that opens a reply in the fenced form.
	fenceOpen = regexp.MustCompile("^```(?:bash|sh|shell|console)?[ \\t]*\\r?\\n")
	// innerOpen is the line that opens a block within one.
	innerOpen = regexp.MustCompile("^```[a-z]+$")
)

// findFenced finds a reply in the fenced form: one block that begins the text. It ends
// at the first line of nothing but backticks, unless that ends a block within.
func findFenced(text string) []window.Call {
	m := fenceOpen.FindString(text)
	if m == "" {
		return findUnfenced(text)
	}
	var body []string
	named, inner := false, false
	for raw := range strings.Lines(text[len(m):]) {
		raw = strings.TrimSuffix(raw, "\n")
		if strings.HasSuffix(m, "\r\n") {
			raw = strings.TrimSuffix(raw, "\r")
		}
		switch l := strings.TrimRight(raw, " \t\r"); {
		case strings.HasPrefix(l, "```") && !named, l == "```" && !inner:
			return fencedCalls(body)
		case l == "```":
			inner = false
		case innerOpen.MatchString(l):
			inner = true
		case strings.HasPrefix(l, "cat >") && strings.Contains(l, ".md"):
			named = true
		}
		body = append(body, raw)
	}
	return nil
}

// findUnfenced finds a reply that lacks the fence. Only a line that begins with a
// program is one, and with no sentence at its end.
func findUnfenced(text string) []window.Call {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "```") || !slices.Contains(programs, firstWord(text)) || strings.ContainsAny(text[len(text)-1:], ".!?:") {
		return nil
	}
	return fencedCalls(strings.Split(text, "\n"))
}

// programs are those that begin the command lines of small models; words that begin a
// sentence as often are not among them.
var programs = []string{
	"awk", "bash", "cat", "cd", "chmod", "cp", "echo", "gcc", "git", "gofmt", "grep", "ls", "mkdir", "mv", "node", "npm",
	"perl", "printf", "pytest", "python", "python3", "rm", "sed", "tr", "wc",
}

// fencedCalls are the calls of a block: the last line may be a done of its own,
// which a shell would take for the end of a loop.
func fencedCalls(lines []string) []window.Call {
	body := strings.TrimSpace(strings.Join(lines, "\n"))
	if body == "" {
		return nil
	}
	if rest, ok := strings.CutSuffix(body, "\nEOF"); ok && !strings.Contains(body, "<<") {
		body = rest // the end of a here-document that there is not
	}
	i := strings.LastIndexByte(body, '\n')
	if last := body[i+1:]; i > 0 && firstWord(last) == "done" && count(body[:i], "do") <= count(body[:i], "done") {
		return []window.Call{{Cmd: strings.TrimSpace(body[:i])}, {Cmd: last}}
	}
	return []window.Call{{Cmd: body}}
}

// count is how often word stands in text as a word of its own.
func count(text, word string) int {
	n := 0
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;", r) }) {
		if w == word {
			n++
		}
	}
	return n
}

// asFence writes call as the model would have in the fenced form.
func asFence(call window.Call) string {
	text := call.Cmd
	if call.Stdin != "" {
		end := "EOF"
		for strings.Contains("\n"+call.Stdin+"\n", "\n"+end+"\n") {
			end += "_"
		}
		text += " <<'" + end + "'\n" + strings.TrimSuffix(call.Stdin, "\n") + "\n" + end
	}
	return "```bash\n" + text + "\n```"
}
