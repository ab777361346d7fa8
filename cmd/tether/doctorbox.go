package main

import (
	"context"
	"fmt"

	"tether/harness"
	"tether/sandbox"
)

// tryBox tries the sandbox under the settings that hold in dir, in a folder of the
// trials' own, and prints what it held.
func tryBox(ctx context.Context, p *program, dir string, asJSON bool) error {
	conf, err := loadConfig(userConfig(p.Getenv), workspaceFile(dir), p.Getenv)
	if err != nil {
		return err
	}
	p.warn(conf)
	conf.Run.Verify, conf.Run.Protect = nil, nil // they are files of another folder
	policy, err := conf.policy("", "", "", new(harness.Network))
	if err != nil {
		return err
	}
	trials, err := sandbox.SelfTest(ctx, policy)
	if err != nil {
		return err
	}
	held := 0
	for _, t := range trials {
		if t.Held {
			held++
		}
	}
	if asJSON {
		err = p.json(map[string]any{"v": 1, "ok": held == len(trials), "sandbox": conf.Sandbox.Profile, "network": conf.network(), "trials": append([]sandbox.Trial{}, trials...)})
	} else {
		err = printTrials(p, trials, fmt.Sprintf("%d of %d held, sandbox %s", held, len(trials), confines(conf.Sandbox.Profile, conf.network())))
	}
	if err == nil && held < len(trials) {
		err = exitError(1)
	}
	return err
}

// printTrials prints a line a trial, and what was seen of those that were not
// held; the sum comes last.
func printTrials(p *program, trials []sandbox.Trial, sum string) error {
	for _, t := range trials {
		word := "held    "
		if !t.Held {
			word = "NOT HELD"
		}
		fmt.Fprintf(p.Out, "%s  %-24s %s\n", word, t.Name, oneLine(t.Promise, 100))
		if !t.Held && t.Seen != "" {
			fmt.Fprintf(p.Out, "%34s %s\n", "", oneLine(t.Seen, 200))
		}
	}
	_, err := fmt.Fprintln(p.Out, sum)
	return err
}
