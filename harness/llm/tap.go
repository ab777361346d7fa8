package llm

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// A tap sits between one request and the network. It bounds what is read,
// notices silence, and keeps what the client of the protocol does not pass on:
// the status and the last line.
type tap struct {
	base http.RoundTripper
	beat func() // called whenever bytes arrive

	status int
	html   bool
	last   []byte // the last line that was not blank
	err    error  // what ended the reading before its end
}

// RoundTrip sends the request and puts the tap into the reply's body.
func (t *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.status = resp.StatusCode
	t.html = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
	resp.Body = &tapped{ReadCloser: resp.Body, tap: t}
	return resp, nil
}

// tapped is the body of a reply.
type tapped struct {
	io.ReadCloser
	tap   *tap
	total int
	line  []byte
	long  bool // a line was longer than maxLine
}

// Read reads on and takes its measure.
func (r *tapped) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if n > 0 {
		r.tap.beat()
	}
	r.total += n
	r.lines(p[:n])
	if r.total > maxReply || r.long || len(r.line) > maxLine {
		r.tap.err = errTooLong
		return 0, errTooLong
	}
	switch {
	case err == io.EOF && len(r.line) > 0:
		r.lines([]byte("\n"))
	case err != nil && err != io.EOF:
		r.tap.err = err
	}
	return n, err
}

// lines cuts what arrives into lines and keeps the last one.
func (r *tapped) lines(p []byte) {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			r.line = append(r.line, p...)
			return
		}
		r.line, p = append(r.line, p[:i]...), p[i+1:]
		r.long = r.long || len(r.line) > maxLine
		if len(r.line) > 0 {
			r.tap.last, r.line = append(r.tap.last[:0], r.line...), r.line[:0]
		}
	}
}

// watch returns a context that ends when nothing has arrived for too long:
// first until the first byte (the prompt is being read, on a slow machine for
// minutes), idle from then on. beat says that something arrived.
func watch(ctx context.Context, first, idle time.Duration) (_ context.Context, beat, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(first, func() { cancel(errStalled) })
	return ctx, func() { timer.Reset(idle) }, func() { timer.Stop(); cancel(nil) }
}
