package llm

import "testing"

// What a model is, its name says, and not its folder or its server.
func TestFamilyOf(t *testing.T) {
	for name, want := range map[string]string{
		"ollama/qwen2.5-coder:7b":                      "qwen2.5-coder",
		"gguf:/home/phi-3/models/Qwen3-8B-Q4_K_M.gguf": "qwen3",
		"gguf:/srv/gemma/model.gguf":                   "",
		"llama/model@http://gpt-oss:8080":              "",
		"llama/gpt-oss-20b@http://127.0.0.1:8080":      "gpt-oss",
		"ollama/deepseek-r1:8b-0528-qwen3-q4":          "deepseek-r1",
		"ollama/qwen3-coder:30b":                       "qwen3-coder",
		"ollama/devstral:24b":                          "stral",
		"ollama/ministral-3:8b":                        "ministral",
		"ollama/gemma3:4b":                             "gemma",
		"ollama/gemma4:e4b":                            "gemma4",
		"ollama/phi4-mini":                             "phi4",
		"ollama/dolphin3":                              "",
		"ollama/smollm2:135m":                          "smollm",
		"openai/gpt-5-mini":                            "openai/gpt-5",
		"openai/olmo-3":                                "",
		"anthropic/claude-sonnet-4-5":                  "claude",
	} {
		if f := FamilyOf(name, nil); f.Match != want || want != "" && f.Why == "" {
			t.Errorf("%s is taken for %q (%s), want %q", name, f.Match, f.Why, want)
		}
	}
}

// Ids stay different, whatever a template wants.
func TestNine(t *testing.T) {
	for id, want := range map[string]string{"obs_3": "obs000003", "obs_123456": "obs123456", "7": "xxx000007", "é-": "xxx000000"} {
		if got := nine(id); got != want || len(got) != 9 {
			t.Errorf("%s became %s, want %s", id, got, want)
		}
	}
}
