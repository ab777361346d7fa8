package llm

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 120 * time.Second // until the model is loaded: 8 GB from a slow disk
	stopGrace  = 3 * time.Second   // between SIGTERM and SIGKILL
	logLimit   = 1 << 20           // bytes of a server's log that are kept
	tailLimit  = 4 << 10           // bytes of it that are kept in memory, to say why a server died

	// promptCache is how much main memory (MiB) the server may use to keep the prompts of other conversations. With one
	// slot, sub-agents that take turns would else read their whole prompt again each time. One conversation of 8k tokens
	// takes about 230 MiB with a 1.5B model; the server's own default of 8 GiB would push a laptop into swap.
	promptCache = 1024

	// spins is how often a thread of the server looks for its next piece of work before it sleeps. The default of GNU
	// OpenMP looks 300,000 times; on two cores with anything else to do (a gate, a build) the threads then wait for one
	// another's time slices, and 1.5B at 10 tokens a second becomes 0.3.
	spins = "GOMP_SPINCOUNT=2000"

	// usualPort is where tether and others look for a llama-server when no address is named.
	usualPort = 8080
)

// startServer starts a llama.cpp server for a model file and waits until it can answer. The server listens on the
// loopback interface only, and has one slot, so that the whole window belongs to one conversation. stop ends it and may
// be called more than once; if tether dies, however it dies, the server dies too. ctx bounds the start only. Errors:
// *MissingModelError for a file that is missing or no model, *UnreachableError for a server that does not come up.
func startServer(ctx context.Context, c Config, path string) (url string, stop func() error, err error) {
	s, err := start(ctx, c, path, 0)
	if err != nil {
		return "", nil, err
	}
	return s.url, s.stop, nil
}

// Serve runs a llama.cpp server for a model file in the foreground until ctx ends, which is no error. window is in
// tokens, 0 for DefaultWindow. log gets words for the person who waits, last the address; the server takes the port at
// which tether looks for one, if it is free. Errors are those of a model that is opened as gguf:PATH.
func Serve(ctx context.Context, path string, window int, log func(string)) error {
	s, err := start(ctx, Config{Window: window, Log: log}, path, freePort(usualPort))
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if log != nil {
		log("serving " + filepath.Base(path) + " at " + s.url)
	}
	select {
	case <-ctx.Done():
		return s.stop()
	case <-s.gone:
		return s.died(path)
	}
}

// freePort gives want if it is free now, else 0: the server then takes any.
func freePort(want int) int {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", want))
	if err != nil {
		return 0
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// server is a llama.cpp server that runs.
type server struct {
	url    string
	cmd    *exec.Cmd
	stdin  io.Closer
	answer *io.PipeReader // its standard output
	log    *serverLog
	gone   chan struct{} // closed when the process has ended
	end    error         // how; read it after gone
	once   sync.Once
}

func start(ctx context.Context, c Config, path string, port int) (*server, error) {
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.CacheDir = cmp.Or(c.CacheDir, cacheDir())
	if c.Log == nil {
		c.Log = func(string) {}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := checkGGUF(path); err != nil {
		return nil, &MissingModelError{Model: "gguf:" + path, Repair: err.Error()}
	}
	argv, err := serverCommand(ctx, c, path, &port)
	if err != nil {
		return nil, notServed(path, err)
	}
	s, err := launch(argv, filepath.Join(c.CacheDir, "llama", "server.log"))
	if err != nil {
		return nil, notServed(path, err)
	}
	c.Log("loading " + filepath.Base(path))
	if port != 0 {
		s.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	}
	if err := s.wait(ctx, c.Log); err != nil {
		_ = s.stop() // the reason is err
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, notServed(path, err)
	}
	return s, nil
}

// notServed dresses an error as that of a server that cannot be had.
func notServed(path string, err error) error {
	return &UnreachableError{URL: "gguf:" + path, Cause: err, Repair: "llama-server -m " + path + " --jinja"}
}

// serverCommand chooses the server: the user's own, which may use a GPU, before the packaged one. The user's needs a
// port to be named; the packaged one finds a free port itself.
func serverCommand(ctx context.Context, c Config, path string, port *int) ([]string, error) {
	if own, err := exec.LookPath("llama-server"); err == nil {
		if *port == 0 {
			*port = freePort(0)
		}
		return append([]string{own}, ownArgs(path, c.Window, *port)...), nil
	}
	argv, err := installServer(ctx, c.CacheDir, c.Log)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(packagedSettings(path, c.Window, *port))
	return append(argv, string(settings)), err
}

// ownArgs are flags that llama-server has had since early 2025.
func ownArgs(path string, window, port int) []string {
	return []string{"--model", path, "--ctx-size", fmt.Sprint(window), "--parallel", "1", "--host", "127.0.0.1",
		"--port", fmt.Sprint(port), "--threads", fmt.Sprint(runtime.NumCPU()), "--jinja", "--no-warmup"}
}

// packagedSettings are fields of llama.cpp's common_params, as xllamacpp names them; serve.py sets them. What is not
// named here was measured and its default kept.
func packagedSettings(path string, window, port int) map[string]any {
	return map[string]any{
		"path":          path,
		"port":          port,
		"hostnames":     []string{"127.0.0.1"},
		"cors_origins":  "", // no web page may read what is asked and answered here
		"threads":       runtime.NumCPU(),
		"n_ctx":         window,
		"n_parallel":    1,
		"fit_params":    false, // the window is as it was asked for; fitting it to a GPU costs a second load
		"warmup":        false, // an empty run before the first: the prompt warms up as well
		"use_jinja":     true,  // the model's own template, tools included
		"cache_prompt":  true,
		"cache_ram_mib": promptCache,
		"ui":            false,
		"verbosity":     2, // errors and warnings
	}
}

// launch starts the process. The kernel kills it when the thread that started it ends, and Go ends threads as it
// likes: so the thread is held until the process has ended. The process also ends when its standard input does, and is a
// group of its own so that Ctrl-C reaches tether alone.
func launch(argv []string, logPath string) (*server, error) {
	log, err := openServerLog(logPath)
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(argv[0], argv[1:]...), log: log, gone: make(chan struct{})}
	var answer *io.PipeWriter
	s.answer, answer = io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr = answer, log
	s.cmd.SysProcAttr = serverAttributes()
	s.cmd.WaitDelay = stopGrace
	s.cmd.Env = append([]string{spins}, os.Environ()...) // the last one counts: the user's own
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer log.Close()
		defer answer.Close()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.end = s.cmd.Wait()
			close(s.gone)
		}
	}()
	return s, <-started
}

// stop ends the process and waits for it.
func (s *server) stop() error {
	s.once.Do(func() {
		s.stdin.Close()
		s.signal(syscall.SIGTERM)
		select {
		case <-s.gone:
		case <-time.After(stopGrace):
			s.signal(syscall.SIGKILL)
		}
	})
	<-s.gone
	return nil
}

// signal reaches the whole group of the process.
func (s *server) signal(sig syscall.Signal) {
	select {
	case <-s.gone: // the number may belong to another by now
	default:
		_ = syscall.Kill(-s.cmd.Process.Pid, sig) // it may end just now
	}
}

// died says how the process ended, with its last words.
func (s *server) died(path string) error {
	return notServed(path, s.ended())
}

func (s *server) ended() error {
	how := "it stopped"
	if s.end != nil {
		how = "it ended (" + s.end.Error() + ")"
	}
	words := s.log.last()
	if words != "" {
		how += ": " + words
	}
	if strings.Contains(words, "libgomp.so") {
		how += "; install libgomp1 (Debian, Ubuntu: apt install libgomp1)"
	}
	return errors.New(how)
}

// wait returns when the server can answer, and at once when it has died.
func (s *server) wait(ctx context.Context, log func(string)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("the model was not loaded after %v", startLimit))
	defer cancel()
	address := make(chan string, 1)
	go s.listen(address)
	begun := time.Now()
	words := time.NewTicker(5 * time.Second)
	defer words.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-s.gone:
			return s.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		case s.url = <-address:
		case <-words.C:
			log(fmt.Sprintf("still loading the model (%d s)", int(time.Since(begun).Seconds())))
		case <-look.C:
			if s.url != "" && healthy(ctx, s.url) {
				return nil
			}
		}
	}
}

// listen reads the address that serve.py prints, and whatever else comes until the end: a server must not block on
// its own output.
func (s *server) listen(address chan<- string) {
	r := bufio.NewReader(s.answer)
	line, _ := r.ReadString('\n') // at the end of the output there is no address, and s.gone tells
	var a struct{ URL string }
	if json.Unmarshal([]byte(line), &a) == nil && a.URL != "" {
		address <- a.URL
	}
	_, _ = io.Copy(io.Discard, r)
}

func healthy(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return false
	}
	resp, err := loopbackClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// loopbackClient passes by any proxy that the environment names.
var loopbackClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// serverLog keeps what a server prints: up to logLimit bytes in a file, the last few lines in memory.
type serverLog struct {
	mu   sync.Mutex
	file *os.File
	room int64
	tail []byte
}

// openServerLog appends to the file, for several servers may share it, but begins anew when it has grown.
func openServerLog(path string) (*serverLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the cache directory: %w", err)
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if fileSize(path) > logLimit {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o600)
	return &serverLog{file: f, room: logLimit}, err
}

// Write never fails: a full disk must not stop the server.
func (l *serverLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.room, int64(len(b)))
	_, _ = l.file.Write(b[:n])
	l.room -= n
	l.tail = append(l.tail, b...)
	if over := len(l.tail) - tailLimit; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	return len(b), nil
}

// Close closes the file; what is in memory stays.
func (l *serverLog) Close() error { return l.file.Close() }

// last gives the last eight lines, which hold the reason of a server that died: llama.cpp says it first, then repeats
// at every level that something failed.
func (l *serverLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(l.tail), "")), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
