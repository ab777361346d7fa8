package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdModel serves the replies of model.jsonl as an OpenAI-compatible endpoint
// does, and keeps the body of request N in the file sent/N. A line "hang" writes
// to begun in the workspace and then never answers; "overflow N" refuses the
// request, because the window is N tokens; "text T" is a reply that is no call.
// With untold it does not say how much of a prompt it still held, as Ollama does not.
func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	untold := slices.Equal(args, []string{"untold"})
	if neg || len(args) != 0 && !untold {
		ts.Fatalf("usage: model [untold]")
	}
	work := ts.Getenv("WORK")
	replies := strings.Split(strings.TrimSpace(ts.ReadFile(filepath.Join(work, "model.jsonl"))), "\n")
	ts.Check(os.MkdirAll(filepath.Join(work, "sent"), 0o755))
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[{"id":"fake"}]}`) })
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1))
		body, err := io.ReadAll(r.Body)
		err = errors.Join(err, os.WriteFile(filepath.Join(work, "sent", strconv.Itoa(n)), body, 0o644))
		switch {
		case err != nil || n > len(replies):
			http.Error(w, fmt.Sprintf("request %d: %v", n, err), http.StatusTeapot)
			return
		case replies[n-1] == "hang":
			if f, err := os.OpenFile(filepath.Join(work, "ws", "begun"), os.O_WRONLY, 0); err == nil { // the FIFO of during
				io.WriteString(f, ".")
				f.Close()
			}
			<-r.Context().Done()
			return
		}
		if limit, ok := strings.CutPrefix(replies[n-1], "overflow "); ok {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %s tokens. However, your messages resulted in more."}}`, limit)
			return
		}
		if text, ok := strings.CutPrefix(replies[n-1], "text "); ok {
			io.WriteString(w, prose(text, len(body)))
			return
		}
		reply := completion(replies[n-1], len(body))
		if untold {
			reply = strings.Replace(reply, `,"prompt_tokens_details":{"cached_tokens":7}`, "", 1)
		}
		io.WriteString(w, reply)
	})
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	ts.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
}

// completion is the stream of a reply that calls act with the arguments call.
// The usage is such that the bytes of a token must be measured to be known.
func completion(call string, size int) string {
	args, _ := json.Marshal(call) // a string is never refused
	return fmt.Sprintf(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"act","arguments":%s}}]},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":7}}}

data: [DONE]

`, args, size*10/37)
}

// prose is the stream of a reply that is a text, with the usage of completion.
func prose(text string, size int) string {
	content, _ := json.Marshal(text)
	stream := strings.Replace(completion("", size), `"tool_calls":[{"index":0,"id":"c","function":{"name":"act","arguments":""}}]`, `"content":`+string(content), 1)
	return strings.Replace(stream, `"finish_reason":"tool_calls"`, `"finish_reason":"stop"`, 1)
}

// cmdWindows compares what tether show --window prints with what was sent.
func cmdWindows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: windows")
	}
	sent, err := filepath.Glob(filepath.Join(ts.Getenv("WORK"), "sent", "*"))
	if err != nil || len(sent) == 0 {
		ts.Fatalf("nothing was sent: %v", err)
	}
	for n := range len(sent) {
		want := ts.ReadFile(filepath.Join(ts.Getenv("WORK"), "sent", strconv.Itoa(n+1)))
		ts.Check(ts.Exec("tether", "show", "--window", strconv.Itoa(n+1)))
		if got := ts.ReadFile("stdout"); got != want {
			ts.Fatalf("window %d is\n%q\nand this was sent:\n%q", n+1, got, want)
		}
		if said := ts.ReadFile("stderr"); said != "" {
			ts.Fatalf("window %d: %s", n+1, said)
		}
	}
}

// cmdOllama serves what discovery asks of an Ollama with these models.
func cmdOllama(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: ollama NAME…")
	}
	type named struct {
		Name string `json:"name"`
	}
	var models []named
	for _, name := range args {
		models = append(models, named{name})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/version", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"version":"0.17.4"}`) })
	mux.HandleFunc("/api/tags", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"models": models}) // a client that went away has failed already
	})
	mux.HandleFunc("/api/show", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Model string }
		if json.NewDecoder(r.Body).Decode(&asked) != nil || !slices.Contains(args, asked.Model) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"error":"model not found"}`)
			return
		}
		io.WriteString(w, `{"capabilities":["completion","tools"],"model_info":{"x.context_length":32768}}`)
	})
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	ts.Setenv("OLLAMA_HOST", s.URL)
}
