package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/harness/llm"
	"tether/sandbox"
)

// A Config is every setting there is. The file tether.toml of the repository
// is this struct with its defaults, printed, and a test holds the two together.
type Config struct {
	Model   ModelConfig   `toml:"model"`
	Window  WindowConfig  `toml:"window"`
	Run     RunConfig     `toml:"run"`
	Sandbox SandboxConfig `toml:"sandbox"`
	Network NetworkConfig `toml:"network"`
	Web     WebConfig     `toml:"web"`
	// Command are commands of the user's own, by their names.
	Command map[string]CommandConfig `toml:"command,omitempty"`
	// Dialect and Family are forms of calls and models that are tried before those
	// that package llm knows.
	Dialect []llm.Dialect `toml:"dialect,omitempty"`
	Family  []llm.Family  `toml:"family,omitempty"`
}

// CommandConfig is a command that a model gets beside the built-in ones.
type CommandConfig struct {
	Summary string `toml:"summary"`
	Usage   string `toml:"usage"`
	Run     any    `toml:"run"` // a line for the shell, or a program with arguments
}

// ModelConfig says which model is asked, and how it is sampled.
type ModelConfig struct {
	Name        string  `toml:"name"`        // empty: what is found running or fetched
	Window      int     `toml:"window"`      // tokens
	Constrain   string  `toml:"constrain"`   // auto, on, off
	Temperature float64 `toml:"temperature"` // 0 is the likeliest token, always
	Seed        int     `toml:"seed"`
	MaxTokens   int     `toml:"max_tokens"` // of one reply
	Thinking    string  `toml:"thinking"`   // auto, on, off
	// KeyFrom names the environment variable that has the key of an endpoint.
	KeyFrom string `toml:"key_from"`
}

// WindowConfig is window.Budget without what the model decides.
type WindowConfig struct {
	Keep  int     `toml:"keep"`
	Mode  string  `toml:"fold_mode"`
	Fold  float64 `toml:"fold_at"`
	Low   float64 `toml:"fold_to"`
	Elide int     `toml:"elide"`
	Head  int     `toml:"head"`
	Tail  int     `toml:"tail"`
	// Compact says whether the model is asked for summaries before turns are
	// folded: off or auto.
	Compact string `toml:"compact"`
}

// RunConfig says what a run may use and when it ends.
type RunConfig struct {
	Steps  int      `toml:"steps"`
	Time   duration `toml:"time"`   // 0: no limit
	Tokens int      `toml:"tokens"` // 0: no limit
	Tools  []string `toml:"tools"`
	Verify []string `toml:"verify"`
	// Secrets are names of environment variables whose values are never kept.
	Secrets []string `toml:"secrets"`
	// Protect are patterns of the files that the gates are made of, and
	// GateChange what a change of a gate's own script means: fail or report.
	Protect []string `toml:"protect"`
	// Schema is a JSON Schema that the report must fit: a file of the workspace, or
	// with --schema any file.
	Schema     string `toml:"schema"`
	GateChange string `toml:"gate_change"`
	// Facts says whether the model is shown what AGENTS.md says.
	Facts bool `toml:"facts"`
}

// SandboxConfig is sandbox.Policy as far as a user may set it.
type SandboxConfig struct {
	Profile string   `toml:"profile"`
	Network string   `toml:"network"` // auto, off, proxy, host
	Timeout duration `toml:"timeout"` // of one command
	Output  int64    `toml:"output"`  // bytes
	Memory  int64    `toml:"memory"`  // bytes of all processes of a command
	Growth  int64    `toml:"growth"`  // bytes by which a command may let the workspace grow
}

// NetworkConfig says what the network reaches where it is the proxy.
type NetworkConfig struct {
	Allow []string `toml:"allow"` // hosts; one that begins with a dot is itself and all below it
}

// WebConfig says what the command web has beside the network of the sandbox.
type WebConfig struct {
	Search string `toml:"search"` // address of a SearXNG server, which may be a local one
}

// A duration is a time.Duration that is written "90s" or "2m".
type duration time.Duration

// notTime is what is said of a text that is no time.
const notTime = " is no time; write such as \"90s\" or \"10m\""

// UnmarshalText reads what time.ParseDuration reads.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q%s", text, notTime)
	}
	*d = duration(v)
	return nil
}

// MarshalText writes a duration as UnmarshalText reads it.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Default is the configuration of a machine on which nobody configured
// anything. Each number is taken from the package that obeys it.
func Default() Config {
	var tools []string
	for _, c := range act.Builtins() {
		if !c.ByName {
			tools = append(tools, c.Name)
		}
	}
	b := window.Default
	return Config{
		Model:   ModelConfig{Window: b.Window, Constrain: "auto", Thinking: "auto", Seed: 1, MaxTokens: b.Reserve},
		Window:  WindowConfig{Keep: b.Keep, Mode: string(b.Mode), Fold: b.Fold, Low: b.Low, Elide: b.Elide, Head: b.Head, Tail: b.Tail, Compact: "off"},
		Run:     RunConfig{Steps: harness.DefaultSteps, Tools: tools, Verify: []string{}, Secrets: []string{}, Protect: []string{}, GateChange: harness.GateFails, Facts: true},
		Network: NetworkConfig{Allow: []string{}},
		Sandbox: SandboxConfig{Profile: string(sandbox.WorkspaceWrite), Network: "auto", Timeout: duration(sandbox.DefaultTimeout), Output: sandbox.DefaultOutput, Memory: sandbox.DefaultMemory, Growth: sandbox.DefaultGrowth},
	}
}

// budget is the budget that c describes, before the server's word.
func (c Config) budget() window.Budget {
	b := window.Default
	b.Window, b.Reserve = c.Model.Window, c.Model.MaxTokens
	b.Keep, b.Mode, b.Fold, b.Low = c.Window.Keep, window.Mode(c.Window.Mode), c.Window.Fold, c.Window.Low
	b.Elide, b.Head, b.Tail = c.Window.Elide, c.Window.Head, c.Window.Tail
	return b
}

// minMemory is the least memory of a command in bytes: with less no shell starts.
const minMemory = 16 << 20

// maxWindow is above the window of every model, in tokens: more is a slip of the
// finger, for which a server would ask more memory than there is.
const maxWindow = 1 << 24

// check refuses values that mean nothing.
func (c Config) check() error {
	w := c.Window
	switch {
	case !slices.Contains([]string{"auto", "on", "off"}, c.Model.Constrain):
		return fmt.Errorf("model.constrain is %q; it can be auto, on or off", c.Model.Constrain)
	case !slices.Contains([]string{"auto", "on", "off"}, c.Model.Thinking):
		return fmt.Errorf("model.thinking is %q; it can be auto, on or off", c.Model.Thinking)
	case !slices.Contains([]window.Mode{window.Batch, window.EveryTurn, window.Off}, window.Mode(w.Mode)):
		return fmt.Errorf("window.fold_mode is %q; it can be batch, every-turn or off", w.Mode)
	case w.Compact != "off" && w.Compact != "auto":
		return fmt.Errorf("window.compact is %q; it can be off or auto", w.Compact)
	case rank(c.Sandbox.Profile) < 0:
		return fmt.Errorf("sandbox.profile is %q; it can be %s%s", c.Sandbox.Profile, strings.Join(profiles, ", "), didYouMean(c.Sandbox.Profile, profiles))
	case !(c.Model.Temperature >= 0 && c.Model.Temperature <= 2): // so that it is a number, too
		return fmt.Errorf("model.temperature is %v; it can be 0 to 2", c.Model.Temperature)
	case c.Model.Window > maxWindow:
		return fmt.Errorf("model.window is %d; it can be %d at most", c.Model.Window, maxWindow)
	case c.Model.Window < 2048, c.Model.MaxTokens < 64, c.Model.MaxTokens > c.Model.Window/2:
		return fmt.Errorf("model.window is %d and model.max_tokens %d; a window has 2048 tokens or more, a reply from 64 to half of it", c.Model.Window, c.Model.MaxTokens)
	case w.Keep < 1, w.Low <= 0, w.Fold <= w.Low, w.Fold > 1:
		return fmt.Errorf("window.keep must be 1 or more, and 0 < fold_to < fold_at <= 1")
	case w.Head < 100, w.Tail < 100, w.Elide < w.Head+w.Tail:
		return fmt.Errorf("window.head and tail must be 100 or more, and elide not less than both together")
	case c.Run.Steps < 1:
		return fmt.Errorf("run.steps is %d; it must be 1 or more", c.Run.Steps)
	case c.Run.Tokens < 0:
		return fmt.Errorf("run.tokens is %d; it must be 0 or more", c.Run.Tokens)
	case slices.ContainsFunc(c.Run.Verify, func(line string) bool { return strings.TrimSpace(line) == "" }):
		return errors.New("run.verify has an empty line; each is a command such as \"go test ./...\"")
	case c.Sandbox.Output < 1, c.Sandbox.Growth < 1:
		return fmt.Errorf("sandbox.output is %d and sandbox.growth %d; they must be 1 or more", c.Sandbox.Output, c.Sandbox.Growth)
	case c.Sandbox.Memory < minMemory:
		return fmt.Errorf("sandbox.memory is %d; it must be %d or more", c.Sandbox.Memory, minMemory)
	case c.Run.GateChange != harness.GateFails && c.Run.GateChange != harness.GateReports:
		return fmt.Errorf("run.gate_change is %q; it can be fail or report", c.Run.GateChange)
	}
	_, err := c.commands()
	return errors.Join(checkPatterns(c.Run.Protect), c.checkNetwork(), c.checkWeb(), err)
}

// fromEnvironment applies TETHER_SECTION_KEY, for example
// TETHER_MODEL_NAME, and TETHER_MODEL for short.
func fromEnvironment(c *Config, env func(string) string) error {
	if v := env("TETHER_MODEL"); v != "" {
		c.Model.Name = v
	}
	for key, field := range fields(reflect.ValueOf(c).Elem(), "") {
		name := "TETHER_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		v := env(name)
		if v == "" {
			continue
		}
		if err := setField(field, v); err != nil {
			return &configError{File: name, Msg: err.Error()}
		}
	}
	if err := c.check(); err != nil {
		return &configError{File: "environment", Msg: err.Error()}
	}
	return nil
}

// setField sets a field from text as it stands in the environment.
func setField(field reflect.Value, text string) (err error) {
	switch p := field.Addr().Interface().(type) {
	case *string:
		*p = text
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			err = fmt.Errorf("it is %q and takes true or false", text)
		}
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			err = fmt.Errorf("it is %q and takes a whole number", text)
		}
	case *int64:
		if *p, err = strconv.ParseInt(text, 10, 64); err != nil {
			err = fmt.Errorf("it is %q and takes a whole number", text)
		}
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			err = fmt.Errorf("it is %q and takes a number", text)
		}
	case *[]string:
		*p = strings.Split(text, ",")
	case *duration:
		err = p.UnmarshalText([]byte(text))
	}
	return err
}

// fields lists the settings by their dotted keys.
func fields(v reflect.Value, prefix string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for i := range v.NumField() {
		key := prefix + v.Type().Field(i).Tag.Get("toml")
		if f := v.Field(i); f.Kind() == reflect.Map || isTables(f.Type()) {
			continue // it has no keys of its own
		} else if f.Kind() == reflect.Struct {
			for k, v := range fields(f, key+".") {
				all[k] = v
			}
		} else {
			all[key] = f
		}
	}
	return all
}

// configKeys are the dotted keys of all settings.
func configKeys() []string {
	var c Config
	var keys []string
	for k := range fields(reflect.ValueOf(&c).Elem(), "") {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
