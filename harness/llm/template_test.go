package llm

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	window "tether/context"
)

// templates are real chat templates (testdata/templates), each with the name of a
// model that has it. Tools is whether the template takes tools and shows calls
// again; lost is how much of the prompt stays when a user speaks in the middle of
// a task, in percent, if thoughts were passed back and if they were not. -1 is a
// template that refuses it. The numbers were measured once and are held here:
// they are why the table of families says what it says.
var templates = []struct {
	file, model      string
	tools            bool
	thought, without int
	nudged           bool // a nudge costs the prefix all the same
}{
	{"qwen3", "qwen3-8b", true, 54, 97, false},
	{"qwen3.5", "qwen3.5-9b", true, 65, 70, false},
	{"qwen3-coder", "qwen3-coder-30b", true, 99, 99, false},
	{"gemma-4", "gemma-4-12b", true, 38, 100, false},
	{"gpt-oss", "gpt-oss-20b", true, 99, 99, false},
	{"llama-3.1", "llama-3.1-8b", true, 98, 98, false},
	{"ministral", "ministral-3-8b", true, -1, -1, false},
	{"smollm3", "smollm3-3b", false, 95, 95, false},
	{"granite-4", "granite-4.0-tiny", true, 98, 98, false},
	{"mistral-small-3.2", "mistral-small-3.2", true, -1, -1, true},
	{"qwen2.5", "qwen2.5-coder-7b", true, 97, 97, false},
	{"deepseek-r1-distill", "deepseek-r1-distill-qwen-7b", false, 94, 94, false},
	{"phi-3.5", "phi-3.5-mini", false, 96, 96, false},
}

// TestTemplates holds the table of families against the families' own templates,
// on a real server: what tether sends is taken, all of it is in the prompt, and
// each prompt begins with the one before it.
func TestTemplates(t *testing.T) {
	for _, c := range templates {
		t.Run(c.file, func(t *testing.T) {
			s := underTemplate(t, c.file, c.model)
			if s.Info().Native != c.tools {
				t.Errorf("the template takes tools: %v, want %v", s.Info().Native, c.tools)
			}
			form := s.form
			t.Run("prefix", func(t *testing.T) { s.keepsPrefix(t, c.nudged) })
			s.constrain()
			t.Run("prefix constrained", func(t *testing.T) { s.keepsPrefix(t, false) })
			s.form = form
			for thought, want := range map[string]int{"": c.without, "I should look at the files first and then decide what to do next.": c.thought} {
				got := s.userKeeps(t, thought)
				t.Logf("a user message in mid-task keeps %d %% of the prompt, thoughts passed back: %v", got, thought != "")
				if got != want {
					t.Errorf("a user message keeps %d %% with the thought %q, want %d", got, thought, want)
				}
			}
		})
	}
}

// A dressed is a model of a server that runs under one of the templates.
type dressed struct {
	*Model
	url string
}

// underTemplate starts the smallest model under a template, by the name that a
// model of that family has.
func underTemplate(t *testing.T, file, name string) dressed {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "templates", file+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	argv, err := installServer(t.Context(), cacheDir(), func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	settings := packagedSettings(smallModel(t), 4096, 0)
	settings["chat_template"], settings["model_alias"] = string(text), []string{name}
	s, err := launch(append(argv, compact(settings)), filepath.Join(t.TempDir(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop() })
	if err := s.wait(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), Config{Model: "llama/" + name + "@" + s.url, Commands: granted, MaxTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	return dressed{m, s.url}
}

// render is the prompt that the server makes of the body of a request, and
// where in it the model begins to write. It is "" if the template refuses it.
func (s dressed) render(t *testing.T, body []byte) (prompt string, end int) {
	t.Helper()
	var texts [2]string
	for i, turn := range []string{"true", "false"} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			t.Fatal(err)
		}
		fields["add_generation_prompt"] = json.RawMessage(turn)
		status, answer, err := get(t.Context(), newTransport(nil), http.MethodPost, s.url+"/apply-template", "", []byte(compact(fields)))
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Prompt string }
		if status != http.StatusOK {
			return "", 0
		}
		if err := json.Unmarshal(answer, &p); err != nil {
			t.Fatal(err)
		}
		texts[i] = p.Prompt
	}
	return texts[0], alike(texts[0], texts[1])
}

// alike is the number of bytes with which a and b begin alike.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// session is a task up to each of its requests: results, a write, a nudge after
// words that were no call, a gate that failed, and a person who has something to
// say.
func session() []window.Request {
	act := func(id, cmd, stdin, out string) []window.Message {
		return []window.Message{
			{Role: window.RoleAssistant, Call: &window.Call{Cmd: cmd, Stdin: stdin}, ID: id},
			{Role: window.RoleTool, Text: out, ID: id},
		}
	}
	steps := [][]window.Message{
		act("obs_1", "sh ls", "", "a.go\nb.go\nWhat next?"),
		act("obs_2", "write a.txt", "<one> & \"two\"\nthree\n", "a.txt holds 2 lines"),
		{{Role: window.RoleAssistant, Text: "I will now look at the files.", ID: "obs_3"}, {Role: window.RoleTool, Text: "that was no call", ID: "obs_3"}},
		act("obs_4", "done all green", "", "the gate failed: go test ./..."),
		append(act("obs_5", "sh go test ./...", "", "FAIL TestA"), window.Message{Role: window.RoleUser, Text: "leave TestB alone", ID: "obs_6"}),
		act("obs_7", "read a.go", "", "package a"),
	}
	msgs := ask.Messages
	requests := []window.Request{{Messages: msgs}}
	for _, s := range steps {
		msgs = append(msgs[:len(msgs):len(msgs)], s...)
		requests = append(requests, window.Request{Messages: msgs})
	}
	return requests
}

// keepsPrefix holds that every prompt of a session goes on from the one before
// it, and that nothing that was said is left out.
// A template of which nudged is true loses it at the nudge, which is held too.
func (s dressed) keepsPrefix(t *testing.T, nudged bool) {
	before := ""
	for i, r := range session() {
		body, err := s.Body(r)
		if err != nil {
			t.Fatal(err)
		}
		prompt, end := s.render(t, body)
		if prompt == "" {
			t.Fatalf("the template refuses request %d: %s", i, body)
		}
		if n := alike(prompt, before); nudged && i == 3 {
			if n >= len(before) {
				t.Error("the nudge costs nothing here: the table may say so")
			}
		} else if n < len(before) {
			t.Errorf("request %d keeps %d of %d bytes: %q became %q", i, n, len(before), clip(before[n:], 80), clip(prompt[n:], 80))
		}
		for _, m := range r.Messages {
			if first, _, _ := strings.Cut(m.Text, "\n"); !strings.Contains(prompt, first) {
				t.Errorf("request %d has not %q in its prompt", i, first)
			}
		}
		before = prompt[:end]
	}
}

// userKeeps is the share of a prompt, in percent, that stays when a user speaks
// after it; -1 if the template refuses that. thought is passed back with each of
// the model's messages, if it is not empty.
func (s dressed) userKeeps(t *testing.T, thought string) int {
	r := session()[2]
	result, form := s.wire.Result, s.form
	defer func() { s.wire.Result, s.form = result, form }()
	render := func(r window.Request) string {
		body, err := s.Body(r)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		if thought != "" {
			text = strings.ReplaceAll(text, `"role":"assistant",`, `"role":"assistant","reasoning_content":`+compact(thought)+",")
		}
		text = strings.ReplaceAll(text, `"role":"developer"`, `"role":"user"`)
		prompt, _ := s.render(t, []byte(text))
		return prompt
	}
	before := render(r)
	if before == "" {
		t.Fatal("the template refuses a session without a user in its middle")
	}
	r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)], window.Message{Role: "developer", Text: "look again"})
	after := render(r)
	if after == "" {
		return -1
	}
	return 100 * alike(before, after) / len(before)
}
