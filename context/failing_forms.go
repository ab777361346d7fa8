package window

import "strings"

// exception reports whether a line begins with the name of an exception, as in
// "json.decoder.JSONDecodeError: Expecting value".
func exception(t string) bool {
	t = strings.TrimPrefix(t, "E   ")
	n := 0
	for n < len(t) && (isWord(t[n]) || t[n] == '.' || t[n] == '$' || t[n] == ':' && n+1 < len(t) && t[n+1] == ':') {
		if t[n] == ':' {
			n++
		}
		n++
	}
	name := t[:n]
	if n < len(t) && t[n] != ':' && t[n] != ' ' && t[n] != '[' {
		return false
	}
	return n > 5 && (strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception")) && name != "Error" && (n == len(t) || t[n] == ':' || strings.HasPrefix(t[n:], " ["))
}

// placed says how much of a place stands at the start of a line: 1 for a file
// with its line, as in a stack, and 2 if a message follows.
func placed(t string) int {
	end, colon := 0, -1
	for ; end < len(t) && t[end] != ' ' && t[end] != '\t'; end++ {
		if colon < 0 && (t[end] == ':' || t[end] == '(') {
			colon = end
		}
	}
	w := t[:end]
	if colon <= 0 || colon+1 >= len(w) || !isDigit(w[colon+1]) || !strings.ContainsAny(w[:colon], "./") {
		return 0
	}
	if rest := strings.TrimLeft(w[colon+1:], "0123456789:,)"); rest != "" && rest[0] != '.' {
		return 0
	}
	last := w[len(w)-1]
	if (last == ':' || last == ')') && end < len(t) {
		return 2
	}
	return 1
}

// frame reports whether a line is one of a stack, in any of the usual forms.
func frame(t string) bool {
	return placed(t) > 0 || strings.HasPrefix(t, "at ") || strings.HasPrefix(t, "File \"") || strings.HasPrefix(t, "--> ") ||
		strings.HasPrefix(t, "from ") || len(t) > 1 && t[0] == '#' && isDigit(t[1])
}

// foreign are the places of code that is not the project's.
var foreign = []string{"/usr/", "node_modules", "node:", "site-packages", "/rustc/", "java.base", "org.junit", "org.apache", "runtime.", "<frozen", "/go/pkg/mod/", "testing.go", ".cargo/registry", "rspec-core", "internal/"}

// own reports whether a line is a frame of the project's own code.
func own(l string) bool {
	return frame(bare(l)) && !hasAny(l, foreign)
}

func hasAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
