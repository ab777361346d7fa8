//go:build linux

package llm

import (
	"strings"
	"testing"

	"tether/harness/growth"
)

// TestReadBounded: the work for a message that is made to be slow keeps pace with its
// size.
func TestReadBounded(t *testing.T) {
	const size = 16 << 10
	for _, unit := range []string{
		"{", "[", "{\"", "{\"a\n", "<function=x>", "<tool_call>{\"", "<tool_call>\n", "```\n", "```json\n{\n", "act(\n", "act(\"\n", "act('''\"\n", "read('''\n",
		"<think>", "<think>\n{\"cmd\":\"ls\"}\n", "</think>", "<act ", "<act cmd=\"", "<act>\n<cmd>", "call:act{", "<|channel|>", "<|channel|>analysis<|message|>",
		"<|channel|>commentary to=act<|message|>{", "[TOOL_CALLS]", "[TOOL_CALLS]act[ARGS]{\"", "Action: act\n", "{\"cmd\":\"ls\"}\n", "{\"cmd\":\"\n", "User:\n", "'", "\"", "\\", "\x00", "\xff", " ", "\n",
		"<tool_call>act\n<arg_key>", "<invoke name=\"act\">", "<parameter=cmd>", "/*", "//\n", "[\"a\",", "[act(",
	} {
		times := growth.Of(func(n int) {
			Read(Raw{Content: strings.Repeat(unit, n/len(unit)), Finish: "stop"}, granted)
			Read(Raw{ToolCalls: []RawCall{{toolName, strings.Repeat(unit, n/len(unit))}}}, granted)
		}, size/4)
		if times >= growth.Steep {
			t.Errorf("four times %q are %.1f times the work", unit, times)
		}
	}
}
