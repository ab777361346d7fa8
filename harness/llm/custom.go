package llm

import (
	"fmt"
	"strings"
)

// A Dialect is a form of calls that a user has added to the table.
type Dialect struct {
	Name  string `toml:"name"`
	Open  string `toml:"open"`  // literal text before a call
	Close string `toml:"close"` // and behind it; may be empty unless Form is "lines"
	// Form is what stands between them: "json" (a call, or its arguments),
	// "python" (act(cmd="…")) or "lines" (the first line is the command line, the
	// others are its stdin).
	Form string `toml:"form"`
}

// find finds what stands between d's marks. A call whose end is missing is
// broken: it may have been longer.
func (d Dialect) find(text string, commands []string) []found {
	var hits []found
	for at := 0; ; {
		i := strings.Index(text[at:], d.Open)
		if i < 0 || len(hits) == maxHits {
			return hits
		}
		h := found{start: at + i, end: len(text), bad: broken}
		body := text[h.start+len(d.Open):]
		if end := strings.Index(body, d.Close); end >= 0 && d.Close != "" {
			body = body[:end]
			h.bad, h.end = fine, h.start+len(d.Open)+end+len(d.Close)
		} else if d.Close == "" {
			h.bad = fine
		}
		if h.bad == fine {
			h.readForm(d.Form, trim(body), commands)
		}
		if hits = append(hits, h); h.bad != fine {
			return hits
		}
		at = h.end
	}
}

// readForm reads the body of a user's dialect.
func (h *found) readForm(form, body string, commands []string) {
	var more []found
	switch form {
	case "lines":
		cmd, stdin, _ := strings.Cut(body, "\n")
		h.take(toolName, []field{{"cmd", strings.TrimSpace(cmd), kindString}, {"stdin", stdin, kindString}}, commands)
		return
	case "python":
		more = findPython(body, commands)
	default:
		more, _ = objects(body, commands)
	}
	if len(more) == 0 {
		h.bad = garbled
		return
	}
	one := merge(h.start, h.end, more)
	h.calls, h.bad = one.calls, one.bad
}

// Check returns what is wrong with d, in the words of its settings.
func (d Dialect) Check() error {
	switch {
	case strings.TrimSpace(d.Name) == "":
		return fmt.Errorf("name is empty; it is what tether show calls the dialect")
	case strings.TrimSpace(d.Open) == "" || d.Open != strings.TrimSpace(d.Open):
		return fmt.Errorf("open is %q; it is the text before a call, without blanks around it", d.Open)
	case d.Close == "" && d.Form == "lines":
		return fmt.Errorf("close is empty; lines have no end of their own")
	case d.Close == d.Open:
		return fmt.Errorf("open and close are the same text")
	}
	switch d.Form {
	case "json", "lines", "python":
		return nil
	}
	return fmt.Errorf("form is %q; it can be json, lines or python", d.Form)
}
