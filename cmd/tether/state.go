package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"tether/memory"
)

// keys are the variables with which people give programs their keys to model
// servers. They never reach the log, whether tether itself uses them or not.
var keys = []string{
	"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_API_KEY", "LLAMA_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
	"OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY",
}

// secrets are the values that must not be kept: of keys, and of the variables
// that c names.
func secrets(c Config, env func(string) string) []string {
	var all []string
	for _, name := range append(keys[:len(keys):len(keys)], c.Run.Secrets...) {
		if v := env(name); v != "" {
			all = append(all, v)
		}
	}
	return all
}

// openState opens the store at path to write to it, and tells what is missing
// in it.
func openState(ctx context.Context, p *program, c Config, path string) (*memory.Store, error) {
	if err := claimStore(path, p.Getenv); err != nil {
		return nil, err
	}
	s, err := memory.Open(ctx, path, stateOptions(p)...)
	if err != nil {
		return nil, err
	}
	s.SetSecrets(secrets(c, p.Getenv))
	warnLost(p, s)
	return s, nil
}

// openStore opens the store of a workspace to look at it, also where nothing can
// be written. A workspace without one has an empty one.
func openStore(ctx context.Context, p *program, dir string) (*memory.Store, error) {
	_, state, err := places(p.Getenv, dir)
	if err != nil {
		return nil, err
	}
	s, err := memory.OpenReadOnly(ctx, state, stateOptions(p)...)
	if old, ok := errors.AsType[*memory.SchemaError](err); ok && old.Have < old.Know {
		s, err = memory.Open(ctx, state, stateOptions(p)...) // brings it to the newest schema
	}
	if errors.Is(err, fs.ErrNotExist) {
		return memory.Open(ctx, ":memory:")
	}
	if err == nil {
		warnLost(p, s)
	}
	return s, err
}

func warnLost(p *program, s *memory.Store) {
	if lost := s.Lost(); lost != nil {
		fmt.Fprintln(p.Err, "tether: WARNING:", printable(lost.Error()))
	}
}

// stateOptions are what the user allows: TETHER_STATE_ANYWHERE=1 is a store on a
// network file system. It is a variable and not a setting, because it belongs to
// the machine and no file that is shared between machines should say it.
func stateOptions(p *program) []memory.Option {
	if p.Getenv("TETHER_STATE_ANYWHERE") == "1" {
		return []memory.Option{memory.AnyFileSystem()}
	}
	return nil
}
