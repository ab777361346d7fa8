// Package skills finds SKILL.md files: advice that a model can ask for with
// "skill use NAME", and the commands that prove that it was followed.
//
// A skill is a folder with a SKILL.md in it: YAML front matter (name,
// description, verify), then Markdown. Files of a workspace come from
// strangers, so everything about them is bounded, links are never followed,
// and what is wrong with one is told and does no harm to the others.
package skills

import (
	"embed"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Skill is one SKILL.md.
type Skill struct {
	Name        string   // the folder's name: 1 to 64 of a-z, 0-9 and -
	Description string   // one line of 1 to 1,024 characters
	Layer       string   // LayerBundled, LayerUser or LayerWorkspace
	Verify      []string // command lines that must succeed, for the gates; at most 16
	Body        string   // Markdown, at most 20,000 bytes
}

// The layers. Each hides the skills of the same name in the ones before it.
const (
	LayerBundled   = "bundled"   // part of tether
	LayerUser      = "user"      // of this user, in all workspaces
	LayerWorkspace = "workspace" // of this project
)

// A Library is the skills that were found. It does not change.
type Library struct {
	skills   map[string]Skill
	problems []error
}

// A Problem says why a SKILL.md was passed over.
type Problem struct {
	Path string // relative to the layer's directory for the user's, to the workspace for its own
	Err  error
}

// Error names the layer's file and the reason.
func (p *Problem) Error() string { return "skill " + p.Path + ": " + p.Err.Error() }

// Unwrap returns the reason.
func (p *Problem) Unwrap() error { return p.Err }

//go:embed bundled
var bundled embed.FS

// The folders of a workspace that hold skills, the weaker one first. What
// lies in .tether is hidden from the sandbox, so no skills are looked for there.
var workspaceFolders = []string{"skills", ".agents/skills"}

// Open reads the bundled skills, those of the user (NAME/SKILL.md in the
// directory user; "" for none) and those of a workspace (skills/NAME/SKILL.md
// and, before it, .agents/skills/NAME/SKILL.md; nil for none). A directory
// that is not there has no skills. A file that is no good SKILL.md is listed
// in Problems and hides nothing; the error is only for a directory user that
// cannot be read.
func Open(user string, workspace fs.FS) (*Library, error) {
	l := &Library{skills: map[string]Skill{}}
	l.read(bundled, LayerBundled, "bundled")
	if err := l.readUser(user); err != nil {
		return nil, err
	}
	if workspace != nil {
		for _, folder := range workspaceFolders {
			l.read(workspace, LayerWorkspace, folder)
		}
	}
	return l, nil
}

// List returns all skills by name.
func (l *Library) List() []Skill {
	var all []Skill
	for _, name := range slices.Sorted(maps.Keys(l.skills)) { // to sort skills themselves is 22 KB of code
		all = append(all, l.skills[name])
	}
	return all
}

// Get returns the skill of that name.
func (l *Library) Get(name string) (Skill, bool) {
	s, ok := l.skills[name]
	return s, ok
}

// Problems returns a *Problem for each file that was passed over.
func (l *Library) Problems() []error { return slices.Clone(l.problems) }

// maxLine is the size of Line in bytes: about 60 tokens, paid on every turn.
const maxLine = 200

// Line returns the catalogue for the system prompt: one line of at most 200
// bytes, however many skills there are; "" for none. Where not all names fit,
// those of the workspace come first, then the user's.
func (l *Library) Line() string {
	var names []string
	for _, layer := range []string{LayerWorkspace, LayerUser, LayerBundled} {
		for _, s := range l.List() {
			if s.Layer == layer {
				names = append(names, s.Name)
			}
		}
	}
	for n := len(names); n > 0; n-- {
		if line := line(names, n); len(line) <= maxLine {
			return line
		}
	}
	return ""
}

// line is the catalogue with the first n names.
func line(names []string, n int) string {
	more := ""
	if n < len(names) {
		more = " and " + strconv.Itoa(len(names)-n) + " more: skill list"
	}
	return "skills: " + strings.Join(names[:n], ", ") + more + " (skill use NAME)"
}

// readUser reads the user's layer.
func (l *Library) readUser(dir string) error {
	if dir == "" {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	l.read(root.FS(), LayerUser, ".")
	return nil
}
