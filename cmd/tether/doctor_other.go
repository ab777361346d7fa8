//go:build !linux

package main

import (
	"context"
	"runtime"
)

// machine names the checks of what the sandbox is made of: none applies here.
func (d *diagnosis) machine(context.Context) []check {
	var all []check
	for _, name := range []string{"bwrap", "namespaces", "seccomp", "landlock"} {
		all = append(all, check{Name: name, OK: true, Unknown: true, Found: "does not apply: " + runtime.GOOS + " has no sandbox",
			Repair: "for a sandbox run tether on Linux"})
	}
	return all
}
