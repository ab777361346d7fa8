package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePython puts a python3 in an otherwise empty PATH.
func fakePython(t *testing.T, script string) pipTool {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return pipTool{t.TempDir(), func(string) {}}
}

func TestPipReport(t *testing.T) {
	const new = `{"version":"1","install":[
 {"download_info":{"url":"https://host/b","archive_info":{"hashes":{"sha256":"bb"}}},"metadata":{"name":"tiny_part.2"}},
 {"download_info":{"url":"https://host/a","archive_info":{"hash":"sha256=aa"}},"metadata":{"name":"Tiny-Part1"}}]}`
	p := fakePython(t, "cat <<'E'\n"+new+"\nE\n")
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/bin:/bin")
	got, err := p.locate(t.Context(), []Package{{Name: "tiny-part1"}, {Name: "tiny-part-2"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []location{
		{Package{Name: "tiny-part1"}, "https://host/a", "aa"},
		{Package{Name: "tiny-part-2"}, "https://host/b", "bb"},
	} {
		if got[i] != want {
			t.Errorf("got %+v, want %+v", got[i], want)
		}
	}
}

func TestPipFails(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"no such package", `[ "$3" = --version ] && exit 0
echo "ERROR: No matching distribution found for tiny==1" >&2; echo "[notice] update pip" >&2; exit 1`, "No matching distribution found for tiny==1"},
		{"no pip and no venv", "exit 1", "apt install python3-pip"},
		{"nonsense", "echo hello", "cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := fakePython(t, tt.script+"\n")
			_, err := p.locate(t.Context(), []Package{{Name: "tiny", Version: "1"}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("old pip", func(t *testing.T) {
		p := fakePython(t, `[ "$3" = --version ] && exit 0; exit 2`+"\n")
		got, err := p.locate(t.Context(), []Package{{Name: "tiny"}})
		if err != nil || len(got) != 1 || got[0].URL != "" {
			t.Errorf("got %v, %v; want a location without address", got, err)
		}
	})
	t.Run("no python", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := pipTool{}.locate(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "python3 is not there") {
			t.Errorf("got %v", err)
		}
	})
}
