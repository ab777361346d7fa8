package skills

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

// md is a sound SKILL.md.
func md(name, description, more string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n" + more + "---\nDo it.\n"
}

// workspace makes a file system of path, text pairs.
func workspace(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

func open(t testing.TB, user string, ws fstest.MapFS) *Library {
	t.Helper()
	l, err := Open(user, ws)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBundled(t *testing.T) {
	l := open(t, "", nil)
	if p := l.Problems(); p != nil {
		t.Fatalf("problems: %v", p)
	}
	var names []string
	for _, s := range l.List() {
		names = append(names, s.Name)
		data, err := bundled.ReadFile("bundled/" + s.Name + "/SKILL.md")
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 1200 {
			t.Errorf("%s: %d bytes, at most 1200", s.Name, len(data))
		}
		if len(s.Verify) != 1 || s.Layer != LayerBundled || s.Body == "" {
			t.Errorf("%s: layer %q, verify %q", s.Name, s.Layer, s.Verify)
		}
	}
	if want := []string{"go-project", "node-project", "python-project"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	want := "skills: go-project, node-project, python-project (skill use NAME)"
	if got := l.Line(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if s, _ := l.Get("go-project"); s.Verify[0] != "go build ./... && go vet ./... && go test ./..." {
		t.Errorf("go-project proves itself by %q", s.Verify)
	}
}

func TestLayersHideEachOther(t *testing.T) {
	user := t.TempDir()
	write(t, user+"/go-project/SKILL.md", md("go-project", "user", ""))
	write(t, user+"/mine/SKILL.md", md("mine", "user", ""))
	write(t, user+"/both/SKILL.md", md("both", "user", ""))
	l := open(t, user, workspace(
		"skills/both/SKILL.md", md("both", "plain", ""),
		".agents/skills/both/SKILL.md", md("both", "agents", ""),
		"skills/mine/SKILL.md", "no skill",
		".tether/skills/hidden/SKILL.md", md("hidden", "hidden", ""),
		"skills/code.go", "package skills",
		"skills/folder/other.txt", "",
	))
	for name, want := range map[string]string{
		"go-project": "user user", "mine": "user user", "both": "workspace agents", "hidden": " ",
	} {
		s, _ := l.Get(name)
		if got := s.Layer + " " + s.Description; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if p := l.Problems(); len(p) != 1 || !strings.HasPrefix(p[0].Error(), "skill skills/mine/SKILL.md: no front matter") {
		t.Errorf("problems: %v", p)
	}
}

func TestUserDirectory(t *testing.T) {
	dir := t.TempDir()
	if l := open(t, dir+"/none", nil); len(l.List()) != 3 {
		t.Errorf("a missing directory: %v", l.List())
	}
	write(t, dir+"/file", "")
	if _, err := Open(dir+"/file", nil); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	text := md("x", "x", "")
	write(t, outside+"/x/SKILL.md", text)
	write(t, dir+"/real/SKILL.md", md("real", "real", ""))
	for _, err := range []error{
		os.Symlink(outside+"/x", dir+"/x"), // a linked folder is no folder
		os.MkdirAll(dir+"/link", 0o755),
		os.Symlink("../real/SKILL.md", dir+"/link/SKILL.md"),
		os.MkdirAll(dir+"/pipe", 0o755),
		syscall.Mkfifo(dir+"/pipe/SKILL.md", 0o644),
		os.MkdirAll(dir+"/folder/SKILL.md", 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l := open(t, dir, nil)
	if got := len(l.List()); got != 4 {
		t.Errorf("%d skills, want the bundled ones and real: %v", got, l.Line())
	}
	if got := len(l.Problems()); got != 3 {
		t.Errorf("problems: %v", l.Problems())
	}
	for _, p := range l.Problems() {
		if !errors.Is(p, errNotRegular) {
			t.Error(p)
		}
	}
}

func TestLinkedSkillsFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/elsewhere/skills/x/SKILL.md", md("x", "x", ""))
	if err := os.Symlink("elsewhere", dir+"/.agents"); err != nil {
		t.Fatal(err)
	}
	l, err := Open("", os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Get("x"); ok {
		t.Error("a link was followed")
	}
}

func TestTooManyFolders(t *testing.T) {
	ws := fstest.MapFS{}
	for i := range maxFolders + 50 {
		name := fmt.Sprintf("skill-%03d", i)
		ws["skills/"+name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(md(name, "d", ""))}
	}
	l := open(t, "", ws)
	if got, want := len(l.List()), maxFolders+3; got != want {
		t.Errorf("%d skills, want %d", got, want)
	}
	if len(l.Problems()) != 1 {
		t.Errorf("problems: %v", l.Problems())
	}
}

func TestLineIsBounded(t *testing.T) {
	for _, size := range []int{1, 9, 40, maxName} {
		for _, count := range []int{1, 2, 5, 250} {
			ws := fstest.MapFS{}
			for i := range count {
				name := fmt.Sprintf("%s%d", strings.Repeat("z", size), i)
				name = name[max(0, len(name)-maxName):]
				ws["skills/"+name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(md(name, "d", ""))}
			}
			line := open(t, "", ws).Line()
			if len(line) > maxLine || !strings.HasPrefix(line, "skills: z") || strings.Contains(line, "\n") {
				t.Errorf("%d names of %d: %d bytes: %q", count, size, len(line), line)
			}
			if fits := strings.Contains(line, "python-project"); fits == strings.Contains(line, " more: skill list") {
				t.Errorf("%d names of %d: %q", count, size, line)
			}
		}
	}
	if got := (&Library{}).Line(); got != "" {
		t.Errorf("no skills: %q", got)
	}
}
