package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"tether/memory"
)

// checkConfig reads the configuration, which the other checks go by.
func checkConfig(p *program, dir string) (Config, check) {
	user, workspace := userConfig(p.Getenv), workspaceFile(dir)
	c := check{Name: "config", OK: true, Needed: true, Found: "defaults", Repair: "mend that line; the keys are listed by: tether config show"}
	for _, f := range []string{user, workspace} {
		if _, err := os.Stat(f); err == nil {
			c.Found = strings.TrimPrefix(c.Found+", "+f, "defaults, ")
		}
	}
	conf, err := loadConfig(user, workspace, p.Getenv)
	if err != nil {
		var next string
		c.Found, next, _ = strings.Cut(err.Error(), "\n")
		c.OK, c.Repair = false, cmp.Or(next, c.Repair)
		conf = Default()
	}
	return conf, c
}

// settings are the checks of where the settings come from.
func (d *diagnosis) settings(context.Context) []check {
	c := check{Name: "origin", OK: true, Found: "every setting has its default", Repair: "see each with: tether config show --origin"}
	f := common{dir: d.dir, fs: pflag.NewFlagSet("", pflag.ContinueOnError)}
	all, err := f.origins(d.p, d.conf)
	if err != nil {
		return []check{{Name: "origin", Found: firstLine(err.Error()), Repair: c.Repair}}
	}
	from := map[string][]string{}
	for _, s := range all {
		if s.Origin != "default" {
			from[s.Origin] = append(from[s.Origin], s.Key)
		}
	}
	var said []string
	for _, origin := range slices.Sorted(maps.Keys(from)) {
		said = append(said, fmt.Sprintf("%s: %s", origin, list(from[origin], 4)))
	}
	if len(said) > 0 {
		c.Found = strings.Join(said, "; ")
	}
	return []check{c}
}

// state are the checks of what tether keeps.
func (d *diagnosis) state(ctx context.Context) []check {
	return []check{checkStore(ctx, d.p, d.dir), checkSearch(ctx), d.stateFolder(), d.disk()}
}

func checkStore(ctx context.Context, p *program, dir string) check {
	c := check{Name: "store", Needed: true, Repair: "check it: tether fsck; or set TETHER_STATE to a folder that you can write"}
	store, err := openStore(ctx, p, dir)
	if err != nil {
		c.Found = firstLine(err.Error())
		return c
	}
	defer store.Close()
	sessions, err := store.Sessions(ctx, 0)
	if err != nil {
		c.Found = firstLine(err.Error())
		return c
	}
	_, file, _ := places(p.Getenv, dir) // openStore has asked already
	c.OK, c.Found = true, fmt.Sprintf("%d sessions in %s", len(sessions), file)
	return c
}

// checkSearch tries the full-text index in a store of its own.
func checkSearch(ctx context.Context) check {
	c := check{Name: "fts5", Needed: true, Repair: "this binary was built without it; build it with: make build"}
	store, err := memory.Open(ctx, ":memory:")
	if err == nil {
		defer store.Close()
		_, err = store.Search(ctx, "", "full text search", 1)
	}
	if err != nil {
		c.Found = firstLine(err.Error())
		return c
	}
	c.OK, c.Found = true, "full-text search works"
	return c
}

// stateFolder tries to write where the state is, or would be made.
func (d *diagnosis) stateFolder() check {
	c := check{Name: "state", Needed: true, Repair: "name a folder that you can write with TETHER_STATE"}
	_, file, err := places(d.p.Getenv, d.dir)
	if err != nil {
		c.Found = firstLine(err.Error())
		return c
	}
	dir := existing(filepath.Dir(file))
	if err := unix.Access(dir, unix.W_OK); err != nil {
		c.Found = fmt.Sprintf("%s cannot be written (%v)", dir, err)
		return c
	}
	c.OK, c.Found = true, filepath.Dir(file)
	return c
}

// existing is the folder of path, or the nearest one above, that exists.
func existing(path string) string {
	for ; ; path = filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
	}
}

// Disk space that a session of a hundred steps and the work of its commands need,
// and what is little for a build.
const (
	leastDisk = 100 << 20
	fewDisk   = 1 << 30
)

// disk looks at the free space of the workspace and of the state.
func (d *diagnosis) disk() check {
	c := check{Name: "disk", Needed: true, OK: true, Repair: "make room, or name another folder with TETHER_STATE"}
	folders := []string{d.dir}
	if _, file, err := places(d.p.Getenv, d.dir); err == nil {
		folders = append(folders, existing(filepath.Dir(file)))
	}
	var said []string
	for _, dir := range folders {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			continue
		}
		free := int64(st.Bavail) * int64(st.Bsize)
		said = append(said, fmt.Sprintf("%.1f GB free in %s", float64(free)/1e9, dir))
		if free < fewDisk {
			c.OK, c.Needed = false, free < leastDisk || c.Needed && !c.OK
		}
	}
	c.Found = strings.Join(said, ", ")
	return c
}

// programs are the checks of what is on the PATH.
func (d *diagnosis) programs(context.Context) []check {
	return []check{
		checkSelf(), checkProgram("git", "apt install git"), checkProgram("python3", "apt install python3 python3-venv"),
	}
}

// checkSelf looks whether the shell finds this tether.
func checkSelf() check {
	self, err := os.Executable()
	c := check{Name: "path", Repair: fmt.Sprintf("export PATH=%q:$PATH, in your shell's start file", filepath.Dir(self))}
	if err != nil {
		c.Found = err.Error()
		return c
	}
	path, err := exec.LookPath("tether")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		c.Found = "tether is not on the PATH"
	case err != nil:
		c.Found = err.Error()
	case !sameFile(path, self):
		c.Found = fmt.Sprintf("the tether on the PATH is %s, and this one is %s", path, self)
		c.Repair = "put this one first on the PATH, or take the other one away"
	default:
		c.OK, c.Found = true, path
	}
	return c
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(x, y)
}

func checkProgram(name, repair string) check {
	path, err := exec.LookPath(name)
	if err != nil {
		return check{Name: name, Found: "not on PATH", Repair: repair}
	}
	return check{Name: name, OK: true, Found: path, Repair: repair}
}
