//go:build linux

package llm

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// steep is a growth that is no longer that of work that keeps pace with its input: with
// four times the input such work grows four times, and what is squared sixteen times.
const steep = 8

// growth is how many times the work of f grows from an input of size to one four times
// as large. It is counted in processor time of this thread, which other work on the
// machine does not lengthen, and the best of ten tries counts, since caches are shared.
func growth(f func(size int), size int) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f(size) // what is made once
	small, large := math.Inf(1), math.Inf(1)
	for range 10 {
		small, large = min(small, cost(f, size)), min(large, cost(f, 4*size))
		if large < steep*small {
			break
		}
	}
	return large / small
}

// cost is the processor time of f in nanoseconds. Of less than some twenty microseconds
// nothing can be said.
func cost(f func(size int), size int) float64 {
	used := func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // it fails with a wrong number only
		return t.Nano()
	}
	before := used()
	f(size)
	return max(20e3, float64(used()-before))
}

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
		times := growth(func(n int) {
			Read(Raw{Content: strings.Repeat(unit, n/len(unit)), Finish: "stop"}, granted)
			Read(Raw{ToolCalls: []RawCall{{toolName, strings.Repeat(unit, n/len(unit))}}}, granted)
		}, size/4)
		if times >= steep {
			t.Errorf("four times %q are %.1f times the work", unit, times)
		}
	}
}
