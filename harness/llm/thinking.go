package llm

import (
	"regexp"
	"strings"
)

// thoughts are the names of tags around reasoning.
const thoughts = `think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue|seed:think`

// A channel is a form in which models mark their reasoning.
type channel struct{ open, end *regexp.Regexp }

// channels are those forms. Each opens at the beginning of a message or of a
// line; a mark within a sentence is talked about. Where the template has written
// the opening mark into the prompt, only the end stands in the message.
var channels = []channel{
	{regexp.MustCompile(`^\s*<(?i:` + thoughts + `)(?:\s[^>\n]*)?>`), regexp.MustCompile(`</(?i:` + thoughts + `)>`)},
	{regexp.MustCompile(`^\s*<\|(?:begin_of_thought|START_THINKING)\|>`), regexp.MustCompile(`<\|(?:end_of_thought|END_THINKING)\|>`)},
	{regexp.MustCompile(`^\s*\[THINK\]`), regexp.MustCompile(`\[/THINK\]`)},
	{regexp.MustCompile(`^\s*<\|channel>thought`), regexp.MustCompile(`<channel\|>`)},
	{regexp.MustCompile(`^\s*(?:<\|start\|>assistant)?<\|channel\|>analysis(?:[^<]|<\|constrain\|>)*<\|message\|>`), regexp.MustCompile(`<\|end\|>|<\|call\|>|<\|return\|>`)},
}

var (
	// opened and closed are the marks within a message; that of harmony is closed
	// where the next channel begins.
	opened = regexp.MustCompile(`(?m)^[ \t]*(?:<(?i:` + thoughts + `)(?:\s[^>\n]*)?>|\[THINK\]|<\|channel>thought|<\|(?:begin_of_thought|START_THINKING)\|>)|<\|channel\|>analysis`)
	closed = regexp.MustCompile(`</(?i:` + thoughts + `)>|\[/THINK\]|<channel\|>|<\|(?:end_of_thought|END_THINKING)\|>|<\|end\|>\s*<\|start\|>assistant`)
	// ownRole is what some models write before their own words.
	ownRole = regexp.MustCompile(`^(?i:assistant:|<\|im_start\|>assistant|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model)\s*`)
	// harmonyText is what stands around words for the user in that form.
	harmonyText = regexp.MustCompile(`^(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary)<\|message\|>|(?:<\|end\|>|<\|return\|>)$`)
	// ticks are quotes around a message of one line.
	ticks = regexp.MustCompile("^`{1,3}(?:json)?[ \\t]*([^`\\n]+?)[ \\t]*`{1,3}$")
)

// maxChannels bounds how many blocks of reasoning one message may begin with.
const maxChannels = 16

// visible is the message without the reasoning that it begins with, and without
// what stands around the whole of it. Reasoning that never ends is all there is.
func visible(content string) string {
	text := trim(content)
	for range maxChannels {
		rest, ok := afterChannel(text)
		if !ok {
			break
		}
		text = trim(rest)
	}
	text = ownRole.ReplaceAllString(text, "")
	if m := ticks.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	return text
}

// trim takes off blanks, and the byte order marks and NULs that some servers send.
func trim(s string) string { return strings.TrimFunc(s, blank) }

// afterChannel is what stands behind the block of reasoning that text begins with.
func afterChannel(text string) (rest string, ok bool) {
	for _, c := range channels {
		open := c.open.FindStringIndex(text)
		if open == nil {
			continue
		}
		end := c.end.FindStringIndex(text[open[1]:])
		if end == nil {
			return "", true // still thinking when it ended
		}
		return text[open[1]+end[1]:], true
	}
	return text, false
}

// unopened cuts off the reasoning whose opening mark the template had written:
// all up to the first end of reasoning that no mark before it opened, unless it
// stands within a call.
func unopened(text string, hits []found) (rest string, ok bool) {
	for _, m := range closed.FindAllStringIndex(text, maxChannels) {
		if within(m[0], hits) {
			continue
		}
		before, harmony := text[:m[0]], text[m[0]] == '<' && text[m[0]+1] == '|'
		if opened.MatchString(before) || harmony && strings.Contains(before, "<|message|>") || !endsThought(text, m) {
			return text, false
		}
		return trim(strings.TrimPrefix(text[m[0]:], closing(text[m[0]:m[1]]))), true
	}
	return text, false
}

// endsThought reports whether a closing mark ends a thought and is not part of a
// sentence that goes on behind it.
func endsThought(text string, m []int) bool {
	line := text[strings.LastIndexByte(text[:m[0]], '\n')+1 : m[0]]
	after := text[m[1]:]
	return strings.TrimSpace(line) == "" || !strings.HasPrefix(after, " ") || strings.TrimSpace(after) == ""
}

// closing is the part of a closing mark that belongs to the reasoning: in harmony
// the next channel has begun.
func closing(mark string) string {
	if strings.HasPrefix(mark, "<|end|>") {
		return "<|end|>"
	}
	return mark
}

// within reports whether a hit covers the place at.
func within(at int, hits []found) bool {
	for _, h := range hits {
		if h.start < at && at < h.end {
			return true
		}
	}
	return false
}

// thinking reports whether a call behind text would stand in reasoning.
func thinking(text string) bool {
	at := 0
	for range maxChannels {
		open := opened.FindStringIndex(text[at:])
		if open == nil {
			return false
		}
		end := closed.FindStringIndex(text[at+open[1]:])
		if end == nil {
			return true
		}
		at += open[1] + end[1]
	}
	return true // who thinks that often is not believed
}
