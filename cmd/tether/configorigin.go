package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
)

// A setting is one value of the configuration in force, and where it comes from.
// Its JSON is an element of config show --origin --json.
type setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	// Origin is default, user, project, env or flag; with a plus between them
	// where lists add up.
	Origin string   `json:"origin"`
	Where  []string `json:"where,omitempty"` // the files with the line, the variable or the flag
}

// flagKeys are the settings that flags set.
var flagKeys = map[string]string{
	"model": "model.name", "window": "model.window", "constrain": "model.constrain",
	"sandbox": "sandbox.profile", "network": "sandbox.network", "allow-net": "network.allow", "tools": "run.tools",
}

// addingUp are the settings to which every file adds.
var addingUp = []string{"run.verify", "run.secrets", "run.protect"}

// settings lists the configuration c, which f and the environment of p led to, in
// the order of its sections.
func (f *common) origins(p *program, c Config) ([]setting, error) {
	user, workspace := userConfig(p.Getenv), workspaceFile(f.dir)
	var all []setting
	values := fields(reflect.ValueOf(&c).Elem(), "")
	keys := slices.Collect(maps.Keys(values))
	for name := range c.Command {
		keys = append(keys, "command."+name)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(section(a), section(b)), cmp.Compare(a, b)) })
	for _, key := range keys {
		s := setting{Key: key, Origin: "default"}
		if v, ok := values[key]; ok {
			s.Value = v.Interface()
		} else {
			s.Value = c.Command[strings.TrimPrefix(key, "command.")].Run
		}
		all = append(all, s)
	}
	for _, layer := range []struct {
		name, file string
		flags      int
	}{{"user", user, 0}, {"project", workspace, syscall.O_NOFOLLOW}} {
		text, err := readSmall(layer.file, layer.flags)
		if err != nil {
			return nil, err
		}
		var tree map[string]any
		meta, err := toml.Decode(text, &tree)
		if err != nil {
			return nil, decodeError(layer.file, err)
		}
		for i := range all {
			if path := strings.Split(all[i].Key, "."); meta.IsDefined(path...) {
				all[i].from(layer.name, fmt.Sprintf("%s:%d", layer.file, lineOf(text, path)))
			}
		}
	}
	for i := range all {
		f.later(&all[i], p)
	}
	return all, nil
}

// later looks whether the environment or a flag has set s.
func (f *common) later(s *setting, p *program) {
	name := variableOf(s.Key)
	if s.Key == "model.name" && p.Getenv(name) == "" {
		name = "TETHER_MODEL"
	}
	if p.Getenv(name) != "" {
		s.Origin, s.Where = "env", []string{name}
	}
	for flag, key := range flagKeys {
		if fl := f.fs.Lookup(flag); key == s.Key && fl != nil && fl.Changed {
			s.Origin, s.Where = "flag", []string{"--" + flag}
		}
	}
	if fl := f.fs.Lookup("allow-net"); s.Key == "sandbox.network" && s.Origin != "flag" && fl != nil && fl.Changed {
		s.Origin, s.Where = "flag", []string{"--allow-net"}
	}
}

// from notes that a file has set s.
func (s *setting) from(origin, where string) {
	if slices.Contains(addingUp, s.Key) && s.Origin != "default" {
		s.Origin, s.Where = s.Origin+"+"+origin, append(s.Where, where)
		return
	}
	s.Origin, s.Where = origin, []string{where}
}

// section ranks a key by where its section stands in Config.
func section(key string) int {
	name, _, _ := strings.Cut(key, ".")
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ","); tag == name {
			return i
		}
	}
	return t.NumField()
}

// variableOf is the variable that sets a key.
func variableOf(key string) string {
	return "TETHER_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// tomlValue is v as it stands in a file.
func tomlValue(v any) string {
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(map[string]any{"v": v}); err != nil {
		return fmt.Sprint(v)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(b.String()), " = ")
	return value
}

// showOrigins prints the settings with where they come from.
func (f *common) showOrigins(p *program, c Config, asJSON bool) error {
	all, err := f.origins(p, c)
	if err != nil {
		return err
	}
	if asJSON {
		return p.json(map[string]any{"v": 1, "settings": all})
	}
	for _, s := range all {
		fmt.Fprintf(p.Out, "%-44s # %s\n", printable(s.Key+" = "+tomlValue(s.Value)), printable(strings.TrimSpace(s.Origin+" "+strings.Join(s.Where, ", "))))
	}
	return nil
}
