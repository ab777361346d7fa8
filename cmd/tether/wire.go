package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/harness/llm"
	"tether/memory"
	"tether/sandbox"
	"tether/skills"
)

// common are the flags that several subcommands share.
type common struct {
	dir, model, profile, constrain string
	network                        string
	tools, hosts                   []string
	window                         int
	fs                             *pflag.FlagSet
}

func (f *common) declare(fs *pflag.FlagSet) {
	f.fs = fs
	fs.StringVarP(&f.dir, "dir", "C", ".", "the workspace")
	fs.StringVar(&f.profile, "sandbox", "", "workspace-write, read-only, landlock, full or off")
	fs.StringVar(&f.network, "network", "", "what commands reach: off, proxy or host")
	fs.StringArrayVar(&f.hosts, "allow-net", nil, "a host that commands reach through the proxy, such as pkg.go.dev (repeatable)")
	fs.StringSliceVar(&f.tools, "tools", nil, "the commands that the model gets, comma separated")
}

func (f *common) declareModel(fs *pflag.FlagSet) {
	fs.StringVarP(&f.model, "model", "m", "", "ollama/NAME, llama/NAME@URL, openai/NAME, anthropic/NAME, gguf:PATH, script:FILE")
	fs.IntVar(&f.window, "window", 0, "context window in tokens")
	fs.StringVar(&f.constrain, "constrain", "", "auto, on or off: bind decoding to the grammar")
}

// config is the configuration with the flags on top.
func (f *common) config(p *program) (Config, error) {
	c, err := loadConfig(userConfig(p.Getenv), workspaceFile(f.dir), p.Getenv)
	if err != nil {
		return c, err
	}
	set := func(name string) bool { fl := f.fs.Lookup(name); return fl != nil && fl.Changed }
	if set("model") {
		c.Model.Name = f.model
	}
	if set("window") {
		c.Model.Window = f.window
	}
	if set("constrain") {
		c.Model.Constrain = f.constrain
	}
	if set("sandbox") {
		c.Sandbox.Profile = f.profile
	}
	if set("tools") {
		c.Run.Tools = f.tools
	}
	if set("network") {
		c.Sandbox.Network = f.network
	}
	if set("allow-net") {
		c.Network.Allow = append(slices.Clip(c.Network.Allow), f.hosts...)
		if !set("network") {
			c.Sandbox.Network = string(sandbox.NetProxy)
		} else if f.network != string(sandbox.NetProxy) {
			return c, usagef("--allow-net names a host for the network proxy, and --network is %s\nleave one of them out", f.network)
		}
	}
	if len(c.Run.Tools) == 0 {
		return c, usagef("no tools: a model without a command can do nothing; list them with: tether config show")
	}
	if err := c.check(); err != nil {
		return c, usageError{err.Error()}
	}
	return c, nil
}

// A workplace is everything below the model: the sandbox, the store, the
// skills and a shell over them.
type workplace struct {
	Config  Config
	Box     *sandbox.Box
	Store   *memory.Store
	Skills  *skills.Library
	Shell   *act.Shell
	Session memory.Session
	Asked   *harness.Network // what commands asked the network for
	lock    *memory.Lock     // of the session
}

// open makes the workplace for a new session.
func open(ctx context.Context, p *program, c Config, dir, task string) (*workplace, error) {
	return openFor(ctx, p, c, dir, nil, func(w *workplace) (memory.Session, error) {
		return w.Store.NewSession(ctx, task, c.Model.Name)
	})
}

// openFor makes the workplace for the session that begin returns, and takes the
// session for this process. A store that is open already belongs to the
// workplace from here on. This is the only place that says which commands a
// shell has.
func openFor(ctx context.Context, p *program, c Config, dir string, store *memory.Store, begin func(*workplace) (memory.Session, error)) (*workplace, error) {
	w := &workplace{Config: c, Asked: new(harness.Network), Store: store}
	if err := w.open(ctx, p, dir, begin); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *workplace) open(ctx context.Context, p *program, dir string, begin func(*workplace) (memory.Session, error)) error {
	c := w.Config
	granted, err := c.granted()
	if err != nil {
		return usageError{err.Error()}
	}
	root, state, err := places(p.Getenv, dir)
	if err != nil {
		return err
	}
	if p.Home != "" {
		if _, state, err = places(p.Getenv, p.Home); err != nil {
			return err
		}
	}
	p.warn(c)
	cache := filepath.Join(xdg(p.Getenv, "XDG_CACHE_HOME", ".cache"), "tether", id(cmp.Or(p.Cache, root)))
	if err := makeOwn(filepath.Dir(state), cache); err != nil {
		return err
	}
	policy, err := c.policy(root, filepath.Dir(state), cache, w.Asked)
	if err != nil {
		return err
	}
	// The store is made before anything runs in the sandbox: see store.
	if w.Store == nil {
		if w.Store, err = openState(ctx, p, c, state); err != nil {
			return err
		}
	}
	if policy.Root, err = filepath.Abs(dir); err != nil { // by the name that a task may have for it
		return err
	}
	if w.Box, err = sandbox.New(ctx, policy); err != nil {
		return err
	}
	if w.Box.Policy().Root != root {
		return &sandbox.RefusedError{Path: root, Reason: "the link that led to it leads elsewhere now", Repair: "start again"}
	}
	userSkills := filepath.Join(filepath.Dir(userConfig(p.Getenv)), "skills")
	if w.Skills, err = skills.Open(userSkills, w.Box.Files().FS()); err != nil {
		return err
	}
	if w.Session, err = begin(w); err != nil {
		return err
	}
	if w.lock == nil {
		if w.lock, err = w.Store.Lock(w.Session.ID); err != nil {
			return err
		}
	}
	w.Shell = act.NewShell(w.env(), granted)
	return nil
}

// makeOwn makes the folders that tether fills itself.
func makeOwn(state, cache string) error {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("the state directory %s cannot be made (%w)\nname another one with TETHER_STATE", state, reason(err))
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fmt.Errorf("the cache directory %s cannot be made (%w)\nname another one with XDG_CACHE_HOME", cache, reason(err))
	}
	return nil
}

func (w *workplace) env() act.Env {
	return act.Env{Box: w.Box, Memory: w.Store, Session: w.Session.ID, Skills: w.Skills, Web: w.web()}
}

// Close gives back what the workplace holds.
func (w *workplace) Close() error {
	var err error
	if w.lock != nil {
		err = w.lock.Release()
	}
	if w.Store != nil {
		err = errors.Join(err, w.Store.Close())
	}
	if w.Box != nil {
		err = errors.Join(err, w.Box.Close())
	}
	return err
}

// agent is an agent in this workplace that asks model.
func (w *workplace) agent(model *llm.Model, gates []harness.Gate) *harness.Agent {
	check, _ := act.Grant(act.Builtins(), []string{"sh"})
	b := w.Config.budget()
	info := model.Info()
	if info.Window > 0 {
		b.Window = info.Window
	}
	var lines []string
	for _, g := range gates {
		lines = append(lines, g.Cmd)
	}
	frame := window.Framing{Commands: w.Shell.List(), Names: w.Shell.Names(), Fenced: info.Fenced}
	own := slices.ContainsFunc(w.Skills.List(), func(s skills.Skill) bool { return s.Layer != skills.LayerBundled })
	if slices.Contains(w.Shell.Names(), "skill") && (own || !info.Fenced) {
		frame.Skills = w.Skills.Line()
	}
	return &harness.Agent{
		Model:   model,
		Shell:   w.Shell,
		Check:   act.NewShell(w.env(), check),
		Budget:  b,
		Gates:   gates,
		Store:   w.Store,
		Session: w.Session,
		Stop:    stopOf,
		Protect: w.Config.Run.Protect, GateChange: w.Config.Run.GateChange, Network: w.Asked,
		Compact: w.Config.Window.Compact == "auto", Project: w.Config.Run.Facts,
		Setup: harness.Setup{
			Model: info.Name, Sandbox: string(w.Box.Policy().Profile), Root: w.Box.Policy().Root,
			Network: string(w.Box.Policy().Network), Allow: w.Box.Policy().Allow,
			Commands: w.Shell.Names(), System: window.System(frame), Gates: lines, Version: version(), Fenced: info.Fenced, Wire: model.Wire(),
		},
		Limits: harness.Limits{Steps: w.Config.Run.Steps, Time: durationOf(w.Config.Run.Time), Tokens: w.Config.Run.Tokens},
	}
}

// stopOf is the reason that err ends a run with.
func stopOf(err error) harness.Stop {
	var (
		unreachable *llm.UnreachableError
		cut         *llm.CutError
		missing     *llm.MissingModelError
		server      *llm.ServerError
		wrong       *llm.ConfigError
		config      *configError
		unavailable *sandbox.UnavailableError
		refused     *sandbox.RefusedError
		launch      *sandbox.LaunchError
		tampered    *sandbox.TamperedError
		long        *harness.TaskError
		truncated   *harness.TruncatedError
	)
	switch {
	case errors.As(err, &unreachable), errors.As(err, &cut):
		return harness.Unreachable
	case errors.As(err, &missing), errors.As(err, &server), errors.As(err, &truncated), errors.Is(err, llm.ErrScriptEnded):
		return harness.NoModel // a script at its end is a model that answers no more
	case errors.As(err, &wrong), errors.As(err, &config):
		return harness.Config
	case errors.As(err, &unavailable), errors.As(err, &refused), errors.As(err, &launch), errors.As(err, &tampered):
		return harness.Sandbox
	case errors.As(err, &long):
		return harness.Tokens
	}
	return harness.Failed
}

// openModel opens the model that c names and tells the user what happens
// meanwhile.
func openModel(ctx context.Context, p *program, c Config, commands []string) (*llm.Model, error) {
	m, err := llm.Open(ctx, modelConfig(p, c, commands))
	suggestModel(err)
	return m, err
}

func modelConfig(p *program, c Config, commands []string) llm.Config {
	return llm.Config{
		Model: c.Model.Name, Window: c.Model.Window, Constrain: c.Model.Constrain, Commands: commands,
		Temperature: c.Model.Temperature, Seed: c.Model.Seed, MaxTokens: c.Model.MaxTokens, Dialects: c.Dialect, Families: c.Family,
		Thinking: c.Model.Thinking, KeyFrom: c.Model.KeyFrom,
		CacheDir: filepath.Join(xdg(p.Getenv, "XDG_CACHE_HOME", ".cache"), "tether"),
		Log:      func(s string) { fmt.Fprintln(p.Err, "tether:", s) },
	}
}

// places are the workspace and the file of its store: .tether/tether.db if
// that folder exists, else one under the user's state directory.
func places(env func(string) string, dir string) (root, state string, err error) {
	if root, err = filepath.Abs(dir); err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(root)
	}
	switch {
	case err != nil:
		return "", "", usagef("the workspace %s cannot be opened (%v); name a folder that exists", dir, reason(err))
	case !info.IsDir():
		return "", "", usagef("the workspace %s is not a folder; name a folder", dir)
	}
	for _, own := range []string{xdg(env, "XDG_STATE_HOME", ".local/state"), xdg(env, "XDG_CACHE_HOME", ".cache")} {
		if lies(root, filepath.Join(own, "tether"), env) {
			return "", "", &sandbox.RefusedError{Path: root, Reason: "it is where tether keeps what belongs to other workspaces", Repair: "go to the folder of one project and start there"}
		}
	}
	moved := env("TETHER_STATE")
	state = filepath.Join(xdg(env, "XDG_STATE_HOME", ".local/state"), "tether", id(root), "tether.db")
	if moved != "" {
		state = filepath.Join(moved, id(root), "tether.db")
	}
	if lies(state, root, env) {
		return "", "", &configError{File: filepath.Dir(state), Msg: "the state would be in the workspace, where anyone who writes there decides\nmake a folder .tether there, or name another one with TETHER_STATE"}
	}
	if moved != "" {
		return root, state, nil
	}
	state = store(root, state)
	return root, state, ownStore(root, state, env)
}

// storeIn is the store that a workspace may have inside.
func storeIn(root string) string { return filepath.Join(root, ".tether", "tether.db") }

// store is the one in the workspace, or else outside. An empty .tether asks for
// one there only as long as none is outside: while a command runs, and after a
// kill -9, the sandbox has an empty folder of that name. It is looked at before
// the store outside, which another tether makes before its first command: else the
// two would have a store each.
func store(root, outside string) string {
	inside := storeIn(root)
	if _, err := os.Lstat(inside); err == nil {
		return inside
	}
	info, err := os.Lstat(filepath.Dir(inside))
	asked := err == nil && info.IsDir()
	if _, err := os.Lstat(outside); err == nil || !asked {
		return outside
	}
	return inside
}

// reason is err without the operation and the path, which the sentence around
// it names.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// id names a workspace in the user's directories: its last folder, and a hash
// of its path, since two may have the same name.
func id(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Base(root) + "-" + hex.EncodeToString(sum[:4])
}

// maxTask is the longest task in bytes that is read at all. It is above every
// window there is; whether it fits this one is known later.
const maxTask = 4 << 20

// readTask is the task in args, or standard input for "-".
func readTask(ctx context.Context, p *program, args []string) (string, error) {
	task, err := readWords(ctx, p, args)
	if err == nil && task == "" {
		err = usagef("no task\ngive one: tether run \"make the tests pass\" --verify \"go test ./...\"")
	}
	return task, err
}

// readWords joins args, or reads standard input if they are "-". It may be empty.
func readWords(ctx context.Context, p *program, args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" {
		in, err := await(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(p.In, maxTask+1)) })
		if err != nil {
			return "", err
		}
		if len(in) > maxTask {
			return "", usagef("the task is larger than %d bytes\nput the long part into a file of the workspace and name the file in the task", maxTask)
		}
		text = string(in)
	}
	if text = strings.TrimSpace(text); !isText(text) {
		return "", usagef("the task is not text (UTF-8)\nput it into a file of the workspace and name the file in the task")
	}
	return text, nil
}
