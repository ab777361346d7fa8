package llm

import (
	"strings"
	"testing"
)

// TestChoose: which of the models of a server is taken where none is named, and
// what is said of it.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []offered
		want string
		why  string
	}{
		{"one", []offered{{"a", 70, false, true}}, "a", "the only one there"},
		{"the largest that fits", []offered{{"a:1b", 1, true, true}, {"b:8b", 8, true, true}, {"c:70b", 70, true, true}}, "b:8b", "of 3 the largest up to 10B that takes tools (8B)"},
		{"at the limit", []offered{{"a", 10, true, true}, {"b", 10.1, true, true}}, "a", "(10B)"},
		{"tools before size", []offered{{"a:9b", 9, false, true}, {"b:494m", 0.494, true, true}}, "b:494m", "(0.494B)"},
		{"no tools", []offered{{"a:1b", 1, false, true}, {"b:3b", 3, false, true}}, "b:3b", "none of them is known to take tools"},
		{"all too large", []offered{{"a:70b", 70, true, true}, {"b:27b", 27, true, true}}, "b:27b", "the smallest; all have more than 10B"},
		{"no text", []offered{{"embed:8b", 8, false, false}, {"a:1b", 1, false, true}}, "a:1b", "none of them"},
		{"sizes not known", []offered{{"a", 0, true, true}, {"b", 0, false, true}}, "a", "the largest up to 10B"},
		{"equal", []offered{{"new", 7, true, true}, {"old", 7, true, true}}, "new", "(7B)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := choose(c.all)
			if got != c.want || !strings.Contains(why, c.why) {
				t.Errorf("got %s, %q, want %s, %q", got, why, c.want, c.why)
			}
		})
	}
}

// TestAvailable: what can be opened now is named as it is opened.
func TestAvailable(t *testing.T) {
	t.Setenv("TETHER_MODELS", t.TempDir())
	ollama, llama := newFake(t, providers[0]), newFake(t, providers[1])
	t.Setenv("OLLAMA_HOST", ollama.URL)
	t.Setenv("TETHER_LLAMA_URL", llama.URL)
	if got, want := strings.Join(Available(t.Context()), " "), "ollama/m:1b ollama/n:7b llama/m"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
