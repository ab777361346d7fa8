package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	attempts  = 5                // of a transfer that breaks without having brought anything
	idleLimit = 60 * time.Second // without a byte: a connection is taken for dead
)

// refusal is an answer that trying again does not change.
type refusal struct{ error }

// Unwrap returns what the server answered.
func (r refusal) Unwrap() error { return r.error }

// fromURL fetches the file from the entry's URL. Plain http is taken from this machine only: a hash protects the
// bytes, but an entry given by hand may have none.
func (g *getter) fromURL(ctx context.Context) error {
	u, err := url.Parse(g.URL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && !(u.Scheme == "http" && local(u.Hostname()))) {
		return fmt.Errorf("%q is no https address", g.URL)
	}
	have := fileSize(g.whole())
	if err := g.room(g.Bytes - have); err != nil {
		return err
	}
	if err := g.download(ctx, g.URL, g.whole(), g.Bytes, g.meter.set); err != nil {
		return err
	}
	return g.finish(ctx)
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// download brings a URL into a file and goes on where the file ends if the server can. Transfers that break are
// taken up again as long as they bring something. size is what the whole must have, 0 if that is not known.
func (g *getter) download(ctx context.Context, from, to string, size int64, progress func(int64)) error {
	for attempt := 0; ; attempt++ {
		before := fileSize(to)
		err := g.transfer(ctx, from, to, size, progress)
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		var final refusal
		if errors.As(err, &final) {
			return final.error
		}
		if fileSize(to) > before {
			attempt = 0
		}
		if attempt+1 >= attempts {
			return fmt.Errorf("the download broke off (%w); what is there is kept, run the same command again", err)
		}
		if err := g.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// pause waits 1, 2, 4 … seconds.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second << attempt):
		return nil
	}
}

func (g *getter) transfer(ctx context.Context, from, to string, size int64, progress func(int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	have := fileSize(to)
	idle := time.AfterFunc(idleLimit, func() { cancel(errors.New("the server sent nothing for a minute")) })
	defer idle.Stop()
	resp, err := g.ask(ctx, from, have)
	if err != nil {
		return because(ctx, err)
	}
	defer resp.Body.Close()
	start, err := accept(resp, have, size)
	if errors.Is(err, errComplete) {
		progress(have)
		return nil
	}
	if errors.Is(err, errStale) {
		os.Remove(to) // the next try begins at the first byte
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return refusal{err}
	}
	defer f.Close()
	if err := f.Truncate(start); err != nil {
		return refusal{err}
	}
	return because(ctx, receive(f, resp.Body, start, size, func(n int64) { idle.Reset(idleLimit); progress(n) }))
}

func because(ctx context.Context, err error) error {
	if c := context.Cause(ctx); err != nil && c != nil {
		return c
	}
	return err
}

func (g *getter) ask(ctx context.Context, from string, have int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, refusal{err}
	}
	req.Header.Set("Accept-Encoding", "identity") // a range of a compressed stream is no range of the file
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	return g.client.Do(req)
}

// What a server can say to a request that goes on at a byte.
var (
	errComplete = errors.New("the file is complete")
	errStale    = errors.New("what is here is no beginning of the server's file")
)

// accept reads the head of an answer: from which byte on the body counts.
func accept(resp *http.Response, have, size int64) (int64, error) {
	span := resp.Header.Get("Content-Range")
	switch code := resp.StatusCode; {
	case code == http.StatusPartialContent && strings.HasPrefix(span, fmt.Sprintf("bytes %d-", have)):
	case code == http.StatusOK:
		have = 0
	case code == http.StatusRequestedRangeNotSatisfiable && (span == fmt.Sprintf("bytes */%d", have) || have == size):
		return have, errComplete
	case code == http.StatusRequestedRangeNotSatisfiable || code == http.StatusPartialContent:
		return 0, errStale
	case code >= 500 || code == http.StatusTooManyRequests:
		return 0, errors.New("the server says " + resp.Status)
	default:
		return 0, refusal{errors.New("the server says " + resp.Status)}
	}
	if total := have + resp.ContentLength; size > 0 && resp.ContentLength >= 0 && total != size {
		return 0, refusal{fmt.Errorf("the server offers %d bytes where %d were expected", total, size)}
	}
	return have, nil
}

// receive appends the body to the file. The first bytes on disk are worth keeping whatever happens later, so
// nothing is buffered here; only the end is synced.
func receive(f *os.File, body io.Reader, have, size int64, progress func(int64)) error {
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return refusal{err}
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if size > 0 && have+int64(n) > size {
				return refusal{fmt.Errorf("the server sends more than the %d bytes expected", size)}
			}
			if _, err := f.Write(buf[:n]); err != nil {
				return refusal{err} // a full disk: what is there stays
			}
			have += int64(n)
			progress(have)
		}
		if err == io.EOF {
			return f.Sync()
		}
		if err != nil {
			return err
		}
	}
}
