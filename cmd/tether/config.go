package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"

	"tether/act"
	window "tether/context"
	"tether/harness"
	"tether/sandbox"
)

// A Config is every setting there is. The file tether.toml of the repository
// is this struct with its defaults, printed, and a test holds the two together.
type Config struct {
	Model   ModelConfig   `toml:"model"`
	Window  WindowConfig  `toml:"window"`
	Run     RunConfig     `toml:"run"`
	Sandbox SandboxConfig `toml:"sandbox"`
}

// ModelConfig says which model is asked, and how it is sampled.
type ModelConfig struct {
	Name        string  `toml:"name"`        // empty: what is found running or fetched
	Window      int     `toml:"window"`      // tokens
	Constrain   string  `toml:"constrain"`   // auto, on, off
	Temperature float64 `toml:"temperature"` // 0 is the likeliest token, always
	Seed        int     `toml:"seed"`
	MaxTokens   int     `toml:"max_tokens"` // of one reply
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
}

// RunConfig says what a run may use and when it ends.
type RunConfig struct {
	Steps  int      `toml:"steps"`
	Time   duration `toml:"time"`   // 0: no limit
	Tokens int      `toml:"tokens"` // 0: no limit
	Tools  []string `toml:"tools"`
	Verify []string `toml:"verify"`
}

// SandboxConfig is sandbox.Policy as far as a user may set it.
type SandboxConfig struct {
	Profile string   `toml:"profile"`
	Timeout duration `toml:"timeout"` // of one command
	Output  int64    `toml:"output"`  // bytes
}

// A duration is a time.Duration that is written "90s" or "2m".
type duration time.Duration

// UnmarshalText reads what time.ParseDuration reads.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = fmt.Errorf("a negative time")
	}
	*d = duration(v)
	return err
}

// MarshalText writes a duration as UnmarshalText reads it.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Default is the configuration of a machine on which nobody configured
// anything. Each number is taken from the package that obeys it.
func Default() Config {
	var tools []string
	for _, c := range act.Builtins() {
		tools = append(tools, c.Name)
	}
	b := window.Default
	return Config{
		Model:   ModelConfig{Window: b.Window, Constrain: "auto", Seed: 1, MaxTokens: b.Reserve},
		Window:  WindowConfig{Keep: b.Keep, Mode: string(b.Mode), Fold: b.Fold, Low: b.Low, Elide: b.Elide, Head: b.Head, Tail: b.Tail},
		Run:     RunConfig{Steps: harness.DefaultSteps, Tools: tools, Verify: []string{}},
		Sandbox: SandboxConfig{Profile: string(sandbox.WorkspaceWrite), Timeout: duration(sandbox.DefaultTimeout), Output: sandbox.DefaultOutput},
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

// A configError is a mistake in a configuration file; the run ends with exit
// status 9.
type configError struct {
	File string
	Line int // 0: unknown
	Msg  string
}

// Error names the place and the mistake.
func (e *configError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return e.File + ": " + e.Msg
}

// loadConfig reads the user's file and then the workspace's, which may only
// narrow what the user's allows, and then the environment.
func loadConfig(own, workspace string, env func(string) string) (Config, error) {
	c := Default()
	if named := env("TETHER_CONFIG"); named != "" {
		if _, err := os.Stat(named); err != nil { // who names a file does not mean the defaults
			return c, &configError{File: "TETHER_CONFIG", Msg: fmt.Sprintf("%s cannot be read (%v)", named, reason(err))}
		}
	}
	if err := readConfig(own, &c); err != nil {
		return c, err
	}
	before := c
	if err := readConfig(workspace, &c); err != nil {
		return c, err
	}
	if err := onlyNarrows(workspace, before, c); err != nil {
		return c, err
	}
	return c, fromEnvironment(&c, env)
}

// readConfig reads file over c. A file that is not there changes nothing.
func readConfig(file string, c *Config) error {
	text, err := readSmall(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || file == "" {
		return nil
	}
	if err != nil {
		return &configError{File: file, Msg: err.Error()}
	}
	// The decoder fills a slice that is there in place, and this one is still
	// somebody else's.
	verify := slices.Clone(c.Run.Verify)
	c.Run.Verify, c.Run.Tools = slices.Clone(verify), slices.Clone(c.Run.Tools)
	meta, err := toml.Decode(text, c)
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return &configError{file, parse.Position.Line, parse.Message}
	}
	if m := wrongType.FindStringSubmatch(fmt.Sprint(err)); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &configError{file, line, m[2] + ": " + m[3]}
	}
	if err != nil {
		return &configError{File: file, Msg: err.Error()}
	}
	if meta.IsDefined("run", "verify") {
		c.Run.Verify = append(verify, c.Run.Verify...) // gates add up
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		key := unknown[0].String()
		return &configError{file, lineOf(text, unknown[0]), fmt.Sprintf("unknown key %q%s", key, didYouMean(key, configKeys()))}
	}
	if err := c.check(); err != nil {
		return &configError{File: file, Msg: err.Error()}
	}
	return nil
}

// wrongType is how the decoder words a value that does not fit: it has no type
// for that error.
var wrongType = regexp.MustCompile(`^toml: line (\d+) \(last key "(.+)"\): (.+)$`)

// readSmall reads a regular file of at most 256 KiB.
func readSmall(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("not a regular file")
	case info.Size() > 256<<10:
		return "", fmt.Errorf("%d bytes is too large for a configuration", info.Size())
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// lineOf finds the line on which key stands; 0 if it is written in a way that
// hides it.
func lineOf(text string, key toml.Key) int {
	table, last := strings.Join(key[:len(key)-1], "."), key[len(key)-1]
	in := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = strings.Trim(line, "[] ")
			if in == key.String() {
				return i + 1
			}
		}
		name, _, _ := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); in == table && name == last || in == "" && name == key.String() {
			return i + 1
		}
	}
	return 0
}

// check refuses values that mean nothing.
func (c Config) check() error {
	w := c.Window
	switch {
	case !slices.Contains([]string{"auto", "on", "off"}, c.Model.Constrain):
		return fmt.Errorf("model.constrain is %q; it can be auto, on or off", c.Model.Constrain)
	case !slices.Contains([]window.Mode{window.Batch, window.EveryTurn, window.Off}, window.Mode(w.Mode)):
		return fmt.Errorf("window.fold_mode is %q; it can be batch, every-turn or off", w.Mode)
	case rank(c.Sandbox.Profile) < 0:
		return fmt.Errorf("sandbox.profile is %q; it can be %s", c.Sandbox.Profile, strings.Join(profiles, ", "))
	case c.Model.Window < 2048, c.Model.MaxTokens < 64, c.Model.MaxTokens > c.Model.Window/2:
		return fmt.Errorf("model.window is %d and model.max_tokens %d; a window has 2048 tokens or more, a reply from 64 to half of it", c.Model.Window, c.Model.MaxTokens)
	case w.Keep < 1, w.Low <= 0, w.Fold <= w.Low, w.Fold > 1:
		return fmt.Errorf("window.keep must be 1 or more, and 0 < fold_to < fold_at <= 1")
	case w.Head < 100, w.Tail < 100, w.Elide < w.Head+w.Tail:
		return fmt.Errorf("window.head and tail must be 100 or more, and elide not less than both together")
	case c.Run.Steps < 1, c.Run.Tokens < 0:
		return fmt.Errorf("run.steps must be 1 or more, run.tokens 0 or more")
	}
	return nil
}

// profiles are the sandbox profiles from the narrowest to none.
var profiles = []string{string(sandbox.ReadOnly), string(sandbox.WorkspaceWrite), string(sandbox.Full), string(sandbox.Off)}

func rank(profile string) int { return slices.Index(profiles, profile) }

// onlyNarrows refuses a workspace's file that allows more than the user's: a
// repository that somebody cloned must not choose who sees its content.
func onlyNarrows(file string, user, c Config) error {
	wider := ""
	switch {
	case rank(c.Sandbox.Profile) > rank(user.Sandbox.Profile):
		wider = "sandbox.profile"
	case c.Model.Name != user.Model.Name:
		wider = "model.name"
	case c.Sandbox.Timeout > user.Sandbox.Timeout:
		wider = "sandbox.timeout"
	case c.Sandbox.Output > user.Sandbox.Output:
		wider = "sandbox.output"
	case slices.ContainsFunc(c.Run.Tools, func(t string) bool { return !slices.Contains(user.Run.Tools, t) }):
		wider = "run.tools"
	default:
		return nil
	}
	return &configError{File: file, Msg: wider + " would allow more than your own configuration; set it there or with a flag"}
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
	case *int:
		*p, err = strconv.Atoi(text)
	case *int64:
		*p, err = strconv.ParseInt(text, 10, 64)
	case *float64:
		*p, err = strconv.ParseFloat(text, 64)
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
		if f := v.Field(i); f.Kind() == reflect.Struct {
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

// userConfig is the path of the user's own file.
func userConfig(env func(string) string) string {
	if f := env("TETHER_CONFIG"); f != "" {
		return f
	}
	return filepath.Join(xdg(env, "XDG_CONFIG_HOME", ".config"), "tether", "tether.toml")
}

// xdg is a base directory of the XDG specification.
func xdg(env func(string) string, name, fallback string) string {
	if dir := env(name); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(home(env), fallback)
}

// home is the user's home directory. It is never relative: a workspace would
// be asked for the user's own configuration, which may allow anything.
func home(env func(string) string) string {
	if dir := env("HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return "/nonexistent" // nothing is read there, and nothing can be kept
}
