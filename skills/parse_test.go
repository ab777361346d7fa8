package skills

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	text := "\ufeff---\r\nname: a-1\r\ndescription: >\r\n  Two  lines\r\n  über 日本\r\nlicense: MIT\r\n" +
		"verify:\r\n- make a\r\n- ' make b '\r\n- ''\r\n---\r\n# Größe\r\n\r\n---\r\nend\r\n"
	got, err := Parse("a-1", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got.Description != "Two lines über 日本" || got.Body != "# Größe\n\n---\nend" {
		t.Errorf("got %+v", got)
	}
	if want := []string{"make a", "make b"}; !slices.Equal(got.Verify, want) {
		t.Errorf("got %q, want %q", got.Verify, want)
	}
}

func TestVerifyForms(t *testing.T) {
	for yaml, want := range map[string][]string{
		"":                                nil,
		"verify:\n":                       nil,
		"verify: []\n":                    nil,
		"verify: go test ./...\n":         {"go test ./..."},
		"verify: |\n  make a\n\n  make b": {"make a", "make b"},
		"verify: [make a, make b]\n":      {"make a", "make b"},
	} {
		s, err := Parse("x", []byte(md("x", "x", strings.TrimSuffix(yaml, "\n")+"\n")))
		if err != nil || !slices.Equal(s.Verify, want) {
			t.Errorf("%q: got %q, %v; want %q", yaml, s.Verify, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("é", maxDescription)
	for _, c := range []struct{ what, folder, text, want string }{
		{"empty", "x", "", "no front matter"},
		{"no front matter", "x", "# X\n", "no front matter"},
		{"no end", "x", "---\nname: x\ndescription: x\n", "has no end"},
		{"end inside a line", "x", "---\nname: x\ndescription: x ---\nbody", "has no end"},
		{"no YAML", "x", "---\nname: [\n---\n", "front matter: yaml"},
		{"a list", "x", "---\n- name: x\n---\n", "front matter: yaml"},
		{"verify of maps", "x", md("x", "x", "verify: {a: b}\n"), "front matter: yaml"},
		{"alias bomb", "x", md("x", "x", bomb()), "front matter: yaml"},
		{"no name", "x", "---\ndescription: x\n---\n", "name \"\": use"},
		{"parent", "../x", md("../x", "x", ""), "use 1 to 64"},
		{"other folder", "y", md("x", "x", ""), "must be the same"},
		{"capitals", "X", md("X", "x", ""), "use 1 to 64"},
		{"unicode name", "größe", md("größe", "x", ""), "use 1 to 64"},
		{"like a flag", "-x", md("-x", "x", ""), "use 1 to 64"},
		{"space", "x y", md("x y", "x", ""), "use 1 to 64"},
		{"long name", strings.Repeat("x", 65), md(strings.Repeat("x", 65), "x", ""), "use 1 to 64"},
		{"no description", "x", "---\nname: x\n---\n", "no description"},
		{"long description", "x", md("x", long+"é", ""), "description of 1025 characters"},
		{"escape in the description", "x", md("x", `"\e[31mred"`, ""), "control characters"},
		{"long front matter", "x", md("x", "x", "a: "+strings.Repeat("b", maxFrontMatter)+"\n"), "front matter of"},
		{"long body", "x", md("x", "x", "") + strings.Repeat("b", maxBody), "body of 20007 bytes"},
		{"binary", "x", md("x", "x", "") + "\x00\x01", "not a text file"},
		{"latin1", "x", md("x", "x", "") + "\xe4", "not a text file"},
		{"terminal codes", "x", md("x", "x", "") + "\x1b[2J", "not a text file"},
		{"many verify", "x", md("x", "x", "verify: ["+strings.Repeat("a,", 17)+"]\n"), "17 verify commands"},
		{"long verify", "x", md("x", "x", "verify: "+strings.Repeat("a", 1001)+"\n"), "verify \"aaa"},
		{"lines in verify", "x", md("x", "x", "verify: [\"a\\nb\"]\n"), "verify \"a\\nb\""},
	} {
		if _, err := Parse(c.folder, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.want)
		}
	}
	if _, err := Parse("x", []byte(md("x", long, ""))); err != nil {
		t.Errorf("1024 characters: %v", err)
	}
}

// bomb is a few bytes of YAML that would be gigabytes of strings.
func bomb() string {
	b := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		d := string(rune('0' + i))
		e := string(rune('1' + i))
		b += "a" + e + ": &a" + e + " [" + strings.Repeat("*a"+d+",", 9) + "]\n"
	}
	return b + "verify: *a9\n"
}

func TestHugeFile(t *testing.T) {
	huge := md("x", "x", "") + strings.Repeat("b", 200<<20)
	l := open(t, "", fstest.MapFS{"skills/x/SKILL.md": {Data: []byte(huge)}})
	if p := l.Problems(); len(p) != 1 || !strings.Contains(p[0].Error(), "more than 65536 bytes") {
		t.Errorf("problems: %v", p)
	}
}

func TestHostileFolders(t *testing.T) {
	l := open(t, "", workspace(
		"skills/a b/SKILL.md", md("a b", "x", ""),
		"skills/-rf/SKILL.md", md("../../etc", "x", ""),
		"skills/ü/SKILL.md", md("ü", "x", ""),
	))
	if len(l.Problems()) != 3 || len(l.List()) != 3 {
		t.Errorf("skills %v, problems %v", l.List(), l.Problems())
	}
}

func FuzzParse(f *testing.F) {
	f.Add("x", []byte(md("x", "x", "verify: [a, b]\n")))
	f.Add("x", []byte(md("x", "x", bomb())))
	f.Add("../x", []byte("---\nname: &a [*a]\n---"))
	f.Fuzz(func(t *testing.T, folder string, data []byte) {
		s, err := Parse(folder, data)
		if err != nil {
			return
		}
		if s.Name != folder || !validName(s.Name) {
			t.Errorf("name %q in %q", s.Name, folder)
		}
		if n := utf8.RuneCountInString(s.Description); n == 0 || n > maxDescription || strings.Contains(s.Description, "\n") {
			t.Errorf("description %q", s.Description)
		}
		if len(s.Body) > maxBody || !utf8.ValidString(s.Body) || len(s.Verify) > maxVerify {
			t.Errorf("out of bounds: %+v", s)
		}
		for _, line := range s.Verify {
			if line == "" || strings.ContainsAny(line, "\n\r\x00") {
				t.Errorf("verify %q", line)
			}
		}
	})
}
