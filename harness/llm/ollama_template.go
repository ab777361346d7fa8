package llm

import "strings"

// noTemplate is the template that Ollama gives to a model whose own it does not know, such
// as a GGUF file that was imported. Of a conversation it shows the model the bare text
// of the user's messages: no system message, no reply and no result of a tool.
const noTemplate = "{{ .Prompt }}"

// templated refuses a model that would be shown the last message and nothing else.
// Nothing on the wire tells: the server answers, and counts few tokens.
func templated(name, template string) error {
	if strings.TrimSpace(template) != noTemplate {
		return nil
	}
	return &ConfigError{Setting: "model", Problem: "ollama/" + name + " has no chat template: Ollama shows it the last message and nothing else\n" +
		"take the model from Ollama's library (ollama pull), give it a TEMPLATE in a Modelfile,\n" +
		"or name its file, from which the template is read: --model gguf:PATH"}
}
