package llm

import (
	"regexp"
	"strings"

	window "tether/context"
)

// A dialect is a form in which models send a call as text.
type dialect struct {
	name string
	// open is how a call begins, and read reads the one that begins at the match m.
	// It returns false if that is no call. It looks at nothing but its arguments
	// and never completes anything.
	open *regexp.Regexp
	read func(text string, m []int, commands []string) (found, bool)
	// find is in the place of both where a call does not begin with a mark: it
	// returns what text holds in this form, in order.
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
	broken          // it ends too early
	garbled         // it cannot be read
	mute            // it has no command
	odd             // its stdin is no text
	nul             // its command holds a NUL
	unknown         // it names a tool that there is not
)

// faults are what the model is told of a verdict.
var faults = map[verdict]string{
	broken:  "it ends before it is complete",
	garbled: "its quotes or brackets do not match",
	mute:    "it has no command in cmd",
	odd:     "its stdin must be one string",
	nul:     "its command holds a NUL byte",
}

// dialectObject is the name of the constrained form, which is no dialect where
// it was asked for.
const dialectObject = "JSON object"

// dialects is the table: the first form that a message has any of counts, and
// a message is read in that form alone. Forms with marks of their own come
// before those that could be part of an explanation. What stands within a call
// of another form, or within the beginning of one, is that call's text.
var dialects = []dialect{
	{name: "<function=…>", open: functions.open, read: functions.read},
	{name: "<invoke>", open: invokes.open, read: invokes.read},
	{name: "harmony channel", open: harmony, read: readHarmony},
	{name: "[TOOL_CALLS]", open: mistral, read: readMistral},
	{name: "tool_call tokens", open: tokens, read: readMarked},
	{name: "call:NAME{…}", open: gemma, read: readMarked},
	{name: "<arg_key>", open: argKeys.open, read: argKeys.read},
	{name: "attributes", find: findAttributes},
	{name: "elements", find: findElements},
	{name: "<|python_tag|>", open: llamaTag, read: readPythonTag},
	{name: "<tool_call>", open: tag, read: readTagged},
	{name: "Action Input", open: react, read: readMarked},
	{name: dialectObject, find: findWhole},
	{name: "fenced JSON", find: findFencedJSON},
	{name: "JSON in text", find: findLineJSON},
	{name: "Python call", open: python, read: readPython},
	{name: "tags around a line", find: findTagged},
	{name: "labelled line", find: findLabelled},
	{name: "shell fence", find: findShell},
	{name: "command line", find: findLine},
}

// Read turns an assistant message into calls, or into what to say about it.
// Commands are the granted first words; nil takes every name for granted. More
// are a user's own dialects, which come before the table.
//
// Native tool calls come first, then the dialects. A message that was cut holds
// no call. Nothing of the reasoning is run, and nothing after an observation
// that the model invented. The same call twice in a row is one.
func Read(raw Raw, commands []string, more ...Dialect) window.Reply {
	raw.Content = strings.ToValidUTF8(raw.Content, "\uFFFD")
	text := visible(raw.Content)
	if cutShort[strings.ToLower(raw.Finish)] {
		return window.Reply{Text: text, Cut: true, Nudge: nudge("cut", commands)}
	}
	if len(raw.ToolCalls) > 0 {
		return readNative(raw, commands)
	}
	rep := readText(text, commands, more)
	if rep.Text == "" && rep.Nudge != "" && rep.Miss == "" && text == "" {
		rep.Nudge = nudge("empty", commands)
	}
	if rep.Miss != "" {
		rep.Miss = raw.Content
	}
	return rep
}

// cutShort are the reasons for which servers end a message before it is complete.
var cutShort = map[string]bool{"length": true, "max_tokens": true, "model_length": true}

// readText reads a message without its first reasoning.
func readText(text string, commands []string, more []Dialect) window.Reply {
	if len(text) > maxText {
		return window.Reply{Text: text[:maxText], Nudge: nudge("no_call", commands)}
	}
	var table []dialect
	for _, d := range more {
		table = append(table, dialect{name: d.Name, find: d.find})
	}
	table = append(table, dialects...)
	hits := search(table, text, commands)
	if rest, ok := unopened(text, flatten(hits)); ok {
		text = visible(rest)
		hits = search(table, text, commands)
	}
	if i, list := chosen(table, outermost(text, hits)); len(list) > 0 {
		return judge(table[i].name, text, list, commands)
	}
	rep := window.Reply{Text: harmonyText.ReplaceAllString(text, ""), Nudge: nudge("no_call", commands)}
	if callish.MatchString(text) {
		rep.Miss = text
	}
	return rep
}

// chosen is the first form of the table that a message has any of, unless another
// one was written before it as a call that could be run: of two calls the second
// is not run first. A fence before it may be an example.
func chosen(table []dialect, hits [][]found) (form int, list []found) {
	for i, l := range hits {
		switch {
		case len(l) == 0:
		case len(list) == 0:
			form, list = i, l
		case l[0].bad == fine && l[0].start < list[0].start && (isFence[table[form].name] || !isFence[table[i].name]):
			form, list = i, l
		}
	}
	return form, list
}

// isFence are the forms that stand in a fence.
var isFence = map[string]bool{"fenced JSON": true, "shell fence": true}

// maxText is the longest message in bytes in which calls are looked for: the
// longest reply that is asked for has some 10 kB.
const maxText = 256 << 10

// search finds what text holds in each form of the table.
func search(table []dialect, text string, commands []string) [][]found {
	all := make([][]found, len(table))
	if text == "" {
		return all
	}
	for i, d := range table {
		if d.find == nil {
			all[i] = scan(text, d.open, d.read, commands)
			continue
		}
		list := d.find(text, commands)
		all[i] = list[:min(len(list), maxHits)]
	}
	return all
}

// outermost drops what stands within something that has the form of a call and
// begins before it, and what stands within a fence that holds more than calls.
func outermost(text string, all [][]found) [][]found {
	flat := flatten(all)
	fenced := fences(text)
	for i, list := range all {
		kept := list[:0:0]
		for _, h := range list {
			if !covered(h, flat) && !taught(text, h, list, fenced) {
				kept = append(kept, h)
			}
		}
		all[i] = kept
	}
	return all
}

func flatten(all [][]found) (flat []found) {
	for _, list := range all {
		flat = append(flat, list...)
	}
	return flat
}

// covered reports whether h stands within another hit that begins before it. One
// that could not be read counts only if its place was read in no other form.
func covered(h found, all []found) bool {
	for _, o := range all {
		if o.start < h.start && o.end >= h.end && (o.bad == fine || !readElsewhere(o.start, all)) {
			return true
		}
	}
	return false
}

func readElsewhere(start int, all []found) bool {
	for _, o := range all {
		if o.start == start && o.bad == fine {
			return true
		}
	}
	return false
}

// callish finds what a message that should have been read would hold.
var callish = regexp.MustCompile(`<tool_call|<function[=c]|<invoke|<\|channel\|>|<\|python_tag\|>|\[TOOL_CALLS\]|(?m:^\s*act\((?:\*\*|["'{\[]|\w+\s*=))|` +
	`(?s:(?:^|\n)\s*[{\[<].*(?:["'“”]|&quot;)(?:arguments|parameters|cmd|command)(?:["'“”]|&quot;)\s*[:=])|[{,]\s*(?:arguments|cmd)\s*[:=]`)

// maxHits is how many calls of one message are looked at. Nobody means more.
const maxHits = 64

// judge makes the reply of what was found: the calls up to the first one that
// is not fine, or up to an invented observation.
func judge(name, text string, hits []found, commands []string) window.Reply {
	rep := window.Reply{Recovered: name}
	at := 0
	for _, h := range hits {
		if h.start < at {
			continue
		}
		between := text[at:h.start]
		if turned.MatchString(between) || len(rep.Calls) > 0 && !joined(between) {
			break
		}
		if thinking(between) {
			continue
		}
		if h.bad != fine {
			return refuse(rep, h.bad, text, commands)
		}
		for _, c := range h.calls {
			rep.Calls = appendNew(rep.Calls, c)
		}
		at = h.end
	}
	if len(rep.Calls) == 0 {
		return window.Reply{Text: text, Nudge: nudge("no_call", commands)}
	}
	return rep
}

// appendNew appends c unless it is the same as the last one: a small model that
// repeats itself means the call once.
func appendNew(calls []window.Call, c window.Call) []window.Call {
	if n := len(calls); n > 0 && calls[n-1] == c {
		return calls
	}
	return append(calls, c)
}

// refuse ends rep at something that is not fine: what stood before it is run,
// and if nothing did, the model is told.
func refuse(rep window.Reply, bad verdict, text string, commands []string) window.Reply {
	switch {
	case len(rep.Calls) > 0:
		return rep
	case bad == unknown:
		return window.Reply{Miss: text, Nudge: window.Text("unknown_tool", window.Values{"Example": wish(text, commands)})}
	}
	return window.Reply{Miss: text, Nudge: window.Text("broken", window.Values{"Fault": faults[bad], "Example": example(commands)})}
}

// reading is a tool of another harness that reads a file.
var reading = regexp.MustCompile(`(?is)(?:read|open|view|cat|show)_?(?:file)?["\s].{0,80}?"(?:path|file|filename|file_path|filepath)"\s*:\s*"([^"\\]+)"`)

// wish is the command that does what a call of an unknown tool asks for, where
// that is plain, or else any command that the model has.
func wish(text string, commands []string) string {
	if m := reading.FindStringSubmatch(text); m != nil && has(commands, "read") {
		return "read " + quote(m[1])
	}
	return example(commands)
}

var (
	// turned finds where a model goes on as somebody else.
	turned = regexp.MustCompile(`(?im)^\s*(?:<tool_response>|<tool_result|<function_results?>|<observation>|(?:user|human|observation|assistant)\s*:)|` +
		`<\|im_start\|>|<\|im_end\|>|<\|start\|>(?:user|tool|functions)|<\|eot_id\|>|<\|start_header_id\|>|<start_of_turn>|<end_of_turn>|\[INST\]|</s>|\[TOOL_RESULTS?\]`)
	// answered finds what a model gives out for the answer of the command that it
	// has only just called.
	answered = regexp.MustCompile("(?im)^[\\s#/*]*(?:(?:tool|command )?(?:output|result|response|stdout)\\s*:|<output>|<result>|(?:```+|~~~+)[ \\t]*(?:tool_)?(?:outputs?|results?)\\b)")
)

var (
	// besides is what may stand between two calls: marks, comments, and the
	// reasoning that ended there.
	besides = regexp.MustCompile("(?is)<(?:" + thoughts + ")(?:\\s[^>]*)?>.*?</(?:" + thoughts + ")>|\\[THINK\\].*?\\[/THINK\\]|<\\|channel>thought.*?<channel\\|>|" +
		"<[^<>\n]{1,80}>|&lt;/?\\w+&gt;|<\\||\\|>|(?:```+|~~~+)[ \\t]*[\\w-]*|(?m:^[ \\t]*(?://|#[^#\n]).*$)|<｜[^｜]*｜>|\\[/?[A-Z_]+\\]")
	// goesOn is a line that announces another call, and nothing that a command prints.
	goesOn = regexp.MustCompile(`(?i)^[\s#*_)(-]*(?:(?:\d+[.)]\s*)?\**(?:and|also|then|now|next|after|finally|second|third|step|thought|action(?: input)?|dann|ensuite|luego)\b.{0,200})?$`)
)

// joined reports whether a call behind text belongs to the one before it. What a
// model writes between two calls may be what it takes for the answer of the first,
// with a word before it or without, and the second rests on it. So there may be
// marks, and words that go on.
func joined(text string) bool {
	if answered.MatchString(text) {
		return false
	}
	for line := range strings.Lines(besides.ReplaceAllString(text, "")) {
		if !goesOn.MatchString(strings.Trim(line, " \t\r\n,;:[]{}()`\"")) {
			return false
		}
	}
	return true
}

// nudge is the text of that name. The example in it is a command that the
// model has.
func nudge(name string, commands []string) string {
	return window.Text(name, window.Values{"Example": example(commands)})
}

// example is a command that the model has.
func example(commands []string) string {
	for _, c := range []string{"read FILE", "sh ls", "find"} {
		if has(commands, firstWord(c)) {
			return c
		}
	}
	return "help"
}
