package skills

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

const (
	maxName        = 64    // bytes
	maxDescription = 1024  // characters
	maxBody        = 20000 // bytes; more would fill half of a small window
	maxVerify      = 16    // command lines
	maxVerifyLine  = 1000  // bytes of one
	maxFrontMatter = 8 << 10
)

// front is the front matter. Keys that other programs use are let be.
type front struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	Verify      commands `yaml:"verify"`
}

// commands is a list of command lines: a YAML list, or a text with one a line.
type commands []string

// UnmarshalYAML takes a list of strings or a string.
func (c *commands) UnmarshalYAML(node *yaml.Node) error {
	var text string
	if node.Kind == yaml.ScalarNode {
		if err := node.Decode(&text); err != nil {
			return err
		}
		*c = strings.Split(text, "\n")
		return nil
	}
	return node.Decode((*[]string)(c))
}

// Parse reads the SKILL.md of a folder. The Layer is left empty. The error says
// what is wrong and what would be right.
func Parse(folder string, data []byte) (Skill, error) {
	head, body, err := cut(data)
	if err != nil {
		return Skill{}, err
	}
	var f front
	if err := yaml.Unmarshal([]byte(head), &f); err != nil {
		return Skill{}, fmt.Errorf("front matter: %w", err)
	}
	s := Skill{
		Name:        f.Name,
		Description: strings.Join(strings.Fields(f.Description), " "),
		Body:        strings.TrimSpace(body),
	}
	for _, line := range f.Verify {
		if line = strings.TrimSpace(line); line != "" {
			s.Verify = append(s.Verify, line)
		}
	}
	return s, s.check(folder)
}

// cut takes data apart at the two lines "---".
func cut(data []byte) (head, body string, err error) {
	if !utf8.Valid(data) || !printable(string(data), "\t\n\r\f\ufeff") {
		return "", "", errors.New("not a text file; write it as UTF-8 without control characters")
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", "", errors.New(`no front matter; begin with a line "---", then name and description`)
	}
	head, body, ok = strings.Cut("\n"+rest+"\n", "\n---\n")
	if !ok {
		return "", "", errors.New(`the front matter has no end; close it with a line "---"`)
	}
	if len(head) > maxFrontMatter {
		return "", "", fmt.Errorf("front matter of %d bytes, at most %d; shorten it", len(head), maxFrontMatter)
	}
	return head, body, nil
}

// check holds s to the bounds that Skill names.
func (s Skill) check(folder string) error {
	switch n := utf8.RuneCountInString(s.Description); {
	case !validName(s.Name):
		return fmt.Errorf("name %.80q: use 1 to %d of a-z, 0-9 and -, not - first", s.Name, maxName)
	case s.Name != folder:
		return fmt.Errorf("name %q in a folder %.80q: they must be the same", s.Name, folder)
	case n == 0:
		return errors.New("no description; say in one line when to use it")
	case n > maxDescription:
		return fmt.Errorf("description of %d characters, at most %d; shorten it", n, maxDescription)
	case !printable(s.Description, ""):
		return errors.New("description with control characters; take them out")
	case len(s.Body) > maxBody:
		return fmt.Errorf("body of %d bytes, at most %d; shorten it or move parts to other files", len(s.Body), maxBody)
	case len(s.Verify) > maxVerify:
		return fmt.Errorf("%d verify commands, at most %d; put them in a script", len(s.Verify), maxVerify)
	}
	for _, line := range s.Verify {
		if len(line) > maxVerifyLine || !printable(line, "\t") {
			return fmt.Errorf("verify %.80q: use one line of at most %d bytes; put more in a script", line, maxVerifyLine)
		}
	}
	return nil
}

// validName keeps paths and flags out of what a model will type.
func validName(name string) bool {
	return name != "" && name[0] != '-' && len(name) <= maxName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// printable reports whether s has no control character other than those in but.
func printable(s, but string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0) && !strings.ContainsRune(but, r)
	})
}
