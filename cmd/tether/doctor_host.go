package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tether/harness"
	"tether/sandbox"
)

// confinement is the check of the sandbox as a run here would have it.
func (d *diagnosis) confinement(ctx context.Context) []check {
	return []check{checkSandbox(ctx, d.p, d.conf, d.dir)}
}

func checkSandbox(ctx context.Context, p *program, conf Config, dir string) check {
	c := check{Name: "sandbox", OK: true, Needed: true, Repair: "apt install bubblewrap; or choose --sandbox landlock, or --sandbox off where the machine is thrown away"}
	root, state, err := places(p.Getenv, dir)
	if err != nil {
		return check{Name: "sandbox", Needed: true, Found: err.Error(), Repair: "name a folder with --dir"}
	}
	policy, err := conf.policy(root, filepath.Dir(state), "", new(harness.Network))
	if err != nil {
		return check{Name: "sandbox", Needed: true, Found: err.Error(), Repair: "name fewer files in run.protect"}
	}
	box, err := sandbox.New(ctx, policy)
	if err != nil {
		cause, repair, _ := strings.Cut(err.Error(), "; ")
		if none := new(sandbox.UnavailableError); errors.As(err, &none) {
			cause, repair = "no sandbox: "+none.Cause, none.Repair
		}
		return check{Name: "sandbox", Needed: true, Found: cause, Repair: repair}
	}
	defer box.Close()
	policy = box.Policy()
	c.Found = fmt.Sprintf("profile %s, network %s", policy.Profile, policy.Network)
	if policy.Network == sandbox.NetProxy {
		c.Found += fmt.Sprintf(" (%s)", list(policy.Allow, 4))
	}
	c.Found += ", " + root
	if w := conf.warnings(); len(w) > 0 {
		c.Found += "; " + w[0]
	}
	return c
}

// aMoment is how long a program may take that answers at once.
const aMoment = time.Second
