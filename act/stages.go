package act

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A watch is a line for bash that tells the statuses of its parts: a shell gives
// only the last one, and a model that reads "failed | tail" as success goes on.
type watch struct {
	line  string // to be run
	mark  string // before the statuses, at the end of the output; empty: nothing is told
	piped bool   // the line is one pipe, and what is told are its parts
}

// unwatched are the programs after which the end of a line is not reached, or
// means something else.
var unwatched = []string{"exec", "trap", "exit", "return", "set", "source", ".", "eval", "shopt", "break", "continue"}

// watched returns the line with what tells the statuses, if it is a plain list or
// a plain pipe: then the shell runs it as before, and the text behind it at the
// end. A shell other than bash is left alone.
func watched(line string) watch {
	pipe, list := shape(line)
	if pipe == list {
		return watch{line: line}
	}
	raw := make([]byte, 8)
	rand.Read(raw)
	mark := hex.EncodeToString(raw)
	const tell = `__t=$? __p="${PIPESTATUS[*]}"; trap - DEBUG; printf "\n%s:%s\n" MARK "$__p$__s"; exit $__t`
	before, after := `__e='exit $?'; [ -z "$BASH_VERSION" ] || { __s=; __e='`+tell+`'; }; `, "\neval \"$__e\""
	if list { // the status of each command is known before the next one begins
		before = strings.Replace(before, `__s=;`, `__s=; trap '__r=$?; [ $__r = 0 ] || __s="$__s $__r"' DEBUG;`, 1)
	}
	return watch{line: strings.Replace(before, "MARK", mark, 1) + line + after, mark: "\n" + mark + ":", piped: pipe}
}

// shape says whether a line is one pipe of simple commands, or a list of such
// commands of which the shell tells one status only. Both is neither.
func shape(line string) (pipe, list bool) {
	pieces, err := scan(line)
	if err != nil || strings.HasSuffix(line, `\`) {
		return false, false
	}
	begins, open := true, true // a command begins here, and nothing may end here
	for _, p := range pieces {
		word := line[p.start:p.end]
		switch {
		case p.op == "" && begins && (slices.Contains(keywords, word) || slices.Contains(unwatched, word)),
			slices.Contains([]string{"<<", "&", "(", ")", ";;"}, p.op), p.op != "" && p.op != "\n" && open:
			return false, false
		case p.op == "":
			begins, open = false, false
		case strings.ContainsAny(p.op, "<>"):
			open = true
		default:
			pipe = pipe || p.op == "|" || p.op == "|&"
			list = list || p.op == "||" || p.op == ";" || p.op == "\n"
			begins, open = true, p.op != ";" && p.op != "\n"
		}
	}
	return pipe && !open, list && !open
}

// statuses takes what w tells off an output. Without the mark, as when the time
// was up, there are none.
func (w watch) statuses(output string) (string, []int) {
	if w.mark == "" {
		return output, nil
	}
	i := strings.LastIndex(output, w.mark)
	if i < 0 {
		return output, nil
	}
	told, after, _ := strings.Cut(output[i+len(w.mark):], "\n")
	var all []int
	for _, word := range strings.Fields(told) {
		n, _ := strconv.Atoi(word)
		all = append(all, n)
	}
	return output[:i] + after, all
}

// brokenPipe is the status of a program whose reader had enough: no failure.
const brokenPipe = 141

// masked says of a line that succeeded which part of it did not.
func (w watch) masked(statuses []int) string {
	i := slices.IndexFunc(statuses, func(n int) bool { return n != OK && n != brokenPipe })
	switch {
	case i < 0:
		return ""
	case w.piped:
		return fmt.Sprintf("An earlier command of the pipe failed (%s).", strings.Trim(strings.ReplaceAll(fmt.Sprint(statuses), " ", "|"), "[]"))
	}
	return fmt.Sprintf("A part of it failed with exit status %d.", statuses[i])
}

// secretNames matches names of environment variables that hold a secret, used in a
// line for the shell.
var secretNames = regexp.MustCompile(`\$\{?([A-Z][A-Z0-9_]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS))\b`)

// keptNames are the variables that well-known programs want for a login.
var keptNames = map[string][]string{
	"gh": {"GH_TOKEN", "GITHUB_TOKEN"}, "glab": {"GITLAB_TOKEN"}, "npm": {"NPM_TOKEN"}, "aws": {"AWS_SECRET_ACCESS_KEY"},
	"twine": {"TWINE_PASSWORD"}, "cargo": {"CARGO_REGISTRY_TOKEN"}, "hf": {"HF_TOKEN"}, "docker": {"DOCKER_PASSWORD"},
}

// withheld says which variable a failed line wanted that the user has and commands
// do not get: without that word the program blames the user.
func withheld(line string) string {
	names := keptNames[firstWord(line)]
	for _, m := range secretNames.FindAllStringSubmatch(line, -1) {
		names = append(names[:len(names):len(names)], m[1])
	}
	for _, name := range names {
		if os.Getenv(name) != "" {
			return name + " is kept from commands."
		}
	}
	return ""
}
