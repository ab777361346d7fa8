package llm

import (
	"strings"

	window "tether/context"
)

// readNative reads tool calls that the server told apart.
func readNative(raw Raw, commands []string) window.Reply {
	var rep window.Reply
	for _, c := range raw.ToolCalls[:min(len(raw.ToolCalls), maxHits)] {
		calls, recovered, bad := nativeCalls(c, commands)
		for _, call := range calls {
			rep.Calls = appendNew(rep.Calls, call)
		}
		if bad != fine {
			return refuse(rep, bad, strings.ToValidUTF8(c.Name+" "+c.Arguments, "\uFFFD"), commands)
		}
		if rep.Recovered == "" {
			rep.Recovered = recovered
		}
	}
	return rep
}

// nativeCalls reads one tool call, or those that a server glued to one: the
// arguments then are several objects. At one that is not fine it ends.
func nativeCalls(c RawCall, commands []string) (calls []window.Call, recovered string, bad verdict) {
	name, rest := toolOf(c.Name), strings.ToValidUTF8(c.Arguments, "\uFFFD")
	if len(rest) > maxText {
		return nil, "", garbled
	}
	for n := 0; n == 0 || rest != ""; n++ {
		var fields []field
		var form string
		if fields, form, rest, bad = nextFields(rest); bad != fine {
			return calls, "", bad
		}
		call, bad := callOf(name, fields, commands)
		if line := strings.TrimSpace(c.Name); len(fields) == 0 && line != name && has(commands, firstWord(line)) {
			call, bad = window.Call{Cmd: line}, fine // the whole line stands in the place of the name
		}
		if bad != fine {
			return calls, "", bad
		}
		calls = append(calls, call)
		if recovered == "" {
			recovered = form
		}
	}
	switch {
	case recovered != "":
	case len(calls) > 1:
		recovered = "glued arguments"
	case c.Name != toolName:
		recovered = "tool name " + clip(strings.ToValidUTF8(c.Name, "\uFFFD"), 40)
	}
	return calls, recovered, fine
}
