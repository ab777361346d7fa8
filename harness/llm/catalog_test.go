package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b"},
		{"Qwen2.5-Coder:0.5B", "qwen2.5-coder-0.5b"},
		{"smollm2:135m", "smollm2-135m"},
		{"gpt-9", ""},
	} {
		if got, _ := Lookup(tt.name); got.Name != tt.want {
			t.Errorf("Lookup(%q) = %q, want %q", tt.name, got.Name, tt.want)
		}
	}
}

func TestCatalogueIsSound(t *testing.T) {
	for _, e := range Catalogue() {
		if len(e.SHA256) != 64 || e.Bytes <= 0 || e.Licence == "" || len(e.Packages) == 0 {
			t.Errorf("%s: incomplete entry %+v", e.Name, e)
		}
		if e.Name != plainName(e.Name) {
			t.Errorf("%s: Lookup cannot find it", e.Name)
		}
	}
}

func TestModelsDir(t *testing.T) {
	t.Setenv("HOME", "/h")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("TETHER_MODELS", "")
	if got, want := ModelsDir(), "/h/.local/share/tether/models"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("HOME", "")
	if got := ModelsDir(); !filepath.IsAbs(got) {
		t.Errorf("without HOME: got %s, want a path that does not depend on where one stands", got)
	}
	t.Setenv("XDG_DATA_HOME", "/d")
	if got, want := ModelsDir(), "/d/tether/models"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("TETHER_MODELS", "/m")
	if got, want := ModelsDir(), "/m"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInstalled(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"a.gguf", "smollm2-135m.gguf", "qwen2.5-coder-1.5b.gguf", "qwen2.5-coder-0.5b.gguf.part", "notes"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d.gguf"), 0o755); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range Installed(dir) {
		got = append(got, filepath.Base(p))
	}
	if want := "qwen2.5-coder-1.5b.gguf smollm2-135m.gguf a.gguf"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := Installed(filepath.Join(dir, "none")); len(got) != 0 {
		t.Errorf("a directory that is not there holds %v", got)
	}
}
