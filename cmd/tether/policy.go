package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"tether/act"
	"tether/harness"
	"tether/sandbox"
)

// policy is what commands may do in the workspace root. What they ask the
// network for goes to asked.
func (c Config) policy(root, state, cache string, asked *harness.Network) (sandbox.Policy, error) {
	protect, err := sandbox.Protectable(root, c.gateFiles(root))
	if err != nil {
		return sandbox.Policy{}, usagef("the files of the gates cannot be protected one by one: %v\nname fewer of them, or their folder, with --protect", err)
	}
	return sandbox.Policy{
		Profile: sandbox.Profile(c.Sandbox.Profile),
		Root:    root, State: state, Cache: cache,
		Timeout: durationOf(c.Sandbox.Timeout),
		Output:  c.Sandbox.Output,
		Memory:  c.Sandbox.Memory,
		Growth:  c.Sandbox.Growth,
		Network: sandbox.Network(c.network()),
		Allow:   c.Network.Allow,
		Decide: func(d sandbox.Decision) {
			asked.Add(harness.Asked{Host: d.Host, Port: d.Port, Allowed: d.Allowed, Why: d.Why})
		},
		Protect: protect,
	}, nil
}

// gateFiles are patterns of what no command may change in the workspace: the
// files that the user names, and the scripts that the gates run. A profile that
// mounts nothing cannot keep them from it; there a change is seen at the gate.
func (c Config) gateFiles(root string) []string {
	if rank(c.Sandbox.Profile) > rank(string(sandbox.WorkspaceWrite)) {
		return nil
	}
	patterns := slices.Clone(c.Run.Protect)
	if c.Run.GateChange == harness.GateReports {
		return patterns
	}
	ws, err := os.OpenRoot(root)
	if err != nil {
		return patterns // package sandbox says what is wrong with it
	}
	defer ws.Close()
	for _, line := range c.Run.Verify {
		judge := act.Judges(line, root, func(rel string) bool {
			info, err := ws.Stat(rel)
			return err == nil && info.Mode().IsRegular()
		})
		patterns = append(patterns, judge.Scripts...)
	}
	return patterns
}

// warnings are what a person must know of a sandbox that is less than the
// default. A line break is one for the eye.
func (c Config) warnings() []string {
	var all []string
	switch sandbox.Profile(c.Sandbox.Profile) {
	case sandbox.Off:
		all = append(all, "the sandbox is off: commands run as you, on everything you can reach")
	case sandbox.Full:
		all = append(all, "the profile is full: commands run as you, on everything you can reach; only limits, the clean end and tether's state are kept")
	case sandbox.Landlock:
		all = append(all, sandbox.LandlockPromise)
	}
	if sandbox.Profile(c.Sandbox.Profile) != sandbox.Off && c.network() == string(sandbox.NetHost) {
		all = append(all, "the network is the machine's own: commands reach what you reach, model servers and databases here included")
	}
	return all
}

// warn prints them, however quiet the run is.
func (p *program) warn(c Config) {
	for _, w := range c.warnings() {
		fmt.Fprintln(p.Err, "tether: WARNING:", strings.ReplaceAll(w, "\n", "\n         "))
	}
}
