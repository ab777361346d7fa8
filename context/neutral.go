package window

import (
	"regexp"
	"strings"
)

// A file or a program may print the words with which a chat template marks whose
// turn it is, and a server reads them as such wherever they stand: "<|im_end|>"
// in a README ends the message, and what follows it speaks as the user. So a bar
// stands behind the first character of each, in everything that is shown to a
// model and is not its own. A model copies what it reads: where it writes the bar
// it is taken away again, and the file gets what it held.

// bar breaks a marker. It is in no template and in hardly any text.
const bar = "¦"

// The rest of a marker behind "<" or "[" and the bars: of the families of
// templates that llama.cpp and Ollama know.
var (
	angle = regexp.MustCompile(`^(?:` +
		`\|[\w.:/-]{1,40}\|?>|` + // ChatML, Llama 3, Phi, Granite, GLM, harmony; Gemma 4 without the second bar
		`\w{1,40}\|>|` + // Gemma 4, at the end
		`｜[^｜<>\n]{1,40}｜>|` + // DeepSeek
		`/?(?:start_of_turn|end_of_turn|tool_call|tool_calls|tool_response|think|eos|bos)>|` + // Gemma, Qwen
		`</?SYS>>)`) // Llama 2
	square = regexp.MustCompile(`^(?:` +
		`/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|gMASK)\]|` + // Mistral, GLM
		`\|/?\w{1,40}\|\])`) // EXAONE
)

// longest is more than the rest of a marker has in bytes.
const longest = 200

// Neutral breaks the markers in s, so that no server takes them for its own.
func Neutral(s string) string {
	return markers(s, func(bars string) string { return bar + bars })
}

// Plain is what Neutral was given: it takes one bar out of each broken marker.
func Plain(s string) string {
	if !strings.Contains(s, bar) {
		return s
	}
	return markers(s, func(bars string) string { return strings.TrimPrefix(bars, bar) })
}

// markers changes the bars in each marker of s, broken or not.
func markers(s string, change func(bars string) string) string {
	var b strings.Builder
	done := 0
	for i := 0; ; i++ {
		next := strings.IndexAny(s[i:], "<[")
		if next < 0 {
			break
		}
		i += next
		rest := strings.TrimLeft(s[i+1:], bar)
		family := angle
		if s[i] == '[' {
			family = square
		}
		if !family.MatchString(rest[:min(longest, len(rest))]) {
			continue
		}
		b.WriteString(s[done : i+1])
		done = len(s) - len(rest)
		b.WriteString(change(s[i+1 : done]))
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}
