package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOthersFile: a file that is no file of results is never shortened, whatever its
// last line is; what a kill has left of a result is.
func TestOthersFile(t *testing.T) {
	const good = `{"v":1,"id":"a","solved":true,"outcome":{},"sum":"x"}` + "\n"
	for text, left := range map[string]string{
		"my notes\n":                          "",
		"my notes":                            "",
		`{"v":2,"id":"a"}` + "\n":             "",
		`{"name":"not a result"}` + "\n":      "",
		good + `{"v":2,"id":"b"}` + "\n":      "",
		good + `{"v":2,"id":"b"}`:             "",
		good + `{"v":1,"id":"b","sol`:         good,
		good + `{"v`:                          good,
		good + "\x00\x00\x00":                 good,
		good + `{"v":1,"id":"b","sol` + "\n":  good,
		good + strings.TrimSuffix(good, "\n"): good,
		good:                                  good,
		"":                                    "",
	} {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := openResults(path, filepath.Join(t.TempDir(), "r"), false)
		if refused := left == "" && text != ""; (err != nil) != refused {
			t.Errorf("%q: %v", text, err)
		} else if refused {
			left = text
		}
		if err == nil {
			r.Close()
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != left {
			t.Errorf("%q is now %q, %v", text, now, err)
		}
	}
}

// TestSparse: the holes of a file are not copied, and what lies between them is.
func TestSparse(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	const size = 5 << 30
	for name, at := range map[string][]int64{"first": {0, 1 << 30, size - 4}, "hole first": {1 << 20}, "a hole": nil} {
		f, err := os.Create(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range at {
			if _, err := f.WriteAt([]byte("text"), i); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		f.Close()
		info, err := os.Lstat(from)
		if err != nil {
			t.Fatal(err)
		}
		c := cloner{noClone: true}
		if err := c.file(from, to, info); err != nil {
			t.Fatal(err)
		}
		got, err := os.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range at {
			text := make([]byte, 4)
			if _, err := got.ReadAt(text, i); err != nil || string(text) != "text" {
				t.Errorf("%s: at %d is %q, %v", name, i, text, err)
			}
		}
		now, err := got.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if blocks := now.Sys().(*syscall.Stat_t).Blocks; now.Size() != size || blocks > 1000 {
			t.Errorf("%s: %d bytes in %d blocks", name, now.Size(), blocks)
		}
		got.Close()
		os.Remove(to)
	}
}

// TestCapitals: two tasks whose ids differ in capitals would share a folder on some
// file systems.
func TestCapitals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.jsonl")
	for text, want := range map[string]string{
		`{"id":"a","prompt":"x"}` + "\n" + `{"id":"A","prompt":"x"}`: `the id "A" is that of`,
		`{"id":"../a","prompt":"x"}`:                                 "no plain name",
		`{"id":"a/b","prompt":"x"}`:                                  "no plain name",
		`{"id":"a\u0000","prompt":"x"}`:                              "no plain name",
		`{"id":"` + strings.Repeat("a", 300) + `","prompt":"x"}`:     "no plain name",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readBatch(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}
