package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// A reply is what a fake server answers to one chat.
type reply struct {
	status int    // 0 is 200
	kind   string // the content type, if it matters
	body   string
	hang   bool // never end
	die    bool // break the connection instead of ending
}

// A fake is a model server with recorded replies. One more request than it has
// replies for fails the test.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	replies  []reply
	requests []string
	gone     chan struct{} // closed when the client of a reply that hangs has left
}

func newFake(t *testing.T, p provider, replies ...reply) *fake {
	t.Helper()
	f := &fake{replies: replies, gone: make(chan struct{}, 8)}
	mux := http.NewServeMux()
	for path, body := range p.routes {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
	}
	mux.HandleFunc(p.chat, func(w http.ResponseWriter, r *http.Request) {
		if next, ok := f.take(r); ok {
			f.answer(w, r, next)
			return
		}
		t.Errorf("%s: a request more than expected", p.chat)
		w.WriteHeader(http.StatusTeapot)
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

// take notes a request and returns its reply.
func (f *fake) take(r *http.Request) (reply, bool) {
	body, _ := io.ReadAll(r.Body) // a broken request shows as a body that is wrong
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, string(body))
	if len(f.replies) == 0 {
		return reply{}, false
	}
	next := f.replies[0]
	f.replies = f.replies[1:]
	return next, true
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, a reply) {
	if a.kind != "" {
		w.Header().Set("Content-Type", a.kind)
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	io.WriteString(w, a.body)
	w.(http.Flusher).Flush()
	if a.hang {
		<-r.Context().Done()
		f.gone <- struct{}{}
	}
	if a.die {
		panic(http.ErrAbortHandler)
	}
}

// chats are the bodies of the requests so far.
func (f *fake) chats() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.requests...)
}

// left waits until the client of a reply that hangs has gone away.
func (f *fake) left(t *testing.T) {
	t.Helper()
	select {
	case <-f.gone:
	case <-time.After(5 * time.Second):
		t.Error("the connection of a cancelled reply stayed open")
	}
}
