package llm

import "testing"

// overflows are the words of each server for a prompt that does not fit, and the
// window that they name.
var overflows = []struct {
	server string
	status int
	text   string
	limit  int
}{
	{"llama.cpp", 400, "request (16717 tokens) exceeds the available context size (16384 tokens), try increasing it", 16384},
	{"llama.cpp, 2025", 400, "the request exceeds the available context size. try increasing the context size or enable context shift", 0},
	{"llama.cpp while it writes", 500, "Context size has been exceeded.", 0},
	{"llama-cpp-python", 400, "Requested tokens (5021) exceed context window of 4096", 4096},
	{"Ollama, with llama.cpp's words inside", 400, `{"error":{"code":400,"message":"request (351 tokens) exceeds the available context size (256 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":351,"n_ctx":256}}`, 256},
	{"Ollama", 400, "the input length exceeds the context length", 0},
	{"Ollama, cloud", 400, "prompt too long; exceeded max context length by 512 tokens", 0},
	{"OpenAI", 400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9215 tokens. Please reduce the length of the messages.", 8192},
	{"OpenAI, code alone", 400, "context_length_exceeded", 0},
	{"DeepSeek", 400, "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.", 131072},
	{"vLLM", 400, "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion. None", 16384},
	{"vLLM, V1", 400, "The decoder prompt (length 21535) is longer than the maximum model length of 16384. Make sure that `max_model_len` is no smaller than the number of text tokens.", 16384},
	{"vLLM, completion", 400, "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 4096 tokens and your request has 3000 input tokens (2048 > 4096 - 3000).", 4096},
	{"LM Studio", 400, "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input", 4096},
	{"LM Studio, 2026", 400, "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424},
	{"LM Studio, policy", 400, "Reached context length of 4096 tokens with this model", 4096},
	{"Anthropic", 400, "prompt is too long: 210000 tokens > 200000 maximum", 200000},
	{"Anthropic, with the reply", 400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again", 200000},
	{"TGI", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1244 `inputs` tokens and 1000 `max_new_tokens`", 2048},
	{"TGI, input", 422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 5003", 1024},
	{"sglang", 400, "The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192},
	{"sglang, request", 400, "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9300 tokens", 8192},
	{"sglang, input", 400, "Input length (9000 tokens) exceeds the maximum allowed length (8187 tokens). Use a shorter input or enable --allow-auto-truncate.", 8187},
	{"OpenRouter", 400, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40120 tokens (38072 of text input, 2048 in the output).", 32768},
	{"Mistral", 400, "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum context length", 0},
}

// TestOverflowWords: an overflow is known by each server's words, whatever its
// status, and the number that is the window is told from the others.
func TestOverflowWords(t *testing.T) {
	for _, c := range overflows {
		if e := serverError(c.status, c.text); e.Class != Overflow || e.Limit != c.limit {
			t.Errorf("%s: %q is %s with a window of %d, want overflow, %d", c.server, c.text, e.Class, e.Limit, c.limit)
		}
	}
}

// TestOtherWords: what is no overflow is not answered by folding.
func TestOtherWords(t *testing.T) {
	for text, want := range map[string]Class{
		"registry.ollama.ai/library/x does not support tools": Tools,
		"tools param requires --jinja flag":                   Tools,
		"Loading model":                                       Loading,
		"max_tokens must be at least 1":                       Other,
		"out of memory":                                       Other,
		"Rate limit reached for tokens per minute: Limit 6000, Requested 9000":         Other,
		"The model produced output that does not match the expected peg-native format": Format,
		"context canceled":        Other,
		"unknown field 'context'": Other,
	} {
		if e := serverError(400, text); e.Class != want || e.Limit != 0 {
			t.Errorf("%q is %s, want %s", text, e.Class, want)
		}
	}
}
