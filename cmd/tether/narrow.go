package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"tether/harness"
	"tether/sandbox"
)

// profiles are the sandbox profiles from the narrowest to none.
var profiles = []string{
	string(sandbox.ReadOnly), string(sandbox.WorkspaceWrite), string(sandbox.Landlock), string(sandbox.Full), string(sandbox.Off),
}

func rank(profile string) int { return slices.Index(profiles, profile) }

// networks are what commands may reach, from nothing to everything.
var networks = []string{string(sandbox.NetOff), string(sandbox.NetProxy), string(sandbox.NetHost)}

// network is what commands reach under c. auto is the proxy as soon as there is
// a host to be reached, and without one what belongs to the profile.
func (c Config) network() string {
	switch {
	case c.Sandbox.Network != "auto":
		return c.Sandbox.Network
	case c.Sandbox.Profile == string(sandbox.Full), c.Sandbox.Profile == string(sandbox.Off):
		return string(sandbox.NetHost)
	case len(c.Network.Allow) > 0 && c.Sandbox.Profile != string(sandbox.Landlock):
		return string(sandbox.NetProxy)
	}
	return string(sandbox.NetOff)
}

// cannotHave are the networks that a profile does not have.
var cannotHave = map[sandbox.Profile][]sandbox.Network{
	sandbox.Full:     {sandbox.NetProxy},
	sandbox.Off:      {sandbox.NetProxy, sandbox.NetOff},
	sandbox.Landlock: {sandbox.NetProxy, sandbox.NetHost},
}

// checkNetwork refuses what is no network, and a host that can never be reached.
func (c Config) checkNetwork() error {
	if c.Sandbox.Network != "auto" && !slices.Contains(networks, c.Sandbox.Network) {
		return fmt.Errorf("sandbox.network is %q; it can be auto, %s%s", c.Sandbox.Network, strings.Join(networks, ", "), didYouMean(c.Sandbox.Network, networks))
	}
	if slices.Contains(cannotHave[sandbox.Profile(c.Sandbox.Profile)], sandbox.Network(c.network())) {
		return fmt.Errorf("the network %s does not go with the profile %s; with workspace-write and read-only it does", c.network(), c.Sandbox.Profile)
	}
	for _, host := range c.Network.Allow {
		if err := sandbox.CheckAllow(host); err != nil {
			return fmt.Errorf("network.allow has %q: %w", host, err)
		}
	}
	return nil
}

// checkPatterns refuses a pattern that can match nothing in a workspace.
func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		switch {
		case p == "", strings.HasPrefix(p, "/"), slices.Contains(strings.Split(p, "/"), ".."):
			return fmt.Errorf("run.protect has %q; it takes patterns of files in the workspace, such as tests/*.py", p)
		case !doublestar.ValidatePattern(p):
			return fmt.Errorf("run.protect has %q, which is no pattern; write such as tests/**/*.py", p)
		}
	}
	return nil
}

// A widening is a setting of a workspace's file that allows more than the user's
// own configuration does.
type widening struct {
	Key      string
	From, To string
	// Never says that not even the user's consent makes it the file's to choose:
	// less of a sandbox than the default is asked for by hand, each time or for
	// good, and not by a file that comes with the code.
	Never bool
}

// String says in a line what would become of what.
func (w widening) String() string { return fmt.Sprintf("%s: %s instead of %s", w.Key, w.To, w.From) }

// widenings lists what c allows beyond user.
func widenings(user, c Config) []widening {
	var all []widening
	add := func(wider bool, key, from, to string, never bool) {
		if wider {
			all = append(all, widening{key, from, to, never})
		}
	}
	more := func(key string, from, to int64) { // 0 is no limit
		add(from != 0 && (to == 0 || to > from), key, limit(from), limit(to), false)
	}
	was, is := user.network(), c.network()
	add(rank(c.Sandbox.Profile) > rank(user.Sandbox.Profile), "sandbox.profile", user.Sandbox.Profile, c.Sandbox.Profile, rank(c.Sandbox.Profile) > rank(string(sandbox.WorkspaceWrite)))
	add(slices.Index(networks, is) > slices.Index(networks, was), "sandbox.network", was, is, is == string(sandbox.NetHost))
	for _, host := range c.Network.Allow {
		add(was != string(sandbox.NetHost) && !covered(user.Network.Allow, host), "network.allow", "no "+host, host, false)
	}
	add(c.Web.Search != user.Web.Search && c.Web.Search != "", "web.search", strconv.Quote(user.Web.Search), strconv.Quote(c.Web.Search), false)
	add(c.Model.Name != user.Model.Name, "model.name", strconv.Quote(user.Model.Name), strconv.Quote(c.Model.Name), false)
	add(c.Model.KeyFrom != user.Model.KeyFrom, "model.key_from", strconv.Quote(user.Model.KeyFrom), strconv.Quote(c.Model.KeyFrom), false)
	for _, tool := range c.Run.Tools {
		add(!slices.Contains(user.Run.Tools, tool), "run.tools", "no "+tool, tool, false)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Command)) {
		was, had := user.Command[name]
		if !had {
			was.Run = "no such command"
		}
		add(fmt.Sprintf("%#v", was) != fmt.Sprintf("%#v", c.Command[name]), "command."+name, fmt.Sprint(was.Run), fmt.Sprint(c.Command[name].Run), false)
	}
	for _, d := range c.Dialect[:len(c.Dialect)-len(user.Dialect)] {
		add(true, "dialect", "no "+d.Name, fmt.Sprintf("%s: %s … %s is run as %s", d.Name, d.Open, d.Close, d.Form), false)
	}
	for _, f := range c.Family[:len(c.Family)-len(user.Family)] {
		add(true, "family", "no "+f.Match, fmt.Sprintf("%s with calls %q and result %q", f.Match, f.Calls, f.Result), false)
	}
	add(c.Run.Schema != user.Run.Schema && (user.Run.Schema != "" || filepath.IsAbs(c.Run.Schema)), "run.schema", strconv.Quote(user.Run.Schema), strconv.Quote(c.Run.Schema), false)
	add(c.Run.GateChange != user.Run.GateChange && c.Run.GateChange == harness.GateReports, "run.gate_change", user.Run.GateChange, c.Run.GateChange, false)
	add(c.Run.Facts && !user.Run.Facts, "run.facts", "false", "true", false)
	more("run.steps", int64(user.Run.Steps), int64(c.Run.Steps))
	more("run.tokens", int64(user.Run.Tokens), int64(c.Run.Tokens))
	add(user.Run.Time != 0 && (c.Run.Time == 0 || c.Run.Time > user.Run.Time), "run.time", durationOf(user.Run.Time).String(), durationOf(c.Run.Time).String(), false)
	add(c.Sandbox.Timeout > user.Sandbox.Timeout || c.Sandbox.Timeout == 0, "sandbox.timeout", durationOf(user.Sandbox.Timeout).String(), durationOf(c.Sandbox.Timeout).String(), false)
	more("sandbox.output", user.Sandbox.Output, c.Sandbox.Output)
	more("sandbox.memory", user.Sandbox.Memory, c.Sandbox.Memory)
	more("sandbox.growth", user.Sandbox.Growth, c.Sandbox.Growth)
	return all
}

// limit writes a bound, of which 0 is none.
func limit(n int64) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.FormatInt(n, 10)
}

// covered reports whether one of the entries that are allowed lets the host in
// as well: the same, or one that begins with a dot and ends it, at the same port.
func covered(allowed []string, host string) bool {
	host, port := splitPort(strings.ToLower(host))
	return slices.ContainsFunc(allowed, func(entry string) bool {
		name, at := splitPort(strings.ToLower(entry))
		if at != port {
			return false
		}
		return name == host || strings.HasPrefix(name, ".") && (strings.HasSuffix(host, name) || host == name[1:])
	})
}

// splitPort takes the port off an entry of network.allow. An IPv6 address has
// brackets before it has a port.
func splitPort(entry string) (host, port string) {
	i := strings.LastIndexByte(entry, ':')
	if i < 0 || i < strings.LastIndexByte(entry, ']') || entry[0] != '[' && strings.Count(entry, ":") > 1 {
		return entry, ""
	}
	return entry[:i], entry[i+1:]
}
