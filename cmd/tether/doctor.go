package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"tether/harness"
	"tether/harness/llm"
	"tether/sandbox"
)

var doctorCommand = &subcommand{
	Name:    "doctor",
	Summary: "check what is missing here",
	Detail: `Checks what tether needs and says how to get what is missing. Exit status 1 if
something needed is missing. --sandbox tries, harmlessly and in a folder of its own,
what a command must not be able to do, and prints what was held; exit status 1 if
something was not.`,
	Flags: func(fs *pflag.FlagSet) func(context.Context, *program, []string) error {
		asJSON := fs.Bool("json", false, "print one JSON object")
		dir := fs.StringP("dir", "C", ".", "the workspace")
		box := fs.Bool("sandbox", false, "try what the sandbox promises")
		return func(ctx context.Context, p *program, _ []string) error {
			if *box {
				return tryBox(ctx, p, *dir, *asJSON)
			}
			return doctor(ctx, p, *dir, *asJSON)
		}
	},
}

// A check is one finding of the doctor.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // a run is not possible without it
	Found  string `json:"found"`
	Repair string `json:"repair,omitempty"`
}

func doctor(ctx context.Context, p *program, dir string, asJSON bool) error {
	conf, config := checkConfig(p, dir)
	checks := []check{
		config, checkSandbox(ctx, p, conf, dir), checkStore(ctx, p, dir), checkModel(ctx, p, conf, config.OK),
		checkModels(), checkProgram("git", "apt install git"), checkProgram("python3", "apt install python3 python3-venv"),
	}
	ok := true
	for _, c := range checks {
		ok = ok && (c.OK || !c.Needed)
	}
	if asJSON {
		if err := p.json(map[string]any{"v": 1, "ok": ok, "checks": checks}); err != nil {
			return err
		}
	} else {
		for _, c := range checks {
			printCheck(p, c)
		}
	}
	if !ok {
		return exitError(1)
	}
	return nil
}

func printCheck(p *program, c check) {
	word := "ok     "
	switch {
	case !c.OK && c.Needed:
		word = "MISSING"
	case !c.OK:
		word = "absent "
	}
	fmt.Fprintf(p.Out, "%s  %-10s %s\n", word, c.Name, oneLine(c.Found, 160))
	if !c.OK && c.Repair != "" {
		fmt.Fprintln(p.Out, indent(printable(c.Repair), strings.Repeat(" ", 20)))
	}
}

// checkConfig reads the configuration, which the other checks go by.
func checkConfig(p *program, dir string) (Config, check) {
	user, workspace := userConfig(p.Getenv), workspaceFile(dir)
	c := check{Name: "config", OK: true, Needed: true, Found: "defaults"}
	for _, f := range []string{user, workspace} {
		if _, err := os.Stat(f); err == nil {
			c.Found = strings.TrimPrefix(c.Found+", "+f, "defaults, ")
		}
	}
	conf, err := loadConfig(user, workspace, p.Getenv)
	if err != nil {
		var next string
		c.Found, next, _ = strings.Cut(err.Error(), "\n")
		c.OK, c.Repair = false, cmp.Or(next, "mend that line; the keys are listed by: tether config show")
		conf = Default()
	}
	return conf, c
}

func checkSandbox(ctx context.Context, p *program, conf Config, dir string) check {
	c := check{Name: "sandbox", OK: true, Needed: true}
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

func checkStore(ctx context.Context, p *program, dir string) check {
	store, err := openStore(ctx, p, dir)
	if err != nil {
		return check{Name: "store", Needed: true, Found: err.Error(), Repair: "set TETHER_STATE to a folder that you can write"}
	}
	defer store.Close()
	_, file, _ := places(p.Getenv, dir)
	c := check{Name: "store", OK: true, Needed: true, Found: file}
	if _, err := store.Search(ctx, "", "full text search", 1); err != nil {
		c.OK, c.Found = false, err.Error()
	}
	return c
}

func checkModel(ctx context.Context, p *program, conf Config, right bool) check {
	c := check{Name: "model", Needed: true, Repair: "tether models get qwen2.5-coder-1.5b"}
	if !right {
		c.Found = "not looked for: the configuration is wrong"
		return c
	}
	// A file would have to be loaded to be tried; whether it is there is told
	// without that.
	if path, ok := strings.CutPrefix(conf.Model.Name, "gguf:"); ok {
		_, err := os.Stat(path)
		c.OK, c.Found = err == nil, conf.Model.Name
		return c
	}
	if conf.Model.Name == "" && !llm.Running(ctx) {
		if files := llm.Installed(llm.ModelsDir()); len(files) > 0 {
			c.OK, c.Found = true, "no server runs; tether will start one for "+files[0]
			return c
		}
	}
	m, err := openModel(ctx, p, conf, []string{"sh"})
	if err != nil {
		c.Found, c.Repair, _ = strings.Cut(err.Error(), "\n")
		return c
	}
	defer m.Close()
	i := m.Info()
	c.OK = true
	c.Found = fmt.Sprintf("%s on %s %s, window %d, tool calls %v, constrained %v", i.Name, i.Server, i.Version, i.Window, i.Native, i.Constrained)
	return c
}

func checkModels() check {
	files := llm.Installed(llm.ModelsDir())
	return check{Name: "files", OK: len(files) > 0, Found: fmt.Sprintf("%d fetched models in %s", len(files), llm.ModelsDir()), Repair: "tether models get qwen2.5-coder-1.5b"}
}

func checkProgram(name, repair string) check {
	path, err := exec.LookPath(name)
	if err != nil {
		return check{Name: name, Found: "not on PATH", Repair: repair}
	}
	return check{Name: name, OK: true, Found: path}
}
