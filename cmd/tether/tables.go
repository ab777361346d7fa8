package main

import (
	"fmt"
	"reflect"
	"strings"

	"tether/harness/llm"
)

// addTables puts what a file says in [[dialect]] and [[family]] before what the
// files before it said: the newest is tried first.
func (c *Config) addTables(file, text string, dialects []llm.Dialect, families []llm.Family) error {
	for i, d := range c.Dialect {
		err := d.Check()
		for _, o := range append(c.Dialect[:i:i], dialects...) {
			if o.Name == d.Name {
				err = fmt.Errorf("there is a dialect %q already; give it another name", d.Name)
			}
		}
		if err != nil {
			return &configError{file, lineOfTable(text, "dialect", i), "dialect: " + err.Error()}
		}
	}
	for i, f := range c.Family {
		if err := f.Check(); err != nil {
			return &configError{file, lineOfTable(text, "family", i), "family: " + err.Error()}
		}
	}
	c.Dialect, c.Family = append(c.Dialect, dialects...), append(c.Family, families...)
	return nil
}

// lineOfTable is the line of the table [[name]] after n others; 0 if it is written
// in a way that hides it.
func lineOfTable(text, name string, n int) int {
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.ReplaceAll(line, " ", ""), "[["+name+"]]") {
			if n--; n < 0 {
				return i + 1
			}
		}
	}
	return 0
}

// isTables reports whether a setting is a list of tables: those have no default,
// and no variable in the environment.
func isTables(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// tableKeys are the keys of those tables, to be compared with a misspelt one.
func tableKeys() []string {
	var keys []string
	config := reflect.TypeFor[Config]()
	for i := range config.NumField() {
		f := config.Field(i)
		if !isTables(f.Type) {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		for j := range f.Type.Elem().NumField() {
			keys = append(keys, name+"."+f.Type.Elem().Field(j).Tag.Get("toml"))
		}
	}
	return keys
}
