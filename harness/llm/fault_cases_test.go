package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	window "tether/context"
)

// handed is the case called id of those that package harness keeps.
func handed(t *testing.T, id string, into any) {
	t.Helper()
	f, err := os.Open("../testdata/window_cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct{ ID string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.ID == id {
			if err := json.Unmarshal(lines.Bytes(), into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no case %s", id)
}

// TestContainer, g03: who asks a server on their own address from within a container is
// told that this is the container's; outside nobody is.
func TestContainer(t *testing.T) {
	var c struct {
		Input struct {
			Target    string
			Container bool `json:"in_container"`
		}
	}
	handed(t, "g03", &c)
	files := map[string]string{".dockerenv": "", "run/.containerenv": "", "proc/1/cgroup": "0::/kubepods/besteffort/pod1"}
	for name, text := range files {
		root := t.TempDir()
		if err := errors.Join(os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		if !inContainer(root) {
			t.Errorf("%s does not tell a container", name)
		}
	}
	if inContainer(t.TempDir()) {
		t.Error("an empty root is taken for a container's")
	}
	err := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, inside := range []bool{c.Input.Container, false} {
		words := serverGone(c.Input.Target, err, "ollama serve", inside).Error()
		if strings.Contains(words, "host.docker.internal") != inside || !strings.Contains(words, "ollama serve") {
			t.Errorf("inside %v: %s", inside, words)
		}
	}
	if words := serverGone("http://192.0.2.1:11434", err, "ollama serve", true).Error(); strings.Contains(words, "docker") {
		t.Errorf("of another machine: %s", words)
	}
}

// TestAddresses, g05: the ways in which an address is written lead to the same server.
func TestAddresses(t *testing.T) {
	var c struct {
		Input  struct{ URLs []string }
		Expect struct{ Normalised string }
	}
	handed(t, "g05", &c)
	for _, url := range c.Input.URLs {
		filled, err := Config{OllamaURL: url}.filled()
		if err != nil || filled.OllamaURL != c.Expect.Normalised {
			t.Errorf("%s leads to %s, %v; want %s", url, filled.OllamaURL, err, c.Expect.Normalised)
		}
	}
}

// A pipe is a listener without a network: time stands still around it until everybody
// waits, so that minutes pass at once.
type pipe struct {
	conns chan net.Conn
	gone  chan struct{}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error   { close(p.gone); return nil }
func (p *pipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipe) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	return here, nil
}

// timed runs test with a model of p whose chats answer serves, in a time of its own.
func (p provider) timed(t *testing.T, answer http.HandlerFunc, test func(ctx context.Context, m *Model)) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipe{make(chan net.Conn), make(chan struct{})}
		mux := http.NewServeMux()
		for path, body := range p.routes {
			mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
		}
		var busy sync.WaitGroup
		mux.HandleFunc(p.chat, func(w http.ResponseWriter, r *http.Request) {
			busy.Add(1)
			defer busy.Done()
			answer(w, r)
		})
		srv := &http.Server{Handler: mux}
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		c := p.config("http://127.0.0.1:1")
		c.Commands, c.dial = granted, l.dial
		m, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		test(t.Context(), m)
		busy.Wait()
		srv.Close()
		<-done
	})
}

// TestSlow, g09 and g17: a prompt that is read for eleven minutes is waited for, and so
// is a model that has to be loaded again; a model that falls silent for longer than the
// idle limit within its reply is not, and one that drips is.
func TestSlow(t *testing.T) {
	var c struct {
		Input struct {
			Delay int `json:"first_byte_delay_ms"`
		}
	}
	handed(t, "g09", &c)
	var reload struct {
		Input struct {
			Gap          int `json:"gap_ms"`
			Observations []struct {
				Load int `json:"load_duration_ms"`
			}
		}
	}
	handed(t, "g17", &reload)
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			text := p.recorded(t, "text").body
			late := time.Duration(max(c.Input.Delay, reload.Input.Observations[1].Load)) * time.Millisecond
			asks := 0
			p.timed(t, func(w http.ResponseWriter, r *http.Request) {
				asks++
				io.Copy(io.Discard, r.Body)
				time.Sleep(late)
				io.WriteString(w, text)
			}, func(ctx context.Context, m *Model) {
				got, err := m.Reply(ctx, ask, nil)
				if err != nil || got.Text != "All green." || asks != 1 || got.Usage.FirstToken < late {
					t.Errorf("after %v: %+v, %v, asked %d times", late, got, err, asks)
				}
			})
			drip := strings.SplitAfter(text, "\n")
			p.timed(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				for _, line := range drip {
					time.Sleep(DefaultIdle - time.Second)
					io.WriteString(w, line)
					w.(http.Flusher).Flush()
				}
			}, func(ctx context.Context, m *Model) {
				if got, err := m.Reply(ctx, ask, nil); err != nil || got.Text != "All green." {
					t.Errorf("a reply that drips: %+v, %v", got, err)
				}
			})
			p.timed(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, drip[0])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}, func(ctx context.Context, m *Model) {
				began := time.Now()
				got, err := m.Reply(ctx, ask, nil)
				var cut *CutError
				if took := time.Since(began); !errors.As(err, &cut) || len(got.Calls) > 0 || took < 2*DefaultIdle || took > 3*DefaultIdle {
					t.Errorf("a reply that falls silent: %+v, %v after %v", got, err, took)
				}
			})
		})
	}
}

// TestCutEverywhere: a reply that breaks off after any of its bytes is no call unless
// it was whole, and is asked for once more.
func TestCutEverywhere(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			whole := p.recorded(t, "call").body
			for _, die := range []bool{false, true} {
				for n := 0; n < len(whole); n++ {
					if die && n%7 > 0 { // a broken connection is the same to the reader of a frame
						continue
					}
					m, f := p.open(t, nil, reply{body: whole[:n], die: die}, reply{body: p.good().body})
					got, err := m.Reply(t.Context(), ask, nil)
					if err != nil || len(got.Calls) != 1 {
						t.Fatalf("cut after %d bytes, dies %v: %+v, %v", n, die, got, err)
					}
					switch asked := len(f.chats()); {
					case asked == 1 && got.Calls[0].Cmd != "sh ls", asked == 2 && got.Calls[0].Cmd != "good":
						t.Fatalf("cut after %d bytes, dies %v: %+v after %d requests", n, die, got.Calls, asked)
					case asked == 1 && !ended(whole[:n]):
						t.Fatalf("cut after %d bytes, dies %v: taken for whole", n, die)
					}
					f.CloseClientConnections()
					f.Close()
				}
			}
		})
	}
}

// ended says whether a reply so far has what ends it.
func ended(text string) bool {
	text = strings.ReplaceAll(text, " ", "")
	for _, end := range []string{`"done":true`, `"done_reason":"stop"`, `"finish_reason":"tool_calls"`, `"stop_reason":"tool_use"`} {
		if strings.Contains(text, end) {
			return true
		}
	}
	return false
}

// TestMemory: a server gone mad does not fill the memory, whatever it sends without an
// end: a line, a reply of small frames, an error, what it says of itself.
func TestMemory(t *testing.T) {
	const limit = 96 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	junk := strings.Repeat("x", 64<<10)
	frames := map[string]string{
		"ollama": `{"model":"m","message":{"role":"assistant","content":"` + strings.Repeat("ab ", 4000) + `"},"done":false}` + "\n",
		"llama":  `data: {"choices":[{"delta":{"content":"` + strings.Repeat("ab ", 4000) + `"}}]}` + "\n\n",
	}
	frames["openai"] = frames["llama"]
	frames["anthropic"] = "event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + strings.Repeat("ab ", 4000) + `"}}` + "\n\n"
	for _, p := range providers {
		for name, send := range map[string]struct {
			status      int
			begin, more string
		}{
			"a line":       {200, "data: ", junk},
			"small frames": {200, "", frames[p.name]},
			"an error":     {500, `{"error":"`, junk},
			"a page":       {200, "<html>", junk},
		} {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				f := newFake(t, p)
				f.Config.Handler = flood(p, send.status, send.begin, send.more)
				c := p.config(f.URL)
				c.Commands, c.pause = granted, time.Millisecond
				m, err := Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				peak := watchHeap(t)
				got, err := m.Reply(t.Context(), ask, nil)
				most := peak()
				runtime.GC()
				runtime.ReadMemStats(&after)
				if len(got.Calls) > 0 || err == nil && !got.Cut && got.Miss == "" && got.Nudge == "" {
					t.Errorf("%+v, %v", window.Reply{Calls: got.Calls, Cut: got.Cut}, err)
				}
				if most > before.HeapAlloc+8*maxReply || after.HeapAlloc > before.HeapAlloc+maxReply {
					t.Errorf("the heap had %d MiB, then at most %d, and %d at the end", before.HeapAlloc>>20, most>>20, after.HeapAlloc>>20)
				}
			})
		}
	}
}

// watchHeap returns a function that says how large the heap was at its largest since.
func watchHeap(t *testing.T) func() uint64 {
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		var most uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-stop:
				done <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-done }
}

// flood is a server that answers a chat with begin and then more for as long as
// somebody listens, up to 64 MiB, which is four times what a reply may hold.
func flood(p provider, status int, begin, more string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := p.routes[r.URL.Path]; ok {
			io.WriteString(w, body)
			return
		}
		w.WriteHeader(status)
		io.WriteString(w, begin)
		for n := 0; n < 64<<20; n += len(more) {
			if _, err := io.WriteString(w, more); err != nil {
				return
			}
		}
	})
}
