package llm

import (
	"regexp"
	"strings"

	window "tether/context"
)

// A dialect is a form in which models send a call as text.
type dialect struct {
	name string
	// find returns what text holds in this form, in order. It looks at nothing
	// but its arguments and never completes anything.
	find func(text string, commands []string) []found
}

// A found is a place in a text that has the form of a call.
type found struct {
	start, end int
	calls      []window.Call
	bad        verdict // why there are no calls
}

// A verdict is what is wrong with something that has the form of a call.
type verdict int

const (
	fine    verdict = iota
	broken          // it cannot be read, or it ends too early
	unknown         // it names a tool that there is not
)

// dialectObject is the name of the constrained form, which is no dialect where
// it was asked for.
const dialectObject = "JSON object"

// dialects is the table: the first form that a message has any of counts, and
// a message is read in that form alone. Forms with marks of their own come
// before those that could be part of an explanation.
var dialects = []dialect{
	{"<function=…>", findFunctions},
	{"<invoke>", findInvokes},
	{"harmony channel", findHarmony},
	{"<tool_call>", findTagged},
	{dialectObject, findWhole},
	{"fenced JSON", findFencedJSON},
	{"JSON in text", findLineJSON},
	{"Python call", findPython},
	{"shell fence", findShell},
	{"command line", findLine},
}

// Read turns an assistant message into calls, or into what to say about it.
// Commands are the granted first words; nil takes every name for granted.
//
// Native tool calls come first, then the table of dialects. A message that was
// cut holds no call. Nothing of the reasoning is run, and nothing after an
// observation that the model invented.
func Read(raw Raw, commands []string) window.Reply {
	raw.Content = strings.ToValidUTF8(raw.Content, "\uFFFD")
	text := visible(raw.Content)
	if raw.Finish == "length" {
		return window.Reply{Text: text, Cut: true, Nudge: nudge("cut", commands)}
	}
	if len(raw.ToolCalls) > 0 {
		return readNative(raw, commands)
	}
	if text == "" {
		return window.Reply{Nudge: nudge("empty", commands)}
	}
	for _, d := range dialects {
		if hits := d.find(text, commands); len(hits) > 0 {
			return judge(d.name, text, hits, commands)
		}
	}
	rep := window.Reply{Text: text, Nudge: nudge("no_call", commands)}
	if callish.MatchString(text) {
		rep.Miss = raw.Content
	}
	return rep
}

// callish finds what a message that should have been read would hold.
var callish = regexp.MustCompile(`<tool_call|<function[=c]|<\|channel\|>|(?s:(?:^|\n)\s*[{\[<].*"(?:arguments|cmd)"\s*:)|(?m:^\s*act\()`)

// judge makes the reply of what was found: the calls up to the first one that
// is not fine, or up to an invented observation.
func judge(name, text string, hits []found, commands []string) window.Reply {
	rep := window.Reply{Recovered: name}
	at := 0
	for _, h := range hits {
		if h.start < at {
			continue
		}
		if invented.MatchString(text[at:h.start]) {
			break
		}
		if h.bad != fine {
			return refuse(rep, h.bad, text, commands)
		}
		rep.Calls = append(rep.Calls, h.calls...)
		at = h.end
	}
	if len(rep.Calls) == 0 {
		return window.Reply{Text: text, Nudge: nudge("no_call", commands)}
	}
	return rep
}

// refuse ends rep at something that is not fine: what stood before it is run,
// and if nothing did, the model is told.
func refuse(rep window.Reply, bad verdict, text string, commands []string) window.Reply {
	switch {
	case len(rep.Calls) > 0:
		return rep
	case bad == unknown:
		return window.Reply{Nudge: nudge("unknown_tool", commands)}
	}
	return window.Reply{Miss: text, Nudge: nudge("no_call", commands)}
}

// invented finds where a model goes on as its own user, or as the answer of
// the command that it has only just called.
var invented = regexp.MustCompile(`(?im)^\s*(<tool_response>|<\|im_start\|>|<\|start\|>user|(user|human|observation|assistant)\s*:)`)

// nudge is the text of that name. The example in it is a command that the
// model has.
func nudge(name string, commands []string) string {
	example := "help"
	for _, c := range []string{"read", "sh", "find", "help"} {
		if has(commands, c) {
			example = map[string]string{"read": "read FILE", "sh": "sh ls", "find": "find", "help": "help"}[c]
			break
		}
	}
	return window.Text(name, map[string]string{"Example": example})
}

// readNative reads tool calls that the server told apart.
func readNative(raw Raw, commands []string) window.Reply {
	var rep window.Reply
	for _, c := range raw.ToolCalls {
		call, recovered, bad := nativeCall(c, commands)
		if bad != fine {
			return refuse(rep, bad, c.Name+" "+c.Arguments, commands)
		}
		rep.Calls = append(rep.Calls, call)
		if rep.Recovered == "" {
			rep.Recovered = recovered
		}
	}
	return rep
}

// nativeCall reads one tool call.
func nativeCall(c RawCall, commands []string) (call window.Call, recovered string, bad verdict) {
	fields, twiceEncoded, ok := decodeFields(c.Arguments)
	name := toolOf(c.Name)
	if !ok {
		return call, "", broken
	}
	call, bad = callOf(name, fields, commands)
	switch {
	case twiceEncoded:
		recovered = "double-encoded arguments"
	case c.Name != toolName:
		recovered = "tool name " + clip(c.Name, 40)
	}
	return call, recovered, bad
}

// afterThinking takes the marks of reasoning off.
var (
	thinkOpen  = regexp.MustCompile(`^\s*<(think|thinking)>`)
	thinkClose = regexp.MustCompile(`</(think|thinking)>`)
)

// visible is the message without its reasoning: a block at the very beginning,
// or all up to a closing tag whose opening one the template had written. A tag
// elsewhere is text, as is one within a call.
func visible(content string) string {
	end := thinkClose.FindStringIndex(content)
	switch {
	case thinkOpen.MatchString(content) && end == nil:
		return "" // still thinking when it ended
	case end == nil:
		return strings.TrimSpace(content)
	case thinkOpen.MatchString(content), !strings.ContainsAny(content[:end[0]], "{<`"):
		return strings.TrimSpace(content[end[1]:])
	}
	return strings.TrimSpace(content)
}
