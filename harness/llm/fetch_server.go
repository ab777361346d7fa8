package llm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// llamaPackage is the Python package that carries a prebuilt llama.cpp server. The version is pinned: the names of
// its settings, and what its server answers, are tested with this one.
var llamaPackage = Package{Name: "xllamacpp", Version: "2026.10.11549"}

// serveScript runs that server.
//
//go:embed serve.py
var serveScript []byte

// installServer makes the packaged server available under cache and returns the command that runs it, less its
// settings. The package goes into a directory of its own, which needs no virtual environment and touches no other
// Python. It is there whole or not at all.
func installServer(ctx context.Context, cache string, log func(string)) ([]string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, fmt.Errorf("neither llama-server nor python3 is there: install one, or use a model of Ollama")
	}
	home := filepath.Join(cache, "llama")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the cache directory: %w", err)
	}
	unlock, err := lockDir(ctx, home, func() { log("waiting for another tether that is installing llama.cpp") })
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir := filepath.Join(home, llamaPackage.Name+"-"+llamaPackage.Version)
	if _, err := os.Stat(dir); err != nil {
		if err := installPackage(ctx, cache, dir, log); err != nil {
			return nil, fmt.Errorf("cannot install a llama.cpp server: %w", err)
		}
	}
	script := filepath.Join(home, "serve.py")
	if have, err := os.ReadFile(script); err != nil || string(have) != string(serveScript) {
		if err := replaceFile(script, serveScript); err != nil {
			return nil, err
		}
	}
	// -I: neither the current directory nor the user's PYTHON* variables and packages have a say in what is run.
	return []string{python, "-I", "-u", script, dir}, nil
}

func installPackage(ctx context.Context, cache, dir string, log func(string)) error {
	log("fetching a llama.cpp server (about 34 MB, once)")
	fresh := dir + ".part"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	_, err := pipTool{cache, log}.run(ctx, "install", "--target", fresh, "--no-user", "--no-deps", "--only-binary", ":all:",
		"--quiet", llamaPackage.Requirement())
	if err != nil {
		os.RemoveAll(fresh)
		return err
	}
	return os.Rename(fresh, dir)
}

// replaceFile swaps a file as a whole: a server that is being started reads the old or the new one.
func replaceFile(path string, data []byte) error {
	fresh := path + ".part"
	if err := os.WriteFile(fresh, data, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
