package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary stand in for tether: a script that runs tether
// runs this package's main in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tether": main})
}

// TestScript runs testdata/script/*.txtar, whole command lines against the real
// sandbox and the real store. Besides the commands of testscript there are:
//
//	status N program args…          run it; exit status N, and no escape byte in what it prints
//	json FILE SHAPE                 the JSON values in FILE have that shape (see shapes)
//	field FILE PATH VALUE           in the last of them; PATH such as gates.0.status
//	during FIFO SIG N program args… send it SIG when FIFO has a writer; exit status N, nothing is left behind
//	model                           serve model.jsonl at OPENAI_BASE_URL, and keep each request as sent/N
//	windows                         the newest session's windows are sent/1, sent/2, …
//	newest                          ID is the newest session's id, PREFIX all but its last character
//	ollama NAME…                    serve the list of these models at OLLAMA_HOST
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": cmdStatus, "json": cmdJSON, "field": cmdField, "during": cmdDuring,
			"model": cmdModel, "windows": cmdWindows, "newest": cmdNewest, "ollama": cmdOllama,
		},
	})
}

// TestScriptsUseStatus: only status looks for escape bytes and at the number.
func TestScriptsUseStatus(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "exec tether") {
			t.Errorf("%s runs tether with exec; want status", file)
		}
	}
}

// setUp gives a script a home of its own, no model server, and the workspace
// ws to stand in. Nothing of tether's environment comes in: testscript starts
// with an empty one.
func setUp(e *testscript.Env) error {
	dir := func(name string) string { return filepath.Join(e.WorkDir, name) }
	for name, value := range map[string]string{
		"HOME": dir("home"), "XDG_CONFIG_HOME": dir("xdg/config"), "XDG_STATE_HOME": dir("xdg/state"),
		"XDG_CACHE_HOME": dir("xdg/cache"), "XDG_DATA_HOME": dir("xdg/data"),
		"OLLAMA_HOST": "http://127.0.0.1:1", "TETHER_LLAMA_URL": "http://127.0.0.1:1",
		"M": "script:" + dir("model.jsonl"),
	} {
		e.Setenv(name, value)
	}
	e.Cd = dir("ws")
	return errors.Join(os.MkdirAll(dir("home"), 0o755), os.MkdirAll(e.Cd, 0o755))
}

// cmdStatus runs a program and looks at how it ended.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := exitStatus(ts, ts.Exec(args[1], args[2:]...))
	noEscape(ts, "stdout", ts.ReadFile("stdout"))
	noEscape(ts, "stderr", ts.ReadFile("stderr"))
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// exitStatus is the status in err, which exec returned.
func exitStatus(ts *testscript.TestScript, err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// noEscape: off a terminal nothing that could move a cursor is printed.
func noEscape(ts *testscript.TestScript, name, text string) {
	if i := strings.IndexAny(text, "\x1b\r\x07\x08"); i >= 0 {
		ts.Fatalf("%s has a control byte: %q", name, text[max(i-20, 0):min(i+20, len(text))])
	}
}

// shapes are the objects that DESIGN 8 fixes, by example: a value has the type
// of the one here. 0 is a whole number and 0.5 any number; a list has values
// like its first one, if there is one. There may be more fields than these.
var shapes = map[string]string{
	"act": `{"v":1,"cmd":"","status":0,"output":"","obs":"","ms":0}`,
	"run": `{"v":1,"session":"","task":"","stop":"","exit":0,"report":"","steps":0,"model":"","sandbox":"",
		"gates":[{"cmd":"","status":0,"tries":0}],"tokens":{"prompt":0,"cached":0,"output":0},"seconds":0.5,"changed":[""]}`,
	"show": `{"v":1,"session":"","task":"","stop":"","exit":0,"report":"","model":"","sandbox":"",
		"gates":[{"cmd":"","status":0,"tries":0}],"tokens":{"prompt":0,"cached":0,"output":0},"seconds":0.5,"changed":[""],
		"steps":[{"n":0,"cmd":"","stdin":"","status":0,"output":"","obs":""}],
		"requests":[{"n":0,"prompt":0,"cached":0,"first_token_ms":0,"folded":0}]}`,
	"ls":     `{"v":1,"session":"","task":"","model":"","started":"","stop":"","exit":0}`,
	"doctor": `{"v":1,"ok":true,"checks":[{"name":"","ok":true,"needed":true,"found":""}]}`,
	"event":  `{"v":1,"type":""}`,
}

// eventShapes are the fields that a type of event has besides.
var eventShapes = map[string]string{
	"start": `{"session":"","task":"","model":""}`, "act": `{"n":0,"cmd":""}`,
	"observation": `{"n":0,"obs":"","status":0,"output":""}`, "gate": `{"n":0,"cmd":"","status":0}`,
	"cache": `{"n":0}`, "warning": `{"n":0,"output":""}`,
}

// cmdJSON checks every JSON value of a file. Each stands on a line of its own,
// so that a program can read the output line by line.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || shapes[args[1]] == "" {
		ts.Fatalf("usage: json FILE SHAPE")
	}
	all := lines(ts, args[0])
	for i, v := range all {
		if err := like("", v, decode(ts, shapes[args[1]])); err != nil {
			ts.Fatalf("line %d: %v", i+1, err)
		}
		if args[1] == "event" {
			checkEvent(ts, v.(map[string]any), i == len(all)-1)
		}
	}
}

// checkEvent checks one event; the result comes last and nowhere else.
func checkEvent(ts *testscript.TestScript, e map[string]any, last bool) {
	kind := e["type"].(string)
	if (kind == "result") != last {
		ts.Fatalf("the event %q, and being the last one is %v", kind, last)
	}
	shape, got := eventShapes[kind], any(e)
	if kind == "result" {
		shape, got = shapes["run"], e["result"]
	}
	if shape == "" {
		ts.Fatalf("there is no event %q", kind)
	}
	if err := like(kind, got, decode(ts, shape)); err != nil {
		ts.Fatalf("%v", err)
	}
}

// lines are the JSON values of a file, a line each.
func lines(ts *testscript.TestScript, file string) []any {
	text := strings.TrimSuffix(ts.ReadFile(file), "\n")
	if text == "" {
		ts.Fatalf("%s is empty", file)
	}
	var all []any
	for _, line := range strings.Split(text, "\n") {
		all = append(all, decode(ts, line))
	}
	return all
}

func decode(ts *testscript.TestScript, text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%q is no JSON: %v", text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		ts.Fatalf("%q is more than one JSON value", text)
	}
	return v
}

// like says where got differs in type from the example want.
func like(path string, got, want any) error {
	if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
		return fmt.Errorf("%s is %v (%T), want one like %v (%T)", path, got, got, want, want)
	}
	switch want := want.(type) {
	case json.Number:
		if n := got.(json.Number); !strings.Contains(want.String(), ".") && strings.ContainsAny(n.String(), ".eE") {
			return fmt.Errorf("%s is %v, want a whole number", path, n)
		}
	case map[string]any:
		for key, w := range want {
			if err := like(path+"."+key, got.(map[string]any)[key], w); err != nil {
				return err
			}
		}
	case []any:
		for i, g := range got.([]any) {
			if err := like(fmt.Sprintf("%s.%d", path, i), g, want[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// cmdField compares one value of the last line. A list or an object is
// compared as JSON.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field FILE PATH VALUE")
	}
	all := lines(ts, args[0])
	v := all[len(all)-1]
	for _, key := range strings.Split(args[1], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(in) {
				ts.Fatalf("%s: there is no %s in a list of %d", args[1], key, len(in))
			}
			v = in[n]
		default:
			ts.Fatalf("%s: there is no %s in %v", args[1], key, v)
		}
	}
	got, ok := v.(string)
	if !ok {
		raw, err := json.Marshal(v)
		ts.Check(err)
		got = string(raw)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %q, and being %q should be %v", args[1], got, args[2], !neg)
	}
}

// patience is how long a script waits for something that takes milliseconds.
const patience = 30 * time.Second

// cmdDuring runs a program whose command opens FIFO for writing, writes and
// keeps it open; sends SIG then; and waits for the end of the program and of
// everything that holds FIFO: of the whole process tree.
func cmdDuring(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: during FIFO SIG N program args…")
	}
	fifo := ts.MkAbs(args[0])
	ts.Check(syscall.Mkfifo(fifo, 0o600))
	sig, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[1]]
	want, err := strconv.Atoi(args[2])
	if err != nil || !ok {
		ts.Fatalf("during: a signal and a number, not %s %s", args[1], args[2])
	}
	name, err := exec.LookPath(args[3])
	ts.Check(err)
	cmd := exec.Command(name, args[4:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	held := openFIFO(fifo, ended)
	if held == nil {
		_ = cmd.Process.Kill()
		ts.Fatalf("nothing opened %s\n%s%s", args[0], stdout.String(), stderr.String())
	}
	defer held.Close()
	ts.Check(held.SetReadDeadline(time.Now().Add(patience)))
	_, err = held.Read(make([]byte, 1))
	ts.Check(err)
	ts.Check(cmd.Process.Signal(sig))
	if _, err := io.Copy(io.Discard, held); err != nil {
		ts.Fatalf("something of it still runs: %v", err)
	}
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](<-ended); ok {
		if got = exit.ExitCode(); exit.Sys().(syscall.WaitStatus).Signaled() {
			got = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
		}
	}
	noEscape(ts, "stdout", stdout.String())
	noEscape(ts, "stderr", stderr.String())
	fmt.Fprint(ts.Stdout(), stdout.String())
	fmt.Fprint(ts.Stderr(), stderr.String())
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// openFIFO opens a FIFO for reading, which waits for its writer. It gives up,
// with nil, when ended is ready or patience is over, and leaves ended filled.
func openFIFO(path string, ended chan error) *os.File {
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(path)
		opened <- f
	}()
	select {
	case f := <-opened:
		return f
	case err := <-ended:
		ended <- err
	case <-time.After(patience):
	}
	if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		w.Close() // the other end of the Open that waits
	}
	if f := <-opened; f != nil {
		f.Close()
	}
	return nil
}

// environment is the script's, for a process that this file starts itself.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
		"OLLAMA_HOST", "TETHER_LLAMA_URL", "GORACE", "GOCOVERDIR"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// cmdModel serves the replies of model.jsonl as an OpenAI-compatible endpoint
// does, and keeps the body of request N in the file sent/N.
func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: model")
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
		if err != nil || n > len(replies) {
			http.Error(w, fmt.Sprintf("request %d: %v", n, err), http.StatusTeapot)
			return
		}
		io.WriteString(w, completion(replies[n-1], len(body)))
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

// cmdNewest sets ID and PREFIX.
func cmdNewest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: newest")
	}
	ts.Check(ts.Exec("tether", "ls", "-n", "1", "--json"))
	id := lines(ts, "stdout")[0].(map[string]any)["session"].(string)
	ts.Setenv("ID", id)
	ts.Setenv("PREFIX", id[:len(id)-1])
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
