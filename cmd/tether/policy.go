package main

import (
	"fmt"
	"strings"

	"tether/harness"
	"tether/sandbox"
)

// policy is what commands may do in the workspace root. What they ask the
// network for goes to asked.
func (c Config) policy(root, state, cache string, asked *harness.Network) (sandbox.Policy, error) {
	return sandbox.Policy{
		Profile: sandbox.Profile(c.Sandbox.Profile),
		Root:    root, State: state, Cache: cache,
		Timeout: durationOf(c.Sandbox.Timeout),
		Output:  c.Sandbox.Output,
		Network: sandbox.Network(c.network()),
		Allow:   c.Network.Allow,
		Decide: func(d sandbox.Decision) {
			asked.Add(harness.Asked{Host: d.Host, Port: d.Port, Allowed: d.Allowed, Why: d.Why})
		},
	}, nil
}

// warnings are what a person must know of a sandbox that is less than the
// default.
func (c Config) warnings() []string {
	var all []string
	switch sandbox.Profile(c.Sandbox.Profile) {
	case sandbox.Off:
		all = append(all, "the sandbox is off: commands run as you, on everything you can reach")
	case sandbox.Full:
		all = append(all, "the profile is full: commands run as you, on everything you can reach; only limits, the clean end and tether's state are kept")
	case sandbox.Landlock:
		all = append(all, append([]string{"the profile is landlock, which is less than the default:"}, strings.Split(sandbox.LandlockPromise, "\n")...)...)
	}
	if sandbox.Profile(c.Sandbox.Profile) != sandbox.Off && c.network() == string(sandbox.NetHost) {
		all = append(all, "the network is the machine's own: commands reach what you reach, model servers and databases here included")
	}
	return all
}

// warn prints them, however quiet the run is.
func (p *program) warn(c Config) {
	for _, w := range c.warnings() {
		fmt.Fprintln(p.Err, "tether: WARNING:", w)
	}
}
