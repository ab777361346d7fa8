package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
)

// A configError is a mistake in a configuration file, or one that is not
// trusted; the run ends with exit status 9.
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

// workspaceFile is the configuration that a workspace brings along.
func workspaceFile(dir string) string { return filepath.Join(dir, "tether.toml") }

// loadConfig reads the user's file and then the workspace's, which may only
// narrow what the user's allows unless its content was trusted, and then the
// environment. Each file is read once: what is judged is what is obeyed.
func loadConfig(own, workspace string, env func(string) string) (Config, error) {
	c := Default()
	if named := env("TETHER_CONFIG"); named != "" {
		if _, err := os.Stat(named); err != nil { // who names a file does not mean the defaults
			return c, &configError{File: "TETHER_CONFIG", Msg: fmt.Sprintf("%s cannot be read (%v)", named, reason(err))}
		}
	}
	if err := ownPlaces(own, workspace, env); err != nil {
		return c, err
	}
	text, err := readSmall(own, 0)
	if err == nil {
		err = c.decode(own, text)
	}
	if err != nil {
		return c, err
	}
	before := c
	if text, err = readSmall(workspace, syscall.O_NOFOLLOW); err == nil {
		err = c.decode(workspace, text)
	}
	if err == nil {
		err = mayWiden(workspace, text, widenings(before, c), env)
	}
	if err != nil {
		return c, err
	}
	if err := misspelt(os.Environ()); err != nil {
		return c, err
	}
	return c, fromEnvironment(&c, env)
}

// decode reads the text of file over c. Gates, the files that they are made of,
// and secrets add up.
func (c *Config) decode(file, text string) error {
	// The decoder fills a slice that is there in place, and this one is still
	// somebody else's.
	verify, protect, secrets := slices.Clone(c.Run.Verify), slices.Clone(c.Run.Protect), slices.Clone(c.Run.Secrets)
	c.Run.Verify, c.Run.Protect, c.Run.Secrets = slices.Clone(verify), slices.Clone(protect), slices.Clone(secrets)
	c.Run.Tools, c.Network.Allow = slices.Clone(c.Run.Tools), slices.Clone(c.Network.Allow)
	c.Command = maps.Clone(c.Command)
	dialects, families := c.Dialect, c.Family
	c.Dialect, c.Family = nil, nil
	meta, err := toml.Decode(text, c)
	if err != nil {
		return decodeError(file, err)
	}
	if meta.IsDefined("run", "verify") {
		c.Run.Verify = append(verify, c.Run.Verify...)
	}
	if meta.IsDefined("run", "secrets") {
		c.Run.Secrets = append(secrets, c.Run.Secrets...)
	}
	if meta.IsDefined("run", "protect") {
		c.Run.Protect = append(protect, c.Run.Protect...)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		key := unknown[0].String()
		return &configError{file, lineOf(text, unknown[0]), fmt.Sprintf("unknown key %q%s", key, suggestKey(key))}
	}
	if err := c.check(); err != nil {
		return &configError{File: file, Msg: err.Error()}
	}
	return c.addTables(file, text, dialects, families)
}

// decodeError is what the decoder says of file, with the line.
func decodeError(file string, err error) error {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return &configError{file, parse.Position.Line, fromParser(parse)}
	}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &configError{file, line, fromDecoder(m[2], m[3])}
	}
	return &configError{File: file, Msg: err.Error()}
}

// wrongType is how the decoder words a value that does not fit: it has no type
// for that error.
var wrongType = regexp.MustCompile(`^toml: line (\d+) \(last key "(.+)"\): (.+)$`)

// maxConfig is the largest configuration in bytes. The longest sensible one is a
// hundredth of it.
const maxConfig = 256 << 10

// readSmall reads a regular file of at most maxConfig bytes; one that is not
// there is empty. It looks at what it has opened, and does not wait for the other
// end of a FIFO. With O_NOFOLLOW a link is refused: a workspace's leads anywhere.
func readSmall(file string, flags int) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|flags, 0)
	switch {
	case file == "", errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", nil
	case errors.Is(err, syscall.ELOOP):
		return "", &configError{File: file, Msg: "a symbolic link, not a regular file"}
	case err != nil:
		return "", &configError{File: file, Msg: reason(err).Error()}
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err == nil && info.Size() > maxConfig {
		err = fmt.Errorf("%d bytes is too large for a configuration", info.Size())
	}
	if err != nil {
		return "", &configError{File: file, Msg: err.Error()}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return "", &configError{File: file, Msg: reason(err).Error()}
	}
	return string(text), nil
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

// ownPlaces refuses to go on where the user's configuration, or what they have
// trusted, would be looked for in the workspace: whoever can write there would
// decide. A variable that a repository sets for its visitors comes to that, and
// so does a link.
func ownPlaces(own, workspace string, env func(string) string) error {
	for _, p := range []struct{ path, name string }{{own, "your own configuration"}, {trustFile(env), "the list of what you trust"}} {
		if workspace != "" && p.path != "" && lies(p.path, filepath.Dir(workspace), env) {
			return &configError{File: p.path, Msg: p.name + " would be in the workspace, where anyone who writes there decides\nkeep it elsewhere: TETHER_CONFIG, XDG_CONFIG_HOME, XDG_STATE_HOME"}
		}
	}
	return nil
}

// lies reports whether a path leads into the folder root, whatever of the path
// exists. A folder around the user's home directory is no workspace, and package
// sandbox says so.
func lies(path, root string, env func(string) string) bool {
	root, path, own := resolved(root), resolved(path), resolved(home(env))
	within := func(p string) bool { return p == root || strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/") }
	return within(path) && !within(own)
}

// resolved is path made absolute, with the links in the part of it that exists
// followed.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	rest := ""
	for err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		if path == "/" {
			break
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
	return path
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
