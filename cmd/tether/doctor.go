package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

var doctorCommand = &subcommand{
	Name:    "doctor",
	Summary: "check what is missing here",
	Detail: `Checks what tether needs, in at most 3 seconds, and says how to mend what is not as
it should be. Exit status 1 if something needed is missing. The model is asked for
two short calls; --speed asks it for more, and takes as long as the model does.

--sandbox tries, harmlessly and in a folder of its own, what a command must not be
able to do, and prints what was held; exit status 1 if something was not.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		var d diagnosis
		fs.BoolVar(&d.json, "json", false, "print one JSON object")
		fs.BoolVar(&d.box, "sandbox", false, "try what the sandbox promises")
		fs.BoolVar(&d.speed, "speed", false, "measure how fast the model reads and writes")
		d.declare(fs)
		return d.run
	},
}

// A diagnosis is one visit to the doctor.
type diagnosis struct {
	dir, model       string
	json, box, speed bool

	p      *program
	conf   Config
	wrong  bool // the configuration, which the other checks go by
	finish time.Time
}

func (d *diagnosis) declare(fs *pflag.FlagSet) {
	fs.StringVarP(&d.dir, "dir", "C", ".", "the workspace")
	fs.StringVarP(&d.model, "model", "m", "", "the model to look at, if not the one of the settings")
}

// A check is one finding of the doctor.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // a run is not possible without it
	// Unknown says that it was not found out, and why stands in Found: it is OK as
	// long as nobody saw a fault.
	Unknown bool   `json:"unknown,omitempty"`
	Found   string `json:"found"`
	Repair  string `json:"repair,omitempty"` // what to do where it is not OK
}

// bounded is how long everything may take that waits for somebody else: with what
// the rest needs on a slow machine it is 3 s.
const bounded = 2500 * time.Millisecond

func (d *diagnosis) run(ctx context.Context, p *program, args []string) error {
	if len(args) > 0 {
		return usagef("doctor takes no word; name a folder with --dir and a model with --model")
	}
	if d.box {
		return tryBox(ctx, p, d.dir, d.json)
	}
	d.p, d.finish = p, time.Now().Add(bounded)
	checks := d.checks(ctx)
	ok := true
	for _, c := range checks {
		ok = ok && (c.OK || !c.Needed)
	}
	var err error
	if d.json {
		err = p.json(map[string]any{"v": 1, "ok": ok, "checks": checks})
	} else {
		err = printChecks(p, checks)
	}
	if err == nil && !ok {
		err = exitError(1)
	}
	return err
}

// checks looks at everything, at what does not depend on each other at once.
func (d *diagnosis) checks(ctx context.Context) []check {
	conf, config := checkConfig(d.p, d.dir)
	if d.model != "" {
		conf.Model.Name = d.model
	}
	d.conf, d.wrong = conf, !config.OK
	// A sandbox has an empty .tether while it is there, which would be taken for the
	// place of the state: that is looked at before.
	state := d.state(ctx)
	groups := []func(context.Context) []check{d.settings, d.confinement, d.machine, d.asked, d.programs}
	found := make([][]check, len(groups))
	var wg sync.WaitGroup
	for i, group := range groups {
		wg.Go(func() { found[i] = group(ctx) })
	}
	wg.Wait()
	all := append([]check{config}, state...)
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

// printChecks prints a line a check, what to do below those that need it, and
// their sum.
func printChecks(p *program, checks []check) error {
	missing, absent := 0, 0
	for _, c := range checks {
		word := "ok     "
		switch {
		case !c.OK && c.Needed:
			word = "MISSING"
			missing++
		case !c.OK:
			word = "absent "
			absent++
		case c.Unknown:
			word = "unknown"
		}
		fmt.Fprintf(p.Out, "%s  %-11s %s\n", word, c.Name, oneLine(c.Found, 160))
		if !c.OK && c.Repair != "" {
			fmt.Fprintln(p.Out, indent(printable(c.Repair), strings.Repeat(" ", 21)))
		}
	}
	_, err := fmt.Fprintf(p.Out, "%d checks: %d missing, %d absent that a run can do without\n", len(checks), missing, absent)
	return err
}
