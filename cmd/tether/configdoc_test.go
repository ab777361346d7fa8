package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("docs.update", false, "write what is generated into the pages")

// The reference in docs/configuration.md stands between these lines.
const (
	referenceBegins = "<!-- The rest is made by: go test ./cmd/tether -run TestConfigurationPage -docs.update -->\n"
	referenceEnds   = "<!-- Here it ends. -->\n"
)

// settingLine is a line of tether.toml with a setting.
var settingLine = regexp.MustCompile(`^([a-z_]+) = (.*?)\s*(?:# (.*))?$`)

// reference is a table for each section: the key, its default, its variable, and
// what tether.toml says of it. The keys and the kinds of values are the structs'.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../tether.toml")
	if err != nil {
		t.Fatal(err)
	}
	var c Config
	values := fields(reflect.ValueOf(&c).Elem(), "")
	var b strings.Builder
	in, told := "", 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "["); ok {
			in = strings.TrimSuffix(name, "]")
			fmt.Fprintf(&b, "\n### %s\n\n| key | default | kind | variable | |\n| --- | --- | --- | --- | --- |\n", in)
			continue
		}
		m := settingLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		key := in + "." + m[1]
		v, ok := values[key]
		if !ok {
			t.Errorf("tether.toml has %s, which is no setting", key)
			continue
		}
		told++
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | `%s` | %s |\n", key, strings.ReplaceAll(m[2], "|", `\|`), kindOf(v), variableOf(key), strings.ReplaceAll(m[3], "|", `\|`))
	}
	if told != len(values) {
		t.Errorf("%d settings are told, want %d", told, len(values))
	}
	return b.String() + "\n"
}

// kindOf is the kind of a value in the words of TOML.
func kindOf(v reflect.Value) string {
	switch v.Interface().(type) {
	case duration:
		return "time"
	case []string:
		return "list"
	}
	return map[reflect.Kind]string{reflect.String: "text", reflect.Int: "number", reflect.Int64: "number", reflect.Float64: "number", reflect.Bool: "true or false"}[v.Kind()]
}

// TestConfigurationPage: the page has every setting as the structs and tether.toml
// have it.
func TestConfigurationPage(t *testing.T) {
	const file = "../../docs/configuration.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), referenceBegins)
	_, after, ends := strings.Cut(rest, referenceEnds)
	if !ok || !ends {
		t.Fatalf("%s has no place for the reference", file)
	}
	want := before + referenceBegins + reference(t) + referenceEnds + after
	if want == string(page) {
		return
	}
	if !*updateDocs {
		t.Fatalf("%s is not what the settings are; write it with: go test ./cmd/tether -run TestConfigurationPage -docs.update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
