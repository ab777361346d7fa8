package harness_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tether/harness"
)

// TestParseForm: a schema that cannot be kept is refused before anything begins.
func TestParseForm(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: "",
		`true`:              "",
		`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`:                 "", // a list: each step is one deeper
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}},"items":{"$ref":"#/definitions/a"}}`: "",
		`{"$defs":{"a~/b":{}},"allOf":[{"$ref":"#/$defs/a~0~1b"},{"$ref":"#/allOf/0"}]}`:                                  "",
		`{"x-note":1,"format":"date"}`: "",
		``:                             "no JSON",
		`{"type":"object"`:             "no JSON",
		`[]`:                           "no JSON Schema",
		`{"type":"objekt"}`:            "no JSON Schema",
		`{"pattern":"("}`:              "no JSON Schema",
		`{"minimum":"1"}`:              "no JSON Schema",
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`: "version that is not known",
		`{"$ref":"https://schemas.example/a.json"}`:             "not in it",
		`{"$ref":"file:///etc/passwd"}`:                         "not in it",
		`{"$ref":"other.json"}`:                                 "not in it",
		`{"$ref":"#/$defs/gone"}`:                               "not in it",
		`{"items":{"$ref":"#anchor"},"$anchor":"anchor"}`:       "not in it",
		`{"$ref":"#"}`:                     "refers to itself",
		`{"anyOf":[{"not":{"$ref":"#"}}]}`: "refers to itself",
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"if":{"$ref":"#/$defs/a"}}}}`:      "refers to itself",
		`{"properties":{"a":{"dependentSchemas":{"x":{"$ref":"#/properties/a"}}}}}`: "refers to itself",
		`{"$dynamicRef":"#a"}`: "dynamicRef",
		`{"description":"` + strings.Repeat("x", harness.MaxSchema) + `"}`: "each request",
	} {
		form, err := harness.ParseForm([]byte(schema))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", schema, err, want)
		}
		if err == nil {
			form.Check(`{"a":{"x":1},"next":{"next":{}}}`)
		}
	}
}

// TestCheck: what a report comes to, and what is said of one that does not fit.
func TestCheck(t *testing.T) {
	form, err := harness.ParseForm([]byte(`{"type":"object","required":["ok","files"],"additionalProperties":false,"properties":{
		"ok":{"type":"boolean"},"why":{"type":"string","minLength":3},"n":{"type":"integer","minimum":2},"size":{"enum":["s","l"]},
		"files":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for report, want := range map[string]string{
		`{"ok": true, "files": []}`:                                `{"ok":true,"files":[]}`,
		"```json\n{\"ok\":true,\"files\":[],\"why\":\"<&>\"}\n```": `{"ok":true,"files":[],"why":"<&>"}`,
		"\n {\"ok\":false,\n\"files\":[{\"name\":\"a\"}]}\n":       `{"ok":false,"files":[{"name":"a"}]}`,
		``:                                      "! there is none",
		`All is done.`:                          "! it is no JSON",
		`{"ok": true`:                           "! it is no JSON",
		`{"ok":true,"files":[]} and more`:       "! it is no JSON",
		`[]`:                                    `! [] has type "array", want "object"`,
		`"{\"ok\":true}"`:                       `want "object"`,
		`{"ok":true}`:                           `! missing properties: ["files"]`,
		`{"ok":"yes","files":[]}`:               `! ok: yes has type "string", want "boolean"`,
		`{"ok":true,"files":[],"n":1}`:          "! n: 1",
		`{"ok":true,"files":[],"size":"xl"}`:    "! size: xl does not equal any of: [s l]",
		`{"ok":true,"files":[{"nam":"a"}]}`:     `! files[]: missing properties: ["name"]`,
		`{"ok":true,"files":[],"what":1}`:       `! unexpected additional properties ["what"]`,
		`{"ok":true,"files":[{"name":"TEXT"}]}`: "! TEXT stands for words of your own",
		`{"ok":true,"files":[],"why":"` + strings.Repeat("\u00fc", 1) + `"}`: "! why: ",
	} {
		text, wrong := form.Check(report)
		if fault, refused := strings.CutPrefix(want, "! "); refused {
			if !strings.HasPrefix(wrong, "error: the report does not fit: "+fault) || strings.Count(wrong, "\n") > 1 || text != "" {
				t.Errorf("%s: %q %q, want %q", report, text, wrong, fault)
			}
		} else if text != want && !strings.Contains(wrong, want) {
			t.Errorf("%s: %q %q, want %q", report, text, wrong, want)
		}
	}
	if text, wrong := (*harness.Form)(nil).Check(" any text"); text != " any text" || wrong != "" {
		t.Errorf("%q %q", text, wrong)
	}
}

// TestExample: what is right in a report stays in the line that is shown, and what
// is shown has the form.
func TestExample(t *testing.T) {
	for _, c := range [][3]string{
		{`{"type":"object","required":["a","b"],"properties":{"a":{"type":"integer"},"b":{"type":"boolean"}}}`, `{"a":7,"c":[1]}`, `done {"a":7,"b":true,"c":[1]}`},
		{`{"type":"object","required":["a","b"],"properties":{"a":{"type":"integer","minimum":5},"b":{"enum":["x","y"]}}}`, `{"a":"7","b":"y"}`, `done {"a":5,"b":"y"}`},
		{`{"type":"array","items":{"const":3},"minItems":2}`, `{}`, `done [3,3]`},
		{`{"type":["integer","null"],"examples":[12]}`, `"x"`, `done 12`},
		{`{"type":"string","pattern":"^[0-9]+$"}`, `"x"`, ``},
		{`{"not":{}}`, `1`, ``},
	} {
		form, err := harness.ParseForm([]byte(c[0]))
		if err != nil {
			t.Fatal(err)
		}
		_, wrong := form.Check(c[1])
		_, example, _ := strings.Cut(wrong, "\ntry: ")
		if example != c[2] {
			t.Errorf("%s: %q, want %q", c[0], wrong, c[2])
		}
		if report, ok := strings.CutPrefix(example, "done "); ok {
			if _, wrong := form.Check(report); wrong != "" {
				t.Errorf("the example does not fit: %s", wrong)
			}
		}
	}
}

// FuzzForm: any schema and any report are judged, and what is taken is JSON.
func FuzzForm(f *testing.F) {
	f.Add(`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, `{"a":"b"}`)
	f.Add(`{"$ref":"#/allOf/0","allOf":[{"anyOf":[{"minLength":2},{"items":{"$ref":"#"}}]}]}`, `[["a"],[[]]]`)
	f.Add(`{"$defs":{"n":{"oneOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`, strings.Repeat("[", 40)+strings.Repeat("]", 40))
	f.Add(`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"properties":{"x":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`, `{"x":{"x":{}}}`)
	f.Fuzz(func(t *testing.T, schema, report string) {
		form, err := harness.ParseForm([]byte(schema))
		if err != nil {
			return
		}
		if text, wrong := form.Check(report); wrong == "" && !json.Valid([]byte(text)) {
			t.Errorf("%q is taken by %q", text, schema)
		}
	})
}

// TestHostileForms: schemas and reports whose check would never end are refused, and
// what is taken is what was checked.
func TestHostileForms(t *testing.T) {
	nest := func(n int, a, mid, b string) string { return strings.Repeat(a, n) + mid + strings.Repeat(b, n) }
	twins := func(of string) string {
		return `{"$defs":{"n":{"` + of + `":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`
	}
	chain := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 40 {
		chain += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
	}
	for _, c := range []struct{ name, schema, report, want string }{
		{"a list of lists of lists of eight", nest(12, `{"type":"array","minItems":8,"items":`, `{"type":"string"}`, `}`), `{}`, `want "array"`},
		{"two ways down", twins("anyOf"), nest(60, "[", "1", "]"), "make it flatter"},
		{"two ways down, and all are looked at", twins("allOf"), nest(30, "[", "1", "]"), "make it flatter"},
		{"two ways down, one step", twins("oneOf"), `[1]`, "did not validate"},
		{"as deep as JSON may be", `true`, nest(9999, "[", "", "]"), ""},
		{"deeper", `true`, nest(20000, "[", "", "]"), "max depth"},
		{"long", `{"type":"object"}`, `"` + strings.Repeat("a", 70000) + `"`, "it has 70002 bytes, and may have 65536"},
		{"many", `{"type":"array","uniqueItems":true}`, "[" + strings.Repeat("1,", 30000) + "2]", "are equal"},
		{"a name twice", `{"type":"object","properties":{"ok":{"type":"boolean"}}}`, `{"ok":"no","ok":true}`, `"ok" stands twice`},
		{"a name twice, within", `true`, `[{"a":[1,"a",{"b":"a"}],"c":{},"\u0061":2}]`, `"a" stands twice`},
		{"a name in two objects", `true`, `[{"a":1},{"a":{"a":["a","a"]}}]`, ""},
		{"no number", `true`, `NaN`, "no JSON"},
	} {
		form, err := harness.ParseForm([]byte(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, wrong := form.Check(c.report)
		if (wrong == "") != (c.want == "") || !strings.Contains(wrong, c.want) {
			t.Errorf("%s: %.300q, want %q", c.name, wrong, c.want)
		}
	}
	if _, err := harness.ParseForm([]byte(chain + `"d40":{}}}`)); err == nil || !strings.Contains(err.Error(), "so often") {
		t.Errorf("each part twice in the next: %v", err)
	}
}
