package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func noEnv(string) string { return "" }

// TestFileIsTheDefaults holds tether.toml and the code together, both ways.
func TestFileIsTheDefaults(t *testing.T) {
	var c Config
	meta, err := toml.DecodeFile("../../tether.toml", &c)
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); !reflect.DeepEqual(c, want) {
		t.Errorf("tether.toml:\n%+v\nthe defaults:\n%+v", c, want)
	}
	for _, key := range configKeys() {
		if !meta.IsDefined(strings.Split(key, ".")...) {
			t.Errorf("tether.toml lacks %s", key)
		}
	}
	if u := meta.Undecoded(); len(u) > 0 {
		t.Errorf("tether.toml has unknown keys %v", u)
	}
}

// TestMistakes: each is told with its line, and the nearest key.
func TestMistakes(t *testing.T) {
	cases := []struct{ text, want string }{
		{"[model]\nname = \"x\"\ntemprature = 1\n", `:3: unknown key "model.temprature"; did you mean model.temperature?`},
		{"[run]\nsteps = \"many\"\n", "steps"},
		{"[modle]\n", `:1: unknown key "modle"`},
		{"x", ":1: "},
		{"[sandbox]\nprofile = \"none\"\n", `sandbox.profile is "none"; it can be read-only`},
		{"[run]\nsteps = 0\n", "run.steps is 0; it must be 1 or more"},
		{"[window]\nelide = 5\n", "window.head"},
		{"[model]\nwindow = 10\n", "model.window is 10"},
		{"[run]\ntime = \"-5s\"\n", `run.time: "-5s" is no time`},
		{"[[dialect]]\nname = \"a\"\nopen = \"<\"\nform = \"json\"\n[[dialect]]\nname = \"b\"\nopen = \"[\"\nform = \"xml\"\n", `:5: dialect: form is "xml"; it can be json, lines or python`},
		{"[[dialect]]\nname = \"a\"\nopen = \"<\"\nform = \"lines\"\n", ":1: dialect: close is empty"},
		{"[[dialect]]\nopen = \"<\"\nform = \"json\"\n", ":1: dialect: name is empty"},
		{"[[dialect]]\nname = \"a\"\nform = \"json\"\n", `:1: dialect: open is ""`},
		{"[[dialect]]\nname = \"a\"\nopen = \"<\"\nclose = \"<\"\nform = \"json\"\n", ":1: dialect: open and close are the same"},
		{"[[dialect]]\nname = \"a\"\nopen = \"<\"\nform = \"json\"\n[[dialect]]\nname = \"a\"\nopen = \"(\"\nform = \"json\"\n", `:5: dialect: there is a dialect "a" already`},
		{"[[dialect]]\nname = \"a\"\nopne = \"<\"\n", `:3: unknown key "dialect.opne"; did you mean dialect.open?`},
		{"[dialect]\nname = \"a\"\n", "dialect"},
		{"[[family]]\nmatch = \"a\"\ncalls = \"json\"\n", `:1: family: calls is "json"; it can be native or text`},
		{"[[family]]\nresult = \"tool\"\n", ":1: family: match is empty"},
		{"\xff\xfe\x00", ""},
	}
	for _, c := range cases {
		file := filepath.Join(t.TempDir(), "tether.toml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadConfig(file, "", noEnv)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), file) {
			t.Errorf("%q: error %v, want one about %q", c.text, err, c.want)
		}
	}
}

// TestPrecedence: the environment stands over the files, and gates add up.
func TestPrecedence(t *testing.T) {
	user, ws := filepath.Join(t.TempDir(), "user.toml"), filepath.Join(t.TempDir(), "tether.toml")
	for file, text := range map[string]string{
		user: "[model]\nname = \"ollama/a\"\nseed = 5\n[run]\nverify = [\"one\"]\n",
		ws:   "[run]\nsteps = 7\nverify = [\"two\"]\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) string {
		return map[string]string{"TETHER_MODEL": "script:x", "TETHER_RUN_TIME": "5m", "TETHER_MODEL_SEED": "9"}[name]
	}
	c, err := loadConfig(user, ws, env)
	if err != nil {
		t.Fatal(err)
	}
	if c.Model.Name != "script:x" || c.Model.Seed != 9 || c.Run.Steps != 7 || durationOf(c.Run.Time).Minutes() != 5 {
		t.Errorf("%+v", c)
	}
	if want := []string{"one", "two"}; !reflect.DeepEqual(c.Run.Verify, want) {
		t.Errorf("gates %q, want %q", c.Run.Verify, want)
	}
	if _, err := loadConfig("", "", func(n string) string {
		return map[string]string{"TETHER_RUN_STEPS": "x"}[n]
	}); err == nil || !strings.Contains(err.Error(), "TETHER_RUN_STEPS") {
		t.Errorf("a wrong number in the environment: %v", err)
	}
}
